/* Keyed blake2b (RFC 7693).
 *
 * A document has two digests of 16 bytes, one of its text and one of its normal form. */

#pragma once

#include "platform.h"

enum { BLAKE2B_BLOCK = 128, DIGEST = 16, DIGEST_KEY = 32 }; /* bytes (DIGEST: DIGEST_BYTES of hashing.py) */

static const u64 BLAKE2B_START[8] = {
    0x6A09E667F3BCC908u, 0xBB67AE8584CAA73Bu, 0x3C6EF372FE94F82Bu, 0xA54FF53A5F1D36F1u,
    0x510E527FADE682D1u, 0x9B05688C2B3E6C1Fu, 0x1F83D9ABFB41BD6Bu, 0x5BE0CD19137E2179u,
};

/* The order in which each of the twelve rounds takes the words of a block. */
#define ALL_ROUNDS(ROUND)                                                                                              \
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)                                                        \
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3)                                                        \
    ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4)                                                        \
    ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8)                                                        \
    ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13)                                                        \
    ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9)                                                        \
    ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11)                                                        \
    ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10)                                                        \
    ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5)                                                        \
    ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0)                                                        \
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)                                                        \
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3)

/* The state of blake2b while it hashes a text. */
typedef struct {
    u64 state[8];
    const u8 *data;
    size_t left; /* bytes not hashed yet */
    u64 hashed;  /* bytes, including the block of the key */
    int done;
    u8 padded[BLAKE2B_BLOCK];
} DigestState;

/* Returns the next block and counts it as hashed. The last block is padded, and is empty only in an empty text. */
static inline const u8 *next_block(DigestState *d)
{
    const u8 *block = d->data;
    if (d->left > BLAKE2B_BLOCK) {
        d->data += BLAKE2B_BLOCK;
        d->left -= BLAKE2B_BLOCK;
        d->hashed += BLAKE2B_BLOCK;
        return block;
    }
    memset(d->padded, 0, BLAKE2B_BLOCK);
    if (d->left)
        memcpy(d->padded, block, d->left);
    d->hashed += d->left;
    d->left = 0;
    d->done = 1;
    return d->padded;
}

static inline u64 rotated(u64 x, int by)
{
    return x >> by | x << (64 - by);
}

/* The mixing function G of RFC 7693. */
static inline void mix_four(u64 *a, u64 *b, u64 *c, u64 *d, u64 x, u64 y)
{
    *a += *b + x;
    *d = rotated(*d ^ *a, 32);
    *c += *d;
    *b = rotated(*b ^ *c, 24);
    *a += *b + y;
    *d = rotated(*d ^ *a, 16);
    *c += *d;
    *b = rotated(*b ^ *c, 63);
}

static void hash_block(DigestState *d)
{
    u64 v[16], m[16];
    memcpy(m, next_block(d), BLAKE2B_BLOCK);
    memcpy(v, d->state, sizeof d->state);
    memcpy(v + 8, BLAKE2B_START, sizeof BLAKE2B_START);
    v[12] ^= d->hashed;
    v[14] ^= d->done ? ~(u64)0 : 0;
#define ROUND(a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q)                                                          \
    mix_four(v, v + 4, v + 8, v + 12, m[a], m[b]);                                                                     \
    mix_four(v + 1, v + 5, v + 9, v + 13, m[c], m[d]);                                                                 \
    mix_four(v + 2, v + 6, v + 10, v + 14, m[e], m[f]);                                                                \
    mix_four(v + 3, v + 7, v + 11, v + 15, m[g], m[h]);                                                                \
    mix_four(v, v + 5, v + 10, v + 15, m[i], m[j]);                                                                    \
    mix_four(v + 1, v + 6, v + 11, v + 12, m[k], m[l]);                                                                \
    mix_four(v + 2, v + 7, v + 8, v + 13, m[n], m[o]);                                                                 \
    mix_four(v + 3, v + 4, v + 9, v + 14, m[p], m[q]);
    ALL_ROUNDS(ROUND)
#undef ROUND
    for (int i = 0; i < 8; i++)
        d->state[i] ^= v[i] ^ v[i + 8];
}

/* Computes the state before the block of the key, and after it. */
static void start_keyed(const u8 *key_block, u64 *unkeyed, u64 *keyed)
{
    DigestState d = {.data = key_block, .left = BLAKE2B_BLOCK + 1}; /* one byte more, as this block is not the last */
    memcpy(d.state, BLAKE2B_START, sizeof d.state);
    d.state[0] ^= 0x01010000 ^ DIGEST_KEY << 8 ^ DIGEST;
    memcpy(unkeyed, d.state, sizeof d.state);
    hash_block(&d);
    memcpy(keyed, d.state, sizeof d.state);
}

/* Hashes a text to its end. */
static void hash_text(DigestState *d)
{
    while (!d->done)
        hash_block(d);
}
