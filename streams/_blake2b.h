/* Keyed blake2b (RFC 7693) of two texts: the digests of a document are those of its text and of its normal form.
 *
 * Included by _native.c alone.
 */
enum { BLOCK = 128, DIGEST = 16, DIGEST_KEY = 32 };

static const u64 BLAKE2B_START[8] = {
    0x6A09E667F3BCC908u, 0xBB67AE8584CAA73Bu, 0x3C6EF372FE94F82Bu, 0xA54FF53A5F1D36F1u,
    0x510E527FADE682D1u, 0x9B05688C2B3E6C1Fu, 0x1F83D9ABFB41BD6Bu, 0x5BE0CD19137E2179u,
};

/* In which order each of twelve rounds takes the words of a block. */
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

/* A text on its way to a digest. */
typedef struct {
    u64 state[8];
    const u8 *data;
    size_t left; /* bytes not yet taken in */
    u64 taken;   /* bytes, those of the key included */
    int done;
    u8 padded[BLOCK];
} Digesting;

/* The next block, counted as taken; the last one is filled up, and never empty but in an empty text. */
static inline const u8 *next_block(Digesting *d)
{
    const u8 *block = d->data;
    if (d->left > BLOCK) {
        d->data += BLOCK;
        d->left -= BLOCK;
        d->taken += BLOCK;
        return block;
    }
    memset(d->padded, 0, BLOCK);
    if (d->left)
        memcpy(d->padded, block, d->left);
    d->taken += d->left;
    d->left = 0;
    d->done = 1;
    return d->padded;
}

static inline u64 turned(u64 x, int by)
{
    return x >> by | x << (64 - by);
}

static inline void mix_four(u64 *a, u64 *b, u64 *c, u64 *d, u64 x, u64 y)
{
    *a += *b + x;
    *d = turned(*d ^ *a, 32);
    *c += *d;
    *b = turned(*b ^ *c, 24);
    *a += *b + y;
    *d = turned(*d ^ *a, 16);
    *c += *d;
    *b = turned(*b ^ *c, 63);
}

static void take_block(Digesting *digesting)
{
    u64 v[16], m[16];
    memcpy(m, next_block(digesting), BLOCK);
    memcpy(v, digesting->state, sizeof digesting->state);
    memcpy(v + 8, BLAKE2B_START, sizeof BLAKE2B_START);
    v[12] ^= digesting->taken;
    v[14] ^= digesting->done ? ~(u64)0 : 0;
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
        digesting->state[i] ^= v[i] ^ v[i + 8];
}

#ifdef VECTORS
#include "_blake2b_avx2.h"
#endif

/* The state before the key, and after its block. */
static void start_keyed(const u8 *key_block, u64 *unkeyed, u64 *keyed)
{
    Digesting d = {.data = key_block, .left = BLOCK + 1}; /* it is not the last one */
    memcpy(d.state, BLAKE2B_START, sizeof d.state);
    d.state[0] ^= 0x01010000 ^ DIGEST_KEY << 8 ^ DIGEST;
    memcpy(unkeyed, d.state, sizeof d.state);
    take_block(&d);
    memcpy(keyed, d.state, sizeof d.state);
}

/* Both texts to their ends. */
static void take_all(Digesting *one, Digesting *other)
{
#ifdef VECTORS
    if (__builtin_cpu_supports("avx2"))
        while (!one->done && !other->done)
            take_two_blocks(one, other);
#endif
    while (!one->done)
        take_block(one);
    while (!other->done)
        take_block(other);
}
