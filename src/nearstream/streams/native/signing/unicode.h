/* Tables of Unicode 14.0, packed by fingerprints/unicode_tables.py. */

#pragma once

#include "job.h"
#include "platform.h"

enum {
    COMPLEX_UNIT = 0xFFFF,
    CODE_POINTS = 0x110000,
    UNITS = 0x10000,
    PAGES = CODE_POINTS >> 8,
    MAX_PARTS = 1 << 19,
};

/* Flags of unicode_tables.py. */
enum { CODE_POINT = 0x1FFFFF, BASE = 1 << 24, MARK = 1 << 25, SPACELESS = 1 << 27, MARK_LIKE = 1 << 28 };
/* Flag of unicode_tables.py: the code point needs its neighbours to be folded, or folds to several code points. */
enum { COMPLEX = 1 << 29 };

typedef struct {
    u32 fold; /* entry of the fold table: lower case after NFKC, and flags */
    /* Combining class (8 bits), number of code points in the NFKD or 0 if that is the code point itself (5 bits), and
     * the index of the first of them (19 bits). */
    u32 parts;
} Properties;

/* The tables. Properties are stored in pages of 256 code points, and equal pages are stored once. */
typedef struct {
    u64 page_count, part_count, pair_count;
    const u64 *pairs; /* pairs of code points that compose, ascending */
    const Properties *properties;
    const u32 *composed; /* what each pair composes to */
    const u32 *parts;
    const u16 *pages;
    const u16 *units;    /* what each code point below 0x10000 becomes alone */
    const u8 *spaceless; /* one bit for each of these: whether its script has no spaces */
} Unicode;

static int below(const u32 *codes, size_t count, u32 limit)
{
    int valid = 1;
    for (size_t i = 0; i < count; i++)
        valid &= codes[i] < limit;
    return valid;
}

/* Returns whether every index in a table is inside the table that it refers to. */
static int are_valid_tables(const Unicode *u)
{
    int valid = below(u->composed, u->pair_count, CODE_POINTS) && below(u->parts, u->part_count, CODE_POINTS);
    for (size_t i = 0; i < PAGES; i++)
        valid &= u->pages[i] < u->page_count;
    for (size_t i = 0; i < 256 * u->page_count; i++) {
        Properties entry = u->properties[i];
        valid &= (entry.fold & CODE_POINT) < CODE_POINTS;
        valid &= (entry.parts >> 13) + (entry.parts >> 8 & 31) <= u->part_count;
    }
    return valid;
}

/* Finds the tables in the `size` bytes after `u`, which begin with three counts. Returns whether they are complete and
 * valid. */
static int find_tables(Unicode *u, size_t size)
{
    u64 counts[3] = {0};
    const u8 *at = (const u8 *)(u + 1);
    memcpy(counts, at, smaller(size, sizeof counts));
    if (counts[0] > PAGES || counts[1] > MAX_PARTS || counts[2] > UNITS)
        return 0;
    size_t fixed = sizeof counts + PAGES * sizeof *u->pages + UNITS * sizeof *u->units + UNITS / 8;
    size_t pair = sizeof *u->pairs + sizeof *u->composed;
    if (size != fixed + counts[0] * 256 * sizeof *u->properties + counts[1] * sizeof *u->parts + counts[2] * pair)
        return 0;
    *u = (Unicode){.page_count = counts[0], .part_count = counts[1], .pair_count = counts[2]};
    u->pairs = (const u64 *)(at + sizeof counts);
    u->properties = (const Properties *)(u->pairs + u->pair_count);
    u->composed = (const u32 *)(u->properties + 256 * u->page_count);
    u->parts = u->composed + u->pair_count;
    u->pages = (const u16 *)(u->parts + u->part_count);
    u->units = u->pages + PAGES;
    u->spaceless = (const u8 *)(u->units + UNITS);
    return are_valid_tables(u);
}

static inline const Properties *properties_of(const Unicode *unicode, u32 code)
{
    return unicode->properties + 256 * (size_t)unicode->pages[code >> 8] + (code & 0xFF);
}

static inline int is_spaceless(const Unicode *unicode, u32 code)
{
    if (code < UNITS)
        return unicode->spaceless[code >> 3] >> (code & 7) & 1;
    return (properties_of(unicode, code)->fold & SPACELESS) != 0;
}

/* Returns what a code point from 0x10000 on becomes alone. */
static u32 fold_supplementary(const Unicode *unicode, u32 code)
{
    const Properties *properties = properties_of(unicode, code);
    if (properties->fold & COMPLEX)
        return COMPLEX_UNIT;
    u32 count = properties->parts >> 8 & 31;
    if (count == 1)
        properties = properties_of(unicode, unicode->parts[properties->parts >> 13]);
    return count <= 1 && properties->fold & BASE ? properties->fold & CODE_POINT : SPACE;
}

/* Returns what a code point becomes alone: lower case, SPACE, or COMPLEX_UNIT if that depends on its neighbours. */
static inline u32 fold_alone(const Unicode *unicode, u32 code)
{
    return code < UNITS ? unicode->units[code] : fold_supplementary(unicode, code);
}
