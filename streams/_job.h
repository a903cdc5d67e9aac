/* What all parts of signing share. Included by _native.c alone. */

enum { SLOTS = 128, MOST_POWER = 64, MOST_RATES = 8, MOST_KEPT = 1 << 16, MOST_RUN = 1 << 12 };
enum { LD_WINDOW = 16, GAP_BITS = 13, EIGHT = 8 };

/* What native.py packs for each signer. */
typedef struct {
    u64 table[256];
    u64 base, word_base;
    u64 sketch_salt, ld_salt, anchor_salt;
    u64 digest_key[4], digest_bytes; /* digest_bytes 0: no digests */
    u64 mark_run, spaceless_share, word_bytes;
    u64 sketch_bits, shingle_words, shingle_bytes;
    u64 rates; /* 0: no LD signature */
    u64 rate[MOST_RATES], length[MOST_RATES];
    u64 symbol_bits, gap_bits, gap_steps, max_symbols;
    u64 anchor_words, anchor_bytes, run, spaceless_factor, max_anchors; /* max_anchors 0: no anchors */
    u64 dense_below;
} Numbers;

/* Memory that a context keeps for its next text: a short one is hashed sooner than memory is had. */
typedef struct {
    u8 *start;
    size_t size;
} Block;

enum { MOST_IDLE = 1 << 22 };

/* Whether it has so many bytes now; what it holds stays. */
static int grow(Block *block, size_t wanted)
{
    if (wanted <= block->size)
        return 1;
    u8 *start = realloc(block->start, wanted);
    if (!start)
        return 0;
    *block = (Block){start, wanted};
    return 1;
}

static Block take_idle(Block *place)
{
    Block block = *place;
    *place = (Block){0};
    return block;
}

static void leave_idle(Block *place, Block block)
{
    if (place->start || block.size > MOST_IDLE)
        free(block.start);
    else
        *place = block;
}

/* The same with what follows from it. */
typedef struct {
    Numbers n;
    u64 powers[MOST_POWER + 1], word_powers[MOST_POWER + 1];
    u64 placed[EIGHT][256]; /* the table times the power for so many bytes behind; 0 for no byte, which no word holds */
    u64 entering[256], leaving[256]; /* what a byte adds to an LD window, and takes along */
    u8 key_block[BLOCK];
    u64 unkeyed[8], keyed[8]; /* blake2b before the block of the key, and after */
    Block form, scratch;      /* idle, or in use by a call */
} Context;

typedef struct {
    size_t count;
    u32 *positions;
    u64 *hashes;
} Kept;

typedef struct {
    const Context *context;
    const u8 *data; /* PADDING bytes stand before it */
    size_t size;
    int spaceless;
    size_t firsts; /* code points */
    size_t words;  /* hashed so far */
    size_t most_words;
    size_t most_windows; /* elements of each of the lists below */
    u32 *spaces;
    u64 *prefix;   /* over bytes, only if spaceless */
    u32 *firsts_at; /* where code points start, only if spaceless */
    u64 *words_prefix;
    Kept kept;
    u64 *shingles, *windows, *spare, *table; /* share their place with `kept`, which is done before */
    size_t table_size;
} Job;

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

/* Whether the numbers lead to no place outside the scratch, and to an end. */
static int sound(const Numbers *n)
{
    int good = between(n->word_bytes, 2, MOST_POWER) && power_between(n->sketch_bits, 8, 32);
    good &= between(n->shingle_words, 1, MOST_POWER) && between(n->shingle_bytes, 1, MOST_POWER);
    good &= between(n->mark_run, 1, MOST_POWER) && between(n->spaceless_share, 0, MOST_RUN);
    good &= n->digest_bytes == 0 || n->digest_bytes == DIGEST;
    good &= n->rates <= MOST_RATES && n->max_symbols <= MOST_KEPT;
    if (n->rates) {
        good &= between(n->symbol_bits, 1, 32) && between(n->max_symbols, 1, MOST_KEPT);
        good &= n->gap_bits == 0 || n->gap_bits == GAP_BITS;
        good &= n->gap_bits || between(n->gap_steps, 1, (u64)1 << 32);
    }
    for (size_t i = 0; i < n->rates && good; i++)
        good &= power_between(n->rate[i], 2, (u64)1 << 32) && (n->gap_bits || n->rate[i] >= n->gap_steps);
    if (n->max_anchors) {
        good &= between(n->anchor_words, 1, MOST_POWER) && between(n->anchor_bytes, 1, MOST_POWER);
        good &= between(n->run, 1, MOST_RUN) && between(n->spaceless_factor, 1, MOST_RUN / n->run);
        good &= n->max_anchors <= MOST_KEPT && n->dense_below <= MOST_KEPT;
    }
    return good;
}

static void raise_base(u64 base, u64 *powers)
{
    powers[0] = 1;
    for (int i = 0; i < MOST_POWER; i++)
        powers[i + 1] = powers[i] * base;
}

static void complete(Context *c)
{
    const u64 *table = c->n.table;
    raise_base(c->n.base, c->powers);
    raise_base(c->n.word_base, c->word_powers);
    for (int byte = 0; byte < 256; byte++) {
        for (int place = 0; place < EIGHT; place++)
            c->placed[place][byte] = byte ? table[byte] * c->powers[place] : 0;
        c->entering[byte] = table[byte] - c->n.ld_salt * (c->powers[1] - 1); /* so the salt stays as it is */
        c->leaving[byte] = table[byte] * c->powers[LD_WINDOW];
    }
    memset(c->key_block, 0, BLOCK);
    memcpy(c->key_block, c->n.digest_key, DIGEST_KEY);
    start_keyed(c->key_block, c->unkeyed, c->keyed);
    c->form = c->scratch = (Block){0};
}
