/* Symbols and gaps of an LD signature in few bits.
 *
 * After the count of the pairs come a part of fixed width for each pair, then a part of variable width. The fixed part
 * has the bits of the symbol after its first one bit, and the low bits of the gap. The variable part has two numbers in
 * unary, as that many zeros before a one: the zeros before the symbol's first one bit, and the high bits of the gap.
 * Gaps are geometrically distributed, so this is within a tenth of a bit of the optimum (Rice). In the fixed part the
 * whole bytes of all pairs come before their odd bits, because packing single bits takes longer. */

#pragma once

#include "job.h"
#include "platform.h"

enum { MAX_STEP = 0x7F, PAIR_COUNT_BYTES = 2, MAX_PAIRS = 0xFFFF, MAX_LOW_BITS = 5 };
enum { WORD_SYMBOL_BITS = 32 - GAP_BITS, SPLIT_SYMBOL_BITS = 16, MIN_KEPT_BITS = 9 };

typedef struct {
    unsigned symbol, kept, low;
} PairBits;

/* `whole` bits of each pair, 8 or 16, are written as bytes. Its `odd` remaining bits follow after the bytes of all pairs. */
typedef struct {
    PairBits bits;
    size_t count;
    unsigned whole, odd;
} Pairs;

typedef struct {
    u32 symbol, gap;
} Pair;

static int are_pair_bits(PairBits bits)
{
    if ((bits.symbol == WORD_SYMBOL_BITS || bits.symbol == SPLIT_SYMBOL_BITS) && bits.kept >= MIN_KEPT_BITS &&
        bits.kept <= bits.symbol && bits.low <= MAX_LOW_BITS)
        return 1;
    PyErr_SetString(PyExc_ValueError, "symbols of 19 or 16 bits, 9 or more of them kept, 0 to 5 low bits expected");
    return 0;
}

static Pairs pairs_of(size_t count, PairBits bits)
{
    unsigned width = bits.kept - 1 + bits.low;
    return (Pairs){bits, count, width & ~7u, width & 7};
}

static int is_split(const Pairs *p)
{
    return p->bits.symbol == SPLIT_SYMBOL_BITS;
}

static size_t symbol_size(const Pairs *p)
{
    return is_split(p) ? 2 : 4;
}

/* Returns the bytes before the unary part. */
static size_t pairs_before_unary(const Pairs *p)
{
    return PAIR_COUNT_BYTES + p->count * p->whole / 8 + (p->count * p->odd + 7) / 8;
}

static Pair pair_at(const Pairs *p, const u8 *ld, const u8 *gaps, size_t i)
{
    if (is_split(p))
        return (Pair){(u32)ld[2 * i + 1] << 8 | ld[2 * i], gaps[i]};
    u32 word;
    memcpy(&word, ld + 4 * i, 4);
    return (Pair){word >> GAP_BITS, word & ((1u << GAP_BITS) - 1)};
}

/* Returns the number of zero bits before the first one bit. */
static unsigned zeros_of(const Pairs *p, u32 symbol)
{
    return symbol ? (unsigned)__builtin_clz(symbol) - (32 - p->bits.symbol) : p->bits.symbol;
}

/* Returns the bits after the first one bit, moved to the top of the symbol. */
static u32 after_one(const Pairs *p, u32 symbol, unsigned zeros)
{
    return (u32)((u64)symbol << (zeros + 1) & ((1u << p->bits.symbol) - 1));
}

/* Returns the number of bits in the unary part. It is 0 if there are no pairs, if a gap is too large, or if a symbol
 * has more bits than are kept. */
static size_t unary_bits(const Pairs *p, const u8 *ld, const u8 *gaps)
{
    u32 end = is_split(p) ? MAX_STEP + 1 : (1u << GAP_BITS) - 1;
    u32 lost = (1u << (p->bits.symbol - p->bits.kept + 1)) - 1;
    size_t bits = 0;
    for (size_t i = 0; i < p->count; i++) {
        Pair pair = pair_at(p, ld, gaps, i);
        unsigned zeros = zeros_of(p, pair.symbol);
        if (pair.gap >= end || after_one(p, pair.symbol, zeros) & lost)
            return 0;
        bits += zeros + 1 + (pair.gap >> p->bits.low) + 1;
    }
    return bits;
}

/* Writes a one bit at a bit position and returns the next position. */
static size_t write_one(u8 *unary, size_t end)
{
    unary[end / 8] |= (u8)(0x80 >> end % 8);
    return end + 1;
}

/* Writes the packed pairs. All bytes of `out` must be zero. */
static void write_pairs(const Pairs *p, const u8 *ld, const u8 *gaps, u8 *out)
{
    u8 *head = out + PAIR_COUNT_BYTES, *middle = head + p->count * p->whole / 8, *unary = out + pairs_before_unary(p);
    size_t bit = 0, end = 0;
    u32 low = (1u << p->bits.low) - 1;
    out[0] = (u8)(p->count >> 8);
    out[1] = (u8)p->count;
    for (size_t i = 0; i < p->count; i++) {
        Pair pair = pair_at(p, ld, gaps, i);
        unsigned zeros = zeros_of(p, pair.symbol);
        u32 fixed = after_one(p, pair.symbol, zeros) >> (p->bits.symbol - p->bits.kept + 1);
        fixed = fixed << p->bits.low | (pair.gap & low);
        for (unsigned written = 0; written < p->whole; written += 8, fixed >>= 8)
            *head++ = (u8)fixed;
        if (p->odd) {
            fixed <<= 16 - p->odd - bit % 8;
            middle[bit / 8] |= (u8)(fixed >> 8);
            middle[bit / 8 + 1] |= (u8)fixed; /* after the last pair this is 0 and changes no byte of the unary part */
            bit += p->odd;
        }
        end = write_one(unary, end + zeros);
        end = write_one(unary, end + (pair.gap >> p->bits.low));
    }
}

/* The unary part. `window` has its next bits, the first one lowest, and zeros above them. */
typedef struct {
    const u8 *packed;
    size_t bits, at; /* of all of `packed`, and of those before the window */
    u64 window;
    unsigned left; /* bits in the window */
} Unary;

static u64 reversed_in_bytes(u64 bytes)
{
    bytes = (bytes >> 4 & 0x0F0F0F0F0F0F0F0F) | (bytes & 0x0F0F0F0F0F0F0F0F) << 4;
    bytes = (bytes >> 2 & 0x3333333333333333) | (bytes & 0x3333333333333333) << 2;
    return (bytes >> 1 & 0x5555555555555555) | (bytes & 0x5555555555555555) << 1;
}

/* Returns the number of zero bits before the next one bit, and moves past that bit. Returns `bits` if there is none. */
static size_t zeros_before_one(Unary *u)
{
    size_t start = u->at;
    u->window = u->left = 0;
    for (; u->at < u->bits; u->at++)
        if (u->packed[u->at / 8] & 0x80 >> u->at % 8)
            return u->at++ - start;
    return u->bits;
}

static void fill_window(Unary *u)
{
    size_t start = u->at / 8, end = u->bits / 8, bytes = end - start;
    u->window = 0;
    if (bytes >= 8)
        memcpy(&u->window, u->packed + start, 8);
    else
        memcpy(&u->window, u->packed + start, bytes);
    u->window = reversed_in_bytes(u->window) >> u->at % 8;
    u->left = 64 - u->at % 8;
}

/* Reads two runs of zero bits, each before a one bit. Returns 0 if a one bit is missing. */
static inline int read_runs(Unary *u, size_t runs[2])
{
    if (u->left < 32)
        fill_window(u);
    u64 after = u->window & (u->window - 1); /* without the first one bit */
    if (after) {
        unsigned first = (unsigned)__builtin_ctzll(u->window), second = (unsigned)__builtin_ctzll(after);
        runs[0] = first;
        runs[1] = second - first - 1;
        u->window = after >> second >> 1;
        u->left -= second + 1;
        u->at += second + 1;
        return 1;
    }
    runs[0] = zeros_before_one(u);
    runs[1] = zeros_before_one(u);
    return runs[1] < u->bits;
}

/* Returns the symbol with these zero bits, then a one bit, then `rest`. */
static u32 symbol_of(const Pairs *p, size_t zeros, u32 rest)
{
    return (u32)(((u64)1 << (p->bits.kept - 1) | rest) << (p->bits.symbol - p->bits.kept) >> zeros);
}

/* Restores the pairs. Returns 0 if the unary part ends too early. `packed` must have at least one byte of it. */
static int read_pairs(const Pairs *p, const u8 *packed, size_t size, u8 *ld, u8 *gaps)
{
    const u8 *head = packed + PAIR_COUNT_BYTES, *middle = head + p->count * p->whole / 8;
    size_t bit = 0, runs[2];
    Unary unary = {packed, 8 * size, 8 * pairs_before_unary(p), 0, 0};
    for (size_t i = 0; i < p->count; i++, head += p->whole / 8) {
        u32 fixed = 0, bytes = p->whole > 8 ? (u32)head[1] << 8 | head[0] : head[0];
        if (p->odd) {
            u32 two_bytes = (u32)middle[bit / 8] << 8 | middle[bit / 8 + 1];
            fixed = two_bytes >> (16 - p->odd - bit % 8) & ((1u << p->odd) - 1);
            bit += p->odd;
        }
        fixed = fixed << p->whole | bytes;
        if (!read_runs(&unary, runs) || runs[0] > p->bits.symbol)
            return 0;
        u32 symbol = symbol_of(p, runs[0], fixed >> p->bits.low);
        u32 gap = (u32)runs[1] << p->bits.low | (fixed & ((1u << p->bits.low) - 1));
        if (is_split(p)) {
            ld[2 * i] = (u8)symbol;
            ld[2 * i + 1] = (u8)(symbol >> 8);
            gaps[i] = (u8)gap;
        } else
            memcpy(ld + 4 * i, &(u32){symbol << GAP_BITS | gap}, 4);
    }
    return 1;
}
