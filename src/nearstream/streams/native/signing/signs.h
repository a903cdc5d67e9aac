/* Signs that mean something, each with the letter or digit that follows it. signing/signer.py says which these are. */

#pragma once

#include "platform.h"

enum { NO_SIGN, ALWAYS_SIGN, MATH_SIGN, MARK_SIGN, POINT_SIGN, OPERATOR_SIGN, NOT_SIGN, HASH_SIGN, WIDE_SIGN,
       PRIVATE_SIGN };
enum { MATH_ROW = 3, PRIVATE_RUN = 3 };

/* What each byte may be. The first bytes of code points in UTF-8 that may be signs are WIDE_SIGN. */
static const u8 sign_kinds[256] = {
    ['$'] = ALWAYS_SIGN, ['%'] = ALWAYS_SIGN, ['&'] = ALWAYS_SIGN, ['+'] = MATH_SIGN, ['<'] = MATH_SIGN,
    ['='] = MATH_SIGN, ['>'] = MATH_SIGN, [','] = MARK_SIGN, [':'] = MARK_SIGN, ['\''] = MARK_SIGN,
    ['.'] = POINT_SIGN, ['-'] = POINT_SIGN, ['/'] = OPERATOR_SIGN, ['*'] = OPERATOR_SIGN, ['^'] = OPERATOR_SIGN,
    ['!'] = NOT_SIGN, ['#'] = HASH_SIGN, [0xC2] = WIDE_SIGN, [0xC3] = WIDE_SIGN, [0xD6] = WIDE_SIGN, [0xD8] = WIDE_SIGN,
    [0xD9] = WIDE_SIGN, [0xDF] = WIDE_SIGN, [0xE0] = WIDE_SIGN, [0xE1] = WIDE_SIGN, [0xE2] = WIDE_SIGN,
    [0xEA] = WIDE_SIGN, [0xEE] = WIDE_SIGN, [0xEF] = WIDE_SIGN, [0xF0] = WIDE_SIGN, [0xF3] = WIDE_SIGN,
    [0xF4] = WIDE_SIGN,
};

typedef struct {
    u32 from, to;
    u8 kind;
} WideSigns;

/* By number of bytes in UTF-8, in ascending order. Private code points count in runs, because one alone is a bullet or
 * an icon. */
#define LAST_SIGN {0xFFFFFFFF, 0, NO_SIGN}
static const WideSigns wide_signs[3][20] = {
    {{0xA2, 0xA5, ALWAYS_SIGN}, {0xAC, 0xAC, ALWAYS_SIGN}, {0xB0, 0xB1, ALWAYS_SIGN}, {0xD7, 0xD7, ALWAYS_SIGN},
     {0xF7, 0xF7, ALWAYS_SIGN}, {0x58F, 0x58F, ALWAYS_SIGN}, {0x60B, 0x60B, ALWAYS_SIGN}, {0x66B, 0x66C, MARK_SIGN},
     {0x7FE, 0x7FF, ALWAYS_SIGN}, LAST_SIGN},
    {{0x9F2, 0x9F3, ALWAYS_SIGN}, {0x9FB, 0x9FB, ALWAYS_SIGN}, {0xAF1, 0xAF1, ALWAYS_SIGN},
     {0xBF9, 0xBF9, ALWAYS_SIGN}, {0xE3F, 0xE3F, ALWAYS_SIGN}, {0x17DB, 0x17DB, ALWAYS_SIGN},
     {0x2010, 0x2013, POINT_SIGN}, {0x2019, 0x2019, MARK_SIGN}, {0x2030, 0x2031, ALWAYS_SIGN}, {0x2044, 0x2044, MARK_SIGN},
     {0x20A0, 0x20C0, ALWAYS_SIGN}, {0x2190, 0x23FF, ALWAYS_SIGN}, {0x2600, 0x2BFF, ALWAYS_SIGN},
     {0xA838, 0xA838, ALWAYS_SIGN}, {0xE000, 0xF8FF, PRIVATE_SIGN}, {0xFF04, 0xFF06, ALWAYS_SIGN},
     {0xFF0B, 0xFF0B, ALWAYS_SIGN}, {0xFF1C, 0xFF1E, ALWAYS_SIGN}, {0xFFE0, 0xFFE6, ALWAYS_SIGN}, LAST_SIGN},
    {{0x11FDD, 0x11FE0, ALWAYS_SIGN}, {0x1E2FF, 0x1E2FF, ALWAYS_SIGN}, {0x1ECB0, 0x1ECB0, ALWAYS_SIGN},
     {0x1F000, 0x1FAFF, ALWAYS_SIGN}, {0xF0000, 0x10FFFD, PRIVATE_SIGN}, LAST_SIGN},
};

/* By first byte of common scripts: the last bytes of the few signs among them, 0 for any. */
#define ENDS_WITH(byte) (1ull << ((byte) & 0x3F))
static const u64 rare_ends[256] = {
    [0xD6] = ENDS_WITH(0x8F),
    [0xD8] = ENDS_WITH(0x8B),
    [0xD9] = ENDS_WITH(0xAB) | ENDS_WITH(0xAC),
    [0xE0] = ENDS_WITH(0xB1) | ENDS_WITH(0xB2) | ENDS_WITH(0xB3) | ENDS_WITH(0xB9) | ENDS_WITH(0xBB) | ENDS_WITH(0xBF),
    [0xE1] = ENDS_WITH(0x9B),
    [0xEA] = ENDS_WITH(0xB8),
};

/* A place in a text. Beyond its ends there are zero bytes. */
typedef struct {
    const u8 *text;
    size_t size, at;
} Place;

static u8 byte_at(const Place *place, ptrdiff_t offset)
{
    ptrdiff_t at = (ptrdiff_t)place->at + offset;
    return at < 0 || at >= (ptrdiff_t)place->size ? 0 : place->text[at];
}

static int is_digit(u8 byte)
{
    return byte >= '0' && byte <= '9';
}

static int is_word(u8 byte)
{
    return is_digit(byte) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

static int is_space(u8 byte)
{
    return byte == SPACE || (byte >= '\t' && byte <= '\r');
}

static int is_one_of(u8 byte, const char *bytes)
{
    return byte && strchr(bytes, byte) != NULL;
}

/* Returns what the code point at a place is, and writes its number of bytes. */
static u8 wide_sign(const Place *place, ptrdiff_t *width)
{
    u8 first = byte_at(place, 0);
    *width = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (place->at + (size_t)*width > place->size)
        return NO_SIGN;
    u64 ends = rare_ends[first];
    if (ends && !(ends >> (byte_at(place, *width - 1) & 0x3F) & 1))
        return NO_SIGN;
    u32 code = first & (0xFFu >> (*width + 1));
    for (ptrdiff_t i = 1; i < *width; i++)
        code = code << 6 | (byte_at(place, i) & 0x3F);
    for (const WideSigns *sign = wide_signs[*width - 2]; code >= sign->from; sign++)
        if (code <= sign->to)
            return sign->kind;
    return NO_SIGN;
}

/* Returns the bytes of a run of private code points, 0 if it is short. */
static ptrdiff_t private_run(Place place)
{
    size_t start = place.at, count = 0;
    ptrdiff_t width = 0;
    while (sign_kinds[byte_at(&place, 0)] == WIDE_SIGN && wide_sign(&place, &width) == PRIVATE_SIGN) {
        place.at += (size_t)width;
        count++;
    }
    return count < PRIVATE_RUN ? 0 : (ptrdiff_t)(place.at - start);
}

/* Returns the bytes of a row of mathematical signs, 0 if it is layout. */
static ptrdiff_t math_row(const Place *place)
{
    u8 before = byte_at(place, -1);
    ptrdiff_t row = 1;
    int is_quote = byte_at(place, 0) == '>' && (!place->at || before == '\n');
    if (is_quote || sign_kinds[before] == MATH_SIGN)
        return 0;
    while (row <= MATH_ROW && sign_kinds[byte_at(place, row)] == MATH_SIGN)
        row++;
    return row <= MATH_ROW ? row : 0;
}

static int is_break(u8 byte)
{
    return byte == SPACE || byte == '\n';
}

/* Returns whether `*`, `/` or `^` stands between two words. */
static int is_operator(const Place *place)
{
    u8 before = byte_at(place, -1), after = byte_at(place, 1);
    if (is_break(before) && is_break(after))
        return byte_at(place, 0) != '*' && is_word(byte_at(place, -2)) && is_word(byte_at(place, 2));
    return byte_at(place, 0) != '/' && is_word(before) && is_word(after);
}

/* Returns the bytes of the sign at a place, 0 if there is none. */
static ptrdiff_t sign_at(const Place *place)
{
    ptrdiff_t width = 1;
    u8 kind = sign_kinds[byte_at(place, 0)];
    if (kind == WIDE_SIGN)
        kind = wide_sign(place, &width);
    if (kind == NO_SIGN)
        return 0;
    if (kind == PRIVATE_SIGN)
        return private_run(*place);
    u8 before = byte_at(place, -1), after = byte_at(place, width);
    int counts = kind == ALWAYS_SIGN;
    if (kind == MATH_SIGN)
        return math_row(place);
    if (kind == MARK_SIGN || kind == POINT_SIGN || kind == OPERATOR_SIGN)
        counts = is_digit(before) && is_digit(after);
    if (kind == POINT_SIGN)
        counts |= is_digit(after) && !is_word(before) && !is_one_of(before, ".,')]-");
    if (kind == OPERATOR_SIGN)
        counts |= is_operator(place);
    if (kind == HASH_SIGN)
        counts = is_word(before) && !is_word(after);
    if (kind == NOT_SIGN)
        counts = after == '=' || (!is_word(before) && !is_one_of(before, "!?") && (is_word(after) || after == '('));
    return counts ? width : 0;
}

/* Writes the signs of a text, each with the letter or digit that follows, to memory of the size of the text. Returns
 * how many bytes they have. */
static size_t write_signs(const u8 *text, size_t size, u8 *out)
{
    u8 *to = out;
    Place place = {text, size, 0};
    while (place.at < size) {
        ptrdiff_t width = sign_kinds[text[place.at]] == NO_SIGN ? 0 : sign_at(&place);
        if (!width) {
            place.at++;
            continue;
        }
        memcpy(to, text + place.at, (size_t)width);
        to += width;
        place.at += (size_t)width;
        while (is_space(byte_at(&place, 0)))
            place.at++;
        if (is_word(byte_at(&place, 0)))
            *to++ = text[place.at++];
    }
    return (size_t)(to - out);
}
