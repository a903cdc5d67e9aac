/* blake2b of two texts at once with AVX2, which gives the state of blake2b.h.
 *
 * Two texts at once are faster because in one text each step has to wait for the step before. */

#pragma once

#include "platform.h"
#include "signing/blake2b.h"

#ifdef VECTORS

#define AVX2 __attribute__((target("avx2")))
/* Makes the compiler add the two known operands first. It would otherwise wait for the last of three. */
#define ADDED(sum) __asm__("" : "+x"(sum))

/* Two words of each text, one text in each half of the vector. */
typedef __m256i Words;

static inline AVX2 Words both(const void *one, const void *other)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(one)), _mm_loadu_si128(other), 1);
}

typedef struct {
    Words a[2], b[2], c[2], d[2];
} Rows;

static inline AVX2 void mix_rows(Rows *r, int i, Words x, Words y)
{
    const Words by24 = _mm256_setr_epi8(3, 4, 5, 6, 7, 0, 1, 2, 11, 12, 13, 14, 15, 8, 9, 10, 3, 4, 5, 6, 7, 0, 1, 2,
                                        11, 12, 13, 14, 15, 8, 9, 10);
    const Words by16 = _mm256_setr_epi8(2, 3, 4, 5, 6, 7, 0, 1, 10, 11, 12, 13, 14, 15, 8, 9, 2, 3, 4, 5, 6, 7, 0, 1,
                                        10, 11, 12, 13, 14, 15, 8, 9);
    Words a = r->a[i], b = r->b[i], c = r->c[i], d = r->d[i];
    a = _mm256_add_epi64(a, x);
    ADDED(a);
    a = _mm256_add_epi64(a, b);
    d = _mm256_shuffle_epi32(_mm256_xor_si256(d, a), 0xB1);
    c = _mm256_add_epi64(c, d);
    b = _mm256_shuffle_epi8(_mm256_xor_si256(b, c), by24);
    a = _mm256_add_epi64(a, y);
    ADDED(a);
    a = _mm256_add_epi64(a, b);
    d = _mm256_shuffle_epi8(_mm256_xor_si256(d, a), by16);
    c = _mm256_add_epi64(c, d);
    b = _mm256_xor_si256(b, c);
    b = _mm256_or_si256(_mm256_srli_epi64(b, 63), _mm256_add_epi64(b, b));
    r->a[i] = a, r->b[i] = b, r->c[i] = c, r->d[i] = d;
}

/* Rotates a row by one word to the left. With swap_rows this turns diagonals into columns, and back. */
static inline AVX2 void turn_rows(Words *row)
{
    Words first = row[0];
    row[0] = _mm256_alignr_epi8(row[1], first, 8);
    row[1] = _mm256_alignr_epi8(first, row[1], 8);
}

static inline AVX2 void swap_rows(Words *row)
{
    Words first = row[0];
    row[0] = row[1];
    row[1] = first;
}

static inline AVX2 void add_state(DigestState *one, DigestState *other, int at, Words words)
{
    words = _mm256_xor_si256(words, both(one->state + at, other->state + at));
    _mm_storeu_si128((__m128i *)(one->state + at), _mm256_castsi256_si128(words));
    _mm_storeu_si128((__m128i *)(other->state + at), _mm256_extracti128_si256(words, 1));
}

static AVX2 void hash_two_blocks(DigestState *one, DigestState *other)
{
    const u8 *blocks[2] = {next_block(one), next_block(other)};
    u64 ends[2][4] = {{one->hashed, 0, one->done ? ~(u64)0 : 0, 0}, {other->hashed, 0, other->done ? ~(u64)0 : 0, 0}};
    Words m[8];
    Rows r;
    for (int i = 0; i < 8; i++)
        m[i] = both(blocks[0] + 16 * i, blocks[1] + 16 * i);
    for (int i = 0; i < 2; i++) {
        r.a[i] = both(one->state + 2 * i, other->state + 2 * i);
        r.b[i] = both(one->state + 4 + 2 * i, other->state + 4 + 2 * i);
        r.c[i] = both(BLAKE2B_START + 2 * i, BLAKE2B_START + 2 * i);
        r.d[i] = _mm256_xor_si256(both(BLAKE2B_START + 4 + 2 * i, BLAKE2B_START + 4 + 2 * i),
                                  both(ends[0] + 2 * i, ends[1] + 2 * i));
    }
#define PICK(i, j)                                                                                                     \
    (i % 2 ? j % 2 ? _mm256_unpackhi_epi64(m[i / 2], m[j / 2]) : _mm256_alignr_epi8(m[j / 2], m[i / 2], 8)             \
           : j % 2 ? _mm256_blend_epi32(m[i / 2], m[j / 2], 0xCC) : _mm256_unpacklo_epi64(m[i / 2], m[j / 2]))
#define ROUND(a_, b_, c_, d_, e_, f_, g_, h_, i_, j_, k_, l_, n_, o_, p_, q_)                                          \
    mix_rows(&r, 0, PICK(a_, c_), PICK(b_, d_));                                                                       \
    mix_rows(&r, 1, PICK(e_, g_), PICK(f_, h_));                                                                       \
    turn_rows(r.b);                                                                                                    \
    swap_rows(r.c);                                                                                                    \
    swap_rows(r.d);                                                                                                    \
    turn_rows(r.d);                                                                                                    \
    mix_rows(&r, 0, PICK(i_, k_), PICK(j_, l_));                                                                       \
    mix_rows(&r, 1, PICK(n_, p_), PICK(o_, q_));                                                                       \
    swap_rows(r.b);                                                                                                    \
    turn_rows(r.b);                                                                                                    \
    swap_rows(r.c);                                                                                                    \
    turn_rows(r.d);
    ALL_ROUNDS(ROUND)
#undef ROUND
#undef PICK
    for (int i = 0; i < 2; i++) {
        add_state(one, other, 2 * i, _mm256_xor_si256(r.a[i], r.c[i]));
        add_state(one, other, 4 + 2 * i, _mm256_xor_si256(r.b[i], r.d[i]));
    }
}

#endif
