/* Keyed digests of one text and of two (blake2b, RFC 7693). */

#pragma once

#include "platform.h"
#include "signing/blake2b_avx2.h"

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

/* Hashes both texts to their ends. */
static void hash_both(DigestState *one, DigestState *other)
{
#ifdef VECTORS
    if (__builtin_cpu_supports("avx2"))
        while (!one->done && !other->done)
            hash_two_blocks(one, other);
#endif
    while (!one->done)
        hash_block(one);
    while (!other->done)
        hash_block(other);
}
