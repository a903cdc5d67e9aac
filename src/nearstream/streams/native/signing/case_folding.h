/* From a text to its normal form, code point by code point.
 *
 * 1. Lone surrogates, code points newer than Unicode 14.0, and marks after the 30th of a run become spaces.
 * 2. NFKC (Unicode Standard Annex 15).
 * 3. Each code point becomes its lower case, if that is one code point.
 * 4. All but letters, numbers and the marks on them become spaces.
 * 5. Runs of spaces become one space.
 *
 * Code points that fold alone are looked up in a table. All others go through nfkc.h. */

#pragma once

#include "platform.h"
#include "signing/unicode.h"

enum {
    ASCII_CHUNK = 256, /* ASCII bytes folded at a time */
    ROOM = 4096,       /* bytes, more than one code point with its marks can become */
};

enum Outcome { FOLDED, TOO_LARGE, NOT_ASCII, NOT_UTF8, NO_MEMORY };

/* The state of folding: input, output, and counts. */
typedef struct {
    const Unicode *unicode; /* NULL: the text must be ASCII */
    u64 mark_run;
    const u8 *data, *at, *end;
    Buffer form; /* the output, after PADDING bytes */
    u8 *out;
    u8 before;        /* SPACE if the output so far ends with a space or is empty */
    size_t spaceless; /* code points of scripts without spaces */
    size_t following; /* bytes that are not the first of a code point */
} Folding;

static inline u8 *form_of(const Folding *f)
{
    return f->form.start + PADDING;
}

/* Returns the lower case of an ASCII letter, a digit itself, and a space for any other byte. */
static inline u8 fold_ascii(u8 byte)
{
    u8 lower = byte | 0x20;
    int letter = (u8)(lower - 'a') < 26, digit = (u8)(byte - '0') < 10;
    return letter ? lower : digit ? byte : SPACE;
}

/* Folds the next `size` bytes, which are ASCII. It drops a space after a space without a branch. */
static void fold_ascii_run(Folding *f, size_t size)
{
    u8 folded[ASCII_CHUNK + 1], kept[ASCII_CHUNK];
    u8 *out = f->out, before = f->before;
    while (size) {
        size_t chunk = size < ASCII_CHUNK ? size : ASCII_CHUNK;
        folded[0] = before;
        for (size_t i = 0; i < chunk; i++)
            folded[i + 1] = fold_ascii(f->at[i]);
        for (size_t i = 0; i < chunk; i++)
            kept[i] = (folded[i + 1] != SPACE) | (folded[i] != SPACE);
        for (size_t i = 0; i < chunk; i++) {
            *out = folded[i + 1];
            out += kept[i];
        }
        before = folded[chunk];
        f->at += chunk;
        size -= chunk;
    }
    f->out = out;
    f->before = before;
}

/* Returns the number of ASCII bytes at the start. */
static inline size_t ascii_run(const u8 *at, const u8 *end)
{
    const u8 *start = at;
    for (; end - at >= 8; at += 8) {
        u64 high;
        memcpy(&high, at, 8);
        high &= 0x8080808080808080u;
        if (high)
            return (size_t)(at - start) + (size_t)__builtin_ctzll(high) / 8;
    }
    while (at < end && *at < 0x80)
        at++;
    return (size_t)(at - start);
}

/* Returns whether a byte continues a code point. */
static inline int follows(u8 byte)
{
    return (byte & 0xC0) == 0x80;
}

/* Returns the code point at *at, which moves on, or -1 if the bytes are not UTF-8. Surrogates are accepted. */
static inline int32_t next_code(const u8 **at, const u8 *end)
{
    const u8 *b = *at;
    ptrdiff_t left = end - b;
    if (b[0] >= 0xE0 && b[0] < 0xF0 && left >= 3 && follows(b[1]) && follows(b[2])) {
        *at += 3;
        return (b[0] & 0x0F) << 12 | (b[1] & 0x3F) << 6 | (b[2] & 0x3F);
    }
    if (b[0] >= 0xC2 && b[0] < 0xE0 && left >= 2 && follows(b[1])) {
        *at += 2;
        return (b[0] & 0x1F) << 6 | (b[1] & 0x3F);
    }
    if (b[0] >= 0xF0 && b[0] < 0xF5 && left >= 4 && follows(b[1]) && follows(b[2]) && follows(b[3])) {
        int32_t code = (b[0] & 0x07) << 18 | (b[1] & 0x3F) << 12 | (b[2] & 0x3F) << 6 | (b[3] & 0x3F);
        *at += 4;
        return code >= UNITS && code < CODE_POINTS ? code : -1;
    }
    *at += b[0] < 0x80;
    return b[0] < 0x80 ? b[0] : -1;
}

/* Writes a code point in UTF-8. A space after a space is not written. */
static inline void put_code(Folding *f, u32 code, int spaceless)
{
    u8 *out = f->out;
    if (code >= UNITS) {
        out[0] = (u8)(0xF0 | code >> 18);
        out[1] = (u8)(0x80 | (code >> 12 & 0x3F));
        out[2] = (u8)(0x80 | (code >> 6 & 0x3F));
        out[3] = (u8)(0x80 | (code & 0x3F));
        f->out += 4;
        f->following += 3;
    } else if (code >= 0x800) {
        out[0] = (u8)(0xE0 | code >> 12);
        out[1] = (u8)(0x80 | (code >> 6 & 0x3F));
        out[2] = (u8)(0x80 | (code & 0x3F));
        f->out += 3;
        f->following += 2;
    } else if (code >= 0x80) {
        out[0] = (u8)(0xC0 | code >> 6);
        out[1] = (u8)(0x80 | (code & 0x3F));
        f->out += 2;
        f->following += 1;
    } else {
        out[0] = (u8)code;
        f->out += code != SPACE || f->before != SPACE;
    }
    f->before = code == SPACE ? SPACE : 0;
    f->spaceless += (size_t)spaceless;
}

/* Makes room for the rest of the text, if it folds alone, and for one code point that does not. Returns 0 if there is
 * no memory. */
static inline int make_room(Folding *f)
{
    size_t used = (size_t)(f->out - f->form.start), wanted = used + 2 * (size_t)(f->end - f->at) + ROOM;
    if (wanted > f->form.size && !grow(&f->form, 2 * wanted))
        return 0;
    f->out = f->form.start + used;
    return 1;
}
