/* The LD signature of a normal form: sampled symbols with the gaps between them.
 *
 * Every window of 16 bytes is hashed. One in `rate` windows is sampled: those whose hash has only zeros in its top
 * bits. The bits below make its symbol (Coates, A Fast Metric of Document Similarity, 2011, where H mod C = 0). Equal
 * neighbours give one symbol, because a repetition carries no information. Where there are too many symbols, the rate
 * is doubled.
 *
 * A word is `symbol << 13 | gap`. A gap of 8,191 or more follows in a word of its own, and 8,191 takes its place. Apart
 * from their symbols, gaps are LEB128 in steps of an eighth of the rate. */

#pragma once

#include "job.h"
#include "platform.h"

enum { LANE = 512, LANES = 4, ESCAPE = (1 << GAP_BITS) - 1 };

static int log2_of(u64 power)
{
    int zeros = 0;
    while (power >>= 1)
        zeros++;
    return zeros;
}

/* Returns the finest rate for a normal form of this size. */
static u64 first_rate(const Numbers *n, size_t size)
{
    size_t passed = 0;
    for (size_t i = 0; i + 1 < n->rates; i++)
        passed += size >= n->length[i];
    return n->rates ? n->rate[passed] : 0;
}

/* ---- windows ---- */

static u64 first_window(const Context *c, const u8 *data)
{
    u64 sum = 0;
    for (int i = 0; i < LD_WINDOW_BYTES; i++)
        sum = sum * c->powers[1] + c->n.table[data[i]];
    return sum + c->n.ld_salt;
}

/* Hashes the windows that begin at the first LANES * lane bytes. It reads one byte after the last window.
 *
 * Each hash depends on the one before, which leaves a core idle. So four lanes of the text are hashed in turn.
 */
static inline void roll(const Context *c, const u8 *data, size_t lane, u64 *out)
{
    u64 base = c->powers[1], first = first_window(c, data), second = first_window(c, data + lane);
    u64 third = first_window(c, data + 2 * lane), fourth = first_window(c, data + 3 * lane);
    for (size_t i = 0; i < lane; i++, data++, out++) {
        out[0] = mix(first);
        out[lane] = mix(second);
        out[2 * lane] = mix(third);
        out[3 * lane] = mix(fourth);
        first = first * base + (c->entering[data[LD_WINDOW_BYTES]] - c->leaving[data[0]]);
        second = second * base + (c->entering[data[lane + LD_WINDOW_BYTES]] - c->leaving[data[lane]]);
        third = third * base + (c->entering[data[2 * lane + LD_WINDOW_BYTES]] - c->leaving[data[2 * lane]]);
        fourth = fourth * base + (c->entering[data[3 * lane + LD_WINDOW_BYTES]] - c->leaving[data[3 * lane]]);
    }
}

#ifdef VECTORS
/* Returns the top bits of four hashes. */
static inline __m128i top_bits(const u64 *hashes, __m128i below)
{
    __m128 low = _mm_castsi128_ps(_mm_loadu_si128((const __m128i *)hashes));
    __m128 high = _mm_castsi128_ps(_mm_loadu_si128((const __m128i *)(hashes + 2)));
    return _mm_srl_epi32(_mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1))), below);
}

/* Returns one bit for each of 16 hashes: whether its top bits are zero. Packing with saturation changes no zero and
 * makes no other value zero. */
static inline u64 sampled16(const u64 *hashes, __m128i below)
{
    __m128i first = _mm_packs_epi32(top_bits(hashes, below), top_bits(hashes + 4, below));
    __m128i second = _mm_packs_epi32(top_bits(hashes + 8, below), top_bits(hashes + 12, below));
    return (u64)(u32)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_packs_epi16(first, second), _mm_setzero_si128()));
}
#endif

/* Keeps the hashes that start with `zeros` zero bits, but never the largest one. `position` is that of the first hash. */
static void keep_sampled(Sampled *sampled, const u64 *hashes, size_t size, size_t position, int zeros)
{
    u64 *sampled_hashes = sampled->hashes, limit = zeros ? (u64)1 << (64 - zeros) : ~(u64)0;
    u32 *positions = sampled->positions;
    size_t count = sampled->count, i = 0;
#ifdef VECTORS
    __m128i below = _mm_cvtsi32_si128(32 - zeros);
    for (; zeros && i + 64 <= size; i += 64) {
        u64 mask = sampled16(hashes + i, below) | sampled16(hashes + i + 16, below) << 16 |
                   sampled16(hashes + i + 32, below) << 32 | sampled16(hashes + i + 48, below) << 48;
        while (mask) {
            for (int k = 0; k < 4; k++, mask &= mask - 1) { /* four at a time, since about one in 16 is kept */
                size_t at = i + (size_t)__builtin_ctzll(mask | (u64)1 << 63);
                sampled_hashes[count] = hashes[at];
                positions[count] = (u32)(position + at);
                count += mask != 0;
            }
        }
    }
#endif
    for (; i < size; i++) { /* without a branch: the next hash overwrites one that is not kept */
        sampled_hashes[count] = hashes[i];
        positions[count] = (u32)(position + i);
        count += hashes[i] < limit;
    }
    sampled->count = count;
}

/* Samples the windows of the text whose hashes start with `zeros` zero bits. */
static void sample(Job *job, int zeros)
{
    const Context *c = job->context;
    u64 hashes[LANES * LANE];
    job->sampled.count = 0;
    for (size_t start = 0, size; start + LD_WINDOW_BYTES <= job->size; start += size) {
        const u8 *data = job->data + start;
        size = smaller(job->size + 1 - LD_WINDOW_BYTES - start, LANES * LANE);
        if (size == LANES * LANE) {
            roll(c, data, LANE, hashes);
        } else {
            roll(c, data, size / LANES, hashes);
            for (size_t i = size / LANES * LANES; i < size; i++)
                hashes[i] = mix(first_window(c, data + i));
        }
        keep_sampled(&job->sampled, hashes, size, start, zeros);
    }
}

/* ---- symbols ---- */

static size_t put_varint(u8 *out, u64 value)
{
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        out[size++] = (u8)(value | 0x80);
    out[size++] = (u8)value;
    return size;
}

typedef struct {
    u64 symbols;
    u8 *ld, *gaps;
    u64 previous; /* position: in bytes, or in steps if gaps are stored apart */
} Packing;

/* Packs a symbol with its gap into one word. A long gap takes another word. */
static inline void pack_joined(Packing *p, u32 symbol, u32 position)
{
    u32 gap = position - (u32)p->previous;
    u32 word = symbol << GAP_BITS | (gap < ESCAPE ? gap : ESCAPE);
    memcpy(p->ld, &word, 4);
    p->ld += 4;
    if (gap >= ESCAPE) {
        memcpy(p->ld, &gap, 4);
        p->ld += 4;
    }
    p->previous = position;
}

/* Packs a symbol into two bytes, and its gap apart as a number of variable length. */
static inline void pack_split(Packing *p, u32 symbol, u32 position, u64 unit)
{
    u64 step = position / unit;
    u16 narrow = (u16)symbol;
    memcpy(p->ld, &narrow, 2);
    p->ld += 2;
    p->gaps += put_varint(p->gaps, step - p->previous);
    p->previous = step;
}

/* Packs the symbols of this rate. Returns 0 if there are too many. */
static int pack_ld(const Job *job, Result *result, int zeros)
{
    const Numbers n = job->context->n;
    const Sampled sampled = job->sampled;
    u64 unit = n.gap_bits ? 1 : ((u64)1 << zeros) / n.gap_steps;
    Packing packing = {0, result->ld, result->gaps, 0};
    u64 before = ~(u64)0;
    for (size_t i = 0; i < sampled.count; i++) {
        u64 symbol = sampled.hashes[i] << zeros >> (64 - n.symbol_bits);
        if (symbol == before)
            continue;
        before = symbol;
        if (packing.symbols++ == n.max_symbols)
            return 0;
        if (n.gap_bits)
            pack_joined(&packing, (u32)symbol, sampled.positions[i]);
        else
            pack_split(&packing, (u32)symbol, sampled.positions[i], unit);
    }
    result->ld_size = (size_t)(packing.ld - result->ld);
    result->gaps_size = (size_t)(packing.gaps - result->gaps);
    return 1;
}

/* Keeps the hashes up to the largest one. */
static void keep_to(Sampled *sampled, u64 largest)
{
    size_t count = 0;
    for (size_t i = 0; i < sampled->count; i++) {
        sampled->hashes[count] = sampled->hashes[i];
        sampled->positions[count] = sampled->positions[i];
        count += sampled->hashes[i] <= largest;
    }
    sampled->count = count;
}

static void ld_signature(Job *job, Result *result)
{
    int zeros = log2_of(first_rate(&job->context->n, job->size));
    sample(job, zeros);
    /* At 63 zeros two symbols remain. Only an invalid table could alternate them, and then the signature is empty. */
    for (; zeros < 63 && !pack_ld(job, result, zeros); zeros++)
        keep_to(&job->sampled, ~(u64)0 >> (zeros + 1));
    result->rate = (u64)1 << zeros;
}

/* Keeps the hashes of the sampled windows that become keys, at a rate that follows from the length of the text. */
static void keep_keys(Job *job, u64 rate)
{
    const Numbers *n = &job->context->n;
    Sampled *sampled = &job->sampled;
    int zeros = log2_of(rate);
    if (job->size >= n->sampled_below)
        return;
    while (zeros < 32 && job->size > n->usual_sampled << zeros)
        zeros++;
    keep_to(sampled, ~(u64)0 >> zeros);
    for (; sampled->count > n->max_sampled && zeros < 64; zeros++)
        keep_to(sampled, zeros < 63 ? ~(u64)0 >> (zeros + 1) : 0);
    if (sampled->count > n->max_sampled)
        sampled->count = 0; /* hashes without a one bit */
    memcpy(job->keys, sampled->hashes, sampled->count * sizeof(u64));
    job->n_keys = sampled->count;
}
