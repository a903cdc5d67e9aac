/* The data that all parts of signing share, and the mixers of hashes.
 *
 * `fmix64` is the 64-bit finaliser of MurmurHash3 (Appleby 2011), all of whose bits are well mixed. `mix` has one
 * multiplication, of which only the top bits are well mixed: it is for hashes that are needed at every byte. */

#pragma once

#include "platform.h"
#include "signing/blake2b.h"

/* Python has these numbers too: SLOTS, LD_WINDOW_BYTES in fingerprints/parameters.py, and MAX_RATES in
 * signing/signer.py. tests/property/test_native.py fails if they differ. */
enum { SLOTS = 128, LD_WINDOW_BYTES = 16, GAP_BITS = 13, MAX_RATES = 8 };
/* Limits of the arrays below. Those of fingerprints/parameters.py are not larger. */
enum { MAX_POWER = 64, MAX_KEPT = 1 << 16, MAX_RUN = 1 << 12, MAX_SAMPLED = 1 << 10 };
enum { CHUNK = 8 }; /* bytes of a word that are hashed together */

/* The numbers that signing/signer.py packs for each signer. */
typedef struct {
    u64 table[256];
    u64 base, word_base;
    u64 sketch_salt, ld_salt, anchor_salt;
    u64 digest_key[4];
    u64 mark_run, spaceless_share, word_bytes;
    u64 sketch_bits, shingle_words, shingle_bytes;
    u64 rates;
    u64 rate[MAX_RATES], length[MAX_RATES];
    u64 symbol_bits, gap_bits, gap_steps, max_symbols;
    u64 anchor_words, anchor_bytes, run, spaceless_factor, max_anchors;
    u64 dense_below;
    u64 sampled_below, usual_sampled, max_sampled; /* LD windows that become keys besides anchors */
    u64 noise_bytes, noise_rate, max_noise;        /* other windows that do. max_noise 0: none */
} Numbers;

/* Memory that a context keeps for its next text, because to allocate it takes longer than to hash a short text. */
typedef struct {
    u8 *start;
    size_t size;
} Buffer;

enum { MAX_IDLE = 1 << 22 }; /* bytes of a buffer that is kept */

/* Enlarges a buffer to `wanted` bytes and keeps its content. Returns 0 if there is no memory. */
static int grow(Buffer *buffer, size_t wanted)
{
    if (wanted <= buffer->size)
        return 1;
    u8 *start = realloc(buffer->start, wanted);
    if (!start)
        return 0;
    *buffer = (Buffer){start, wanted};
    return 1;
}

static Buffer take_idle(Buffer *idle)
{
    Buffer buffer = *idle;
    *idle = (Buffer){0};
    return buffer;
}

static void leave_idle(Buffer *idle, Buffer buffer)
{
    if (idle->start || buffer.size > MAX_IDLE)
        free(buffer.start);
    else
        *idle = buffer;
}

/* The numbers of a signer, and tables derived from them. */
typedef struct {
    Numbers n;
    u64 powers[MAX_POWER + 1], word_powers[MAX_POWER + 1];
    /* The table multiplied by each power. The entry of byte 0, which no word contains, is 0, so that bytes which are
     * masked out add nothing. */
    u64 scaled[CHUNK][256];
    u64 entering[256], leaving[256]; /* what a byte adds to the hash of an LD window, and what it takes away */
    u8 key_block[BLAKE2B_BLOCK];
    u64 unkeyed[8], keyed[8]; /* state of blake2b before and after the block of the key */
    Buffer form, scratch;     /* empty while a call uses them */
} Context;

/* LD windows whose top bits are zero. */
typedef struct {
    size_t count;
    u32 *positions;
    u64 *hashes;
} Sampled;

/* A normal form, and the scratch memory for its signature. */
typedef struct {
    const Context *context;
    const u8 *data; /* after PADDING bytes */
    size_t size;
    int spaceless;
    size_t characters; /* code points */
    size_t words;      /* hashed so far */
    size_t most_words;
    size_t most_windows; /* elements of each list from `shingles` to `spare` */
    u32 *spaces;
    u64 *prefix;           /* over bytes, only if spaceless */
    u32 *character_starts; /* only if spaceless */
    u64 *words_prefix;
    Sampled sampled;
    u64 *keys; /* hashes of sampled windows that become keys */
    size_t n_keys;
    u64 *shingles, *windows, *spare, *table; /* overlap with `sampled`, which is no longer needed then */
    size_t table_size;
} Job;

/* The fields of the signature that depend on the text. */
typedef struct {
    size_t shingles, ld_size, gaps_size, anchors;
    u64 rate;
    u8 digest[DIGEST], raw_digest[DIGEST];
    u8 sketch[SLOTS * 4];
    u8 *ld, *gaps;
    u64 *anchor;
} Result;

static inline u64 fmix64(u64 x)
{
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCDu;
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53u;
    return x ^ x >> 33;
}

static inline u64 mix(u64 x)
{
    return (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
}

static inline u64 smaller(u64 a, u64 b)
{
    return a < b ? a : b;
}

/* ---- contexts ---- */

static int power_between(u64 value, u64 low, u64 high)
{
    return value >= low && value <= high && (value & (value - 1)) == 0;
}

static int between(u64 value, u64 low, u64 high)
{
    return value >= low && value <= high;
}

/* Returns whether signing with these numbers stays inside the scratch memory and ends. */
static int are_valid_numbers(const Numbers *n)
{
    int valid = between(n->word_bytes, 2, MAX_POWER) && power_between(n->sketch_bits, 8, 32);
    valid &= between(n->shingle_words, 1, MAX_POWER) && between(n->shingle_bytes, 1, MAX_POWER);
    valid &= between(n->mark_run, 1, MAX_POWER) && between(n->spaceless_share, 0, MAX_RUN);
    valid &= between(n->rates, 1, MAX_RATES) && between(n->max_symbols, 1, MAX_KEPT) && between(n->symbol_bits, 1, 32);
    valid &= n->gap_bits == GAP_BITS || (n->gap_bits == 0 && between(n->gap_steps, 1, (u64)1 << 32));
    for (size_t i = 0; i < n->rates && valid; i++)
        valid &= power_between(n->rate[i], 1, (u64)1 << 32) && (n->gap_bits || n->rate[i] >= n->gap_steps);
    valid &= between(n->anchor_words, 1, MAX_POWER) && between(n->anchor_bytes, 1, MAX_POWER);
    valid &= between(n->run, 1, MAX_RUN) && between(n->spaceless_factor, 1, MAX_RUN);
    valid &= n->run * n->spaceless_factor <= MAX_RUN;
    valid &= between(n->max_anchors, 1, MAX_KEPT) && n->dense_below <= MAX_KEPT;
    valid &= n->usual_sampled <= n->max_sampled && n->max_sampled <= MAX_SAMPLED && n->max_noise <= MAX_SAMPLED;
    if (n->max_noise)
        valid &= between(n->noise_bytes, 1, MAX_POWER) && power_between(n->noise_rate, 2, (u64)1 << 32);
    return valid;
}

/* Writes the powers 0 to MAX_POWER of a base. */
static void raise_base(u64 base, u64 *powers)
{
    powers[0] = 1;
    for (int i = 0; i < MAX_POWER; i++)
        powers[i + 1] = powers[i] * base;
}

/* Derives the tables of a context from its numbers. */
static void complete(Context *c)
{
    const u64 *table = c->n.table;
    raise_base(c->n.base, c->powers);
    raise_base(c->n.word_base, c->word_powers);
    for (int byte = 0; byte < 256; byte++) {
        for (int power = 0; power < CHUNK; power++)
            c->scaled[power][byte] = byte ? table[byte] * c->powers[power] : 0;
        /* Rolling multiplies the salt by the base too. This difference restores it. */
        c->entering[byte] = table[byte] - c->n.ld_salt * (c->powers[1] - 1);
        c->leaving[byte] = table[byte] * c->powers[LD_WINDOW_BYTES];
    }
    memset(c->key_block, 0, BLAKE2B_BLOCK);
    memcpy(c->key_block, c->n.digest_key, DIGEST_KEY);
    start_keyed(c->key_block, c->unkeyed, c->keyed);
    c->form = c->scratch = (Buffer){0};
}
