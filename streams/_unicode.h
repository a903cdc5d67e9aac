/* Tables of Unicode, which native_tables.py packs. Included by _native.c alone. */

enum {
    COMPLEX_UNIT = 0xFFFF,
    CODE_POINTS = 0x110000,
    UNITS = 0x10000,
    PAGES = CODE_POINTS >> 8,
    MOST_PARTS = 1 << 19,
};

/* Flags of folding.py; and that neighbours are needed to fold it, or that it folds to several code points. */
enum { CODE_POINT = 0x1FFFFF, BASE = 1 << 24, MARK = 1 << 25, SPACELESS = 1 << 27, MARK_LIKE = 1 << 28 };
enum { COMPLEX = 1 << 29 };

typedef struct {
    u32 fold;  /* lower case of what NFKC left, beside its flags */
    u32 parts; /* combining class in 8 bits, how many code points NFKD makes of it in 5 (0: itself), where in 19 */
} Letter;

/* What Unicode says: pages of 256 code points, those that are alike but once. */
typedef struct {
    u64 page_count, part_count, pair_count;
    const u64 *pairs;      /* two code points that compose, ascending */
    const Letter *letters;
    const u32 *composed;   /* what they compose to */
    const u32 *parts;
    const u16 *pages;
    const u16 *units;      /* what each code point below 0x10000 becomes alone */
    const u8 *spaceless;   /* a bit for each of them: of a script without spaces */
} Unicode;

static int below(const u32 *codes, size_t count, u32 limit)
{
    int good = 1;
    for (size_t i = 0; i < count; i++)
        good &= codes[i] < limit;
    return good;
}

/* Whether no table leads out of another one. */
static int sound_tables(const Unicode *u)
{
    int good = below(u->composed, u->pair_count, CODE_POINTS) && below(u->parts, u->part_count, CODE_POINTS);
    for (size_t i = 0; i < PAGES; i++)
        good &= u->pages[i] < u->page_count;
    for (size_t i = 0; i < 256 * u->page_count; i++) {
        Letter letter = u->letters[i];
        good &= (letter.fold & CODE_POINT) < CODE_POINTS;
        good &= (letter.parts >> 13) + (letter.parts >> 8 & 31) <= u->part_count;
    }
    return good;
}

/* Finds the tables in the `size` bytes behind, which begin with three counts; whether all are there, and sound. */
static int find_tables(Unicode *u, size_t size)
{
    u64 counts[3] = {0};
    const u8 *at = (const u8 *)(u + 1);
    memcpy(counts, at, smaller(size, sizeof counts));
    if (counts[0] > PAGES || counts[1] > MOST_PARTS || counts[2] > UNITS)
        return 0;
    size_t fixed = sizeof counts + PAGES * sizeof *u->pages + UNITS * sizeof *u->units + UNITS / 8;
    size_t pair = sizeof *u->pairs + sizeof *u->composed;
    if (size != fixed + counts[0] * 256 * sizeof *u->letters + counts[1] * sizeof *u->parts + counts[2] * pair)
        return 0;
    *u = (Unicode){.page_count = counts[0], .part_count = counts[1], .pair_count = counts[2]};
    u->pairs = (const u64 *)(at + sizeof counts);
    u->letters = (const Letter *)(u->pairs + u->pair_count);
    u->composed = (const u32 *)(u->letters + 256 * u->page_count);
    u->parts = u->composed + u->pair_count;
    u->pages = (const u16 *)(u->parts + u->part_count);
    u->units = u->pages + PAGES;
    u->spaceless = (const u8 *)(u->units + UNITS);
    return sound_tables(u);
}

static inline const Letter *letter_of(const Unicode *unicode, u32 code)
{
    return unicode->letters + 256 * (size_t)unicode->pages[code >> 8] + (code & 0xFF);
}

static inline int is_spaceless(const Unicode *unicode, u32 code)
{
    if (code < UNITS)
        return unicode->spaceless[code >> 3] >> (code & 7) & 1;
    return (letter_of(unicode, code)->fold & SPACELESS) != 0;
}

/* What a code point from 0x10000 on becomes alone. */
static u32 fold_far(const Unicode *unicode, u32 code)
{
    const Letter *letter = letter_of(unicode, code);
    if (letter->fold & COMPLEX)
        return COMPLEX_UNIT;
    u32 count = letter->parts >> 8 & 31;
    if (count == 1)
        letter = letter_of(unicode, unicode->parts[letter->parts >> 13]);
    return count <= 1 && letter->fold & BASE ? letter->fold & CODE_POINT : SPACE;
}

static inline u32 fold_alone(const Unicode *unicode, u32 code)
{
    return code < UNITS ? unicode->units[code] : fold_far(unicode, code);
}
