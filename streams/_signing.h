/* What a signature says about a normal form; formulas and their sources stand in shingles.py, minhash.py, ld.py, anchors.py.
 *
 * Included by _native.c alone.
 */
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    SLOTS = 128,
    SLOT_SHIFT = 57,
    VALUE_BITS = 49,
    MOST_POWER = 64,
    MOST_RATES = 8,
    MOST_KEPT = 1 << 16,
    MOST_RUN = 1 << 12,
    CHUNK = 1024,
    LD_WINDOW = 16,
    GAP_BITS = 13,
    ESCAPE = (1 << GAP_BITS) - 1,
};

/* What native.py packs once for each signer, all u64. */
typedef struct {
    u64 table[256];
    u64 shifted[256]; /* the table times the base */
    u64 powers[MOST_POWER + 1]; /* of the base over bytes */
    u64 word_powers[MOST_POWER + 1];
    u64 sketch_salt, ld_salt, anchor_salt;
    u64 word_bytes;
    u64 sketch_bits, shingle_words, shingle_bytes;
    u64 rates; /* 0: no LD signature */
    u64 rate[MOST_RATES], length[MOST_RATES];
    u64 symbol_bits, gap_bits, gap_steps, max_symbols;
    u64 anchor_words, anchor_bytes, run, spaceless_factor, max_anchors; /* max_anchors 0: no anchors */
} Context;

typedef struct {
    u64 count;
    u32 *positions;
    u64 *hashes;
} Kept;

typedef struct {
    const Context *context;
    const u8 *data;
    size_t size;
    int spaceless;
    size_t firsts;      /* code points */
    size_t words;       /* hashed so far */
    size_t most_words;
    size_t most_windows; /* elements of each of the lists below */
    u64 *prefix;        /* over bytes, only if spaceless */
    u64 *words_prefix;
    Kept kept;
    u64 *shingles, *windows, *spare, *table; /* share their place with `kept`, which is done before */
    size_t table_size;
    u32 *firsts_at;     /* where code points start, only if spaceless */
} Job;

typedef struct {
    size_t shingles, ld_size, gaps_size, anchors;
    u64 rate;
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

/* ---- places of bytes ---- */

enum { PLACES = 72 }; /* what `places` may write beyond the last place */

#ifdef __SSE2__
static inline u64 mask16(const u8 *data, int firsts)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)data);
    __m128i found = firsts ? _mm_cmpgt_epi8(bytes, _mm_set1_epi8(-65)) : _mm_cmpeq_epi8(bytes, _mm_set1_epi8(SPACE));
    return (u64)(u32)_mm_movemask_epi8(found);
}

static inline u64 mask64(const u8 *data, int firsts)
{
    return mask16(data, firsts) | mask16(data + 16, firsts) << 16 | mask16(data + 32, firsts) << 32 |
           mask16(data + 48, firsts) << 48;
}
#endif

/* Where bytes are spaces, or else the first ones of code points; how many. The list has PLACES more elements. */
static inline size_t places(const u8 *data, size_t size, int firsts, u32 *out)
{
    size_t count = 0, i = 0;
#ifdef __SSE2__
    for (; i + 64 <= size; i += 64) {
        u32 *end = out + count;
        for (u64 mask = mask64(data + i, firsts); mask;) {
            /* Eight at a time: the end of the loop is guessed wrong once in 64 bytes, not at every place. */
            for (int k = 0; k < 8; k++, mask &= mask - 1) {
                *end = (u32)i + (u32)__builtin_ctzll(mask | (u64)1 << 63);
                end += mask != 0;
            }
        }
        count = (size_t)(end - out);
    }
#endif
    for (; i < size; i++) {
        out[count] = (u32)i;
        count += firsts ? (data[i] & 0xC0) != 0x80 : data[i] == SPACE;
    }
    return count;
}

/* ---- words and LD windows: one pass over the bytes ---- */

static u64 polynomial(const Context *c, const u8 *data, size_t size)
{
    u64 sum = 0;
    for (size_t i = 0; i < size; i++)
        sum = sum * c->powers[1] + c->table[data[i]];
    return sum;
}

static inline void add_word(Job *job, u64 hash)
{
    u64 *prefix = job->words_prefix + job->words++;
    prefix[1] = prefix[0] * job->context->word_powers[1] + fmix64(hash);
}

/* Words are cut: long polynomials modulo 2**64 collide on Thue-Morse strings whatever the base. */
static void add_long_word(Job *job, const u8 *start, size_t size)
{
    size_t cut = job->context->word_bytes;
    for (; size > cut; start += cut, size -= cut)
        add_word(job, polynomial(job->context, start, cut));
    add_word(job, polynomial(job->context, start, size));
}

typedef struct {
    size_t start; /* of the word that goes on */
    u64 before;   /* prefix at its start */
} Word;

static inline void end_word(Job *job, Word *word, size_t end, u64 prefix)
{
    size_t size = end - word->start;
    if (size > job->context->word_bytes)
        add_long_word(job, job->data + word->start, size);
    else if (size)
        add_word(job, prefix - word->before * job->context->powers[size]);
}

static inline void keep(Kept *kept, u32 position, u64 hash, u64 limit)
{
    kept->hashes[kept->count] = hash;
    kept->positions[kept->count] = position;
    kept->count += hash < limit;
}

/* Prefix sums after `size` bytes from prefix[0] on; two bytes at a time halve the chain of multiplies. */
static void sum_up(const Context *c, const u8 *restrict data, size_t size, u64 *restrict prefix)
{
    u64 base = c->powers[1], base2 = c->powers[2], last = prefix[0];
    size_t i = 0;
    for (; i + 1 < size; i += 2) {
        prefix[i + 1] = last * base + c->table[data[i]];
        prefix[i + 2] = last = last * base2 + (c->shifted[data[i]] + c->table[data[i + 1]]);
    }
    if (i < size)
        prefix[i + 1] = last * base + c->table[data[i]];
}

/* The same, with the sampled windows that end here.
 *
 * No branch depends on a byte: what is not wanted is written over. Apart, the two loops take a sixth longer.
 */
static void sum_up_and_sample(const Job *job, size_t start, size_t size, u64 *restrict prefix, u64 limit,
                              Kept *restrict result)
{
    const Context *c = job->context;
    const u8 *restrict data = job->data + start;
    const u64 *restrict table = c->table, *restrict shifted = c->shifted;
    u64 base = c->powers[1], base2 = c->powers[2], base16 = c->powers[LD_WINDOW], salt = c->ld_salt, last = prefix[0];
    u32 position = (u32)(start + 1 - LD_WINDOW);
    Kept kept = *result;
    size_t i = 0;
    for (; i + 1 < size; i += 2) {
        const u64 *before = prefix + (ptrdiff_t)i + 1 - LD_WINDOW;
        u64 first = last * base + table[data[i]];
        last = last * base2 + (shifted[data[i]] + table[data[i + 1]]);
        prefix[i + 1] = first;
        prefix[i + 2] = last;
        keep(&kept, position++, mix(salt + first - before[0] * base16), limit);
        keep(&kept, position++, mix(salt + last - before[1] * base16), limit);
    }
    if (i < size) {
        prefix[i + 1] = last * base + table[data[i]];
        keep(&kept, position, mix(salt + prefix[i + 1] - prefix[(ptrdiff_t)i + 1 - LD_WINDOW] * base16), limit);
    }
    *result = kept;
}

static u64 rate_limit(u64 rate)
{
    return (~(u64)0 / rate) + 1; /* 2**64 / rate, a power of two from 2 on */
}

static void scan_all(Job *job, u64 limit)
{
    u64 ring[LD_WINDOW + CHUNK + 1];
    u32 spaces[CHUNK + PLACES];
    Word word = {0, 0};
    memset(ring, 0, (LD_WINDOW + 1) * sizeof(u64));
    for (size_t start = 0, size; start < job->size; start += size) {
        size = smaller(job->size - start, start ? CHUNK : LD_WINDOW - 1);
        u64 *prefix = job->spaceless ? job->prefix + start : ring + LD_WINDOW;
        if (job->context->rates)
            sum_up_and_sample(job, start, size, prefix, limit, &job->kept);
        else
            sum_up(job->context, job->data + start, size, prefix);
        size_t found = places(job->data + start, size, 0, spaces);
        if (!start)
            job->kept.count = 0; /* no window is whole before the 16th byte */
        for (size_t i = 0; i < found; i++) {
            end_word(job, &word, start + spaces[i], prefix[spaces[i]]);
            word = (Word){start + spaces[i] + 1, prefix[spaces[i] + 1]};
        }
        if (start + size == job->size)
            end_word(job, &word, job->size, prefix[size]);
        if (!job->spaceless)
            memmove(ring, ring + size, (LD_WINDOW + 1) * sizeof(u64));
    }
}

/* ---- LD signature ---- */

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
    u64 previous; /* position, in steps where gaps stand apart */
} Packing;

static void pack_joined(Packing *p, u32 symbol, u32 position)
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

static void pack_split(Packing *p, u32 symbol, u32 position, u64 unit)
{
    u64 step = position / unit;
    u16 narrow = (u16)symbol;
    memcpy(p->ld, &narrow, 2);
    p->ld += 2;
    p->gaps += put_varint(p->gaps, step - p->previous);
    p->previous = step;
}

/* Whether the symbols at this rate are few enough; if so they are packed. */
static int pack_ld(const Job *job, Result *result, int zeros)
{
    const Context *c = job->context;
    u64 unit = c->gap_bits ? 1 : ((u64)1 << zeros) / c->gap_steps;
    Packing packing = {0, result->ld, result->gaps, 0};
    u64 before = ~(u64)0;
    for (size_t i = 0; i < job->kept.count; i++) {
        u64 symbol = job->kept.hashes[i] << zeros >> (64 - c->symbol_bits);
        if (symbol == before)
            continue;
        before = symbol;
        if (packing.symbols++ == c->max_symbols)
            return 0;
        if (c->gap_bits)
            pack_joined(&packing, (u32)symbol, job->kept.positions[i]);
        else
            pack_split(&packing, (u32)symbol, job->kept.positions[i], unit);
    }
    result->ld_size = (size_t)(packing.ld - result->ld);
    result->gaps_size = (size_t)(packing.gaps - result->gaps);
    return 1;
}

static void keep_below(Kept *kept, u64 limit)
{
    size_t count = 0;
    for (size_t i = 0; i < kept->count; i++) {
        kept->hashes[count] = kept->hashes[i];
        kept->positions[count] = kept->positions[i];
        count += kept->hashes[i] < limit;
    }
    kept->count = count;
}

static int log2_of(u64 power)
{
    int zeros = 0;
    while (power >>= 1)
        zeros++;
    return zeros;
}

static u64 first_rate(const Context *c, size_t size)
{
    size_t passed = 0;
    for (size_t i = 0; i + 1 < c->rates; i++)
        passed += size >= c->length[i];
    return c->rates ? c->rate[passed] : 0;
}

static void ld_signature(Job *job, Result *result)
{
    int zeros = log2_of(result->rate);
    /* At 63 zeros two symbols are left, which only a made-up table could alternate: nothing then. */
    for (; zeros < 63 && !pack_ld(job, result, zeros); zeros++)
        keep_below(&job->kept, rate_limit((u64)2 << zeros));
    result->rate = (u64)1 << zeros;
}

/* ---- sets of hashes ---- */

/* The distinct values, in place and in any order; how many.
 *
 * A value goes to its place in a table of empty places; what finds another one there tries again by other bits in the
 * next round, all copies alike. No branch depends on a value.
 */
static size_t distinct(Job *job, u64 *values, size_t count)
{
    size_t size = 64, found = 0, rest = 0;
    u64 *table = job->table, *later = job->spare, zero = 0;
    while (size < 2 * count && 2 * size <= job->table_size)
        size *= 2;
    memset(table, 0, size * sizeof(u64));
    for (size_t i = 0; i < count; i++) {
        u64 value = values[i], *place = table + (value & (size - 1)), there = *place;
        zero |= value == 0;
        *place = there ? there : value;
        values[found] = value;
        found += (there == 0) & (value != 0);
        later[rest] = value;
        rest += (there != 0) & (there != value);
    }
    for (int round = 1; rest; round++) {
        size_t again = 0;
        for (size_t i = 0; i < rest; i++) {
            u64 value = later[i];
            int turn = 1 + round % 63;
            size_t at = (value >> turn | value << (64 - turn)) + (u64)round * 7919;
            u64 *place = table + (at & (size - 1)), there = *place;
            *place = there ? there : value;
            values[found] = value;
            found += there == 0;
            later[again] = value;
            again += (there != 0) & (there != value);
        }
        rest = again;
    }
    if (zero)
        values[found++] = 0;
    return found;
}

/* ---- sketch ---- */

typedef struct {
    u64 slots[SLOTS];
    u8 open[SLOTS]; /* nothing thrown into it yet */
    int empty;
} Sketch;

static inline u64 thrown(u64 round, u64 hash)
{
    return round << VALUE_BITS | hash << (64 - SLOT_SHIFT) >> (64 - VALUE_BITS);
}

static void first_round(Sketch *s, const u64 *features, size_t count)
{
    memset(s->slots, 0xFF, sizeof s->slots);
    for (size_t i = 0; i < count; i++) {
        u64 *slot = s->slots + (features[i] >> SLOT_SHIFT);
        *slot = smaller(*slot, thrown(0, features[i]));
    }
    s->empty = 0;
    for (int k = 0; k < SLOTS; k++)
        s->empty += s->open[k] = s->slots[k] == ~(u64)0;
}

/* Every feature throws anew; only what falls into a slot that was empty before this round can change anything. */
static void next_round(Sketch *s, const u64 *features, size_t count, u64 round, u64 *useful)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        u64 hash = fmix64(features[i] + round * 0x9E3779B97F4A7C15u);
        useful[found] = hash;
        found += s->open[round < SLOTS ? hash >> SLOT_SHIFT : round - SLOTS];
    }
    for (size_t i = 0; i < found; i++) {
        u64 slot = round < SLOTS ? useful[i] >> SLOT_SHIFT : round - SLOTS;
        s->slots[slot] = smaller(s->slots[slot], thrown(round, useful[i]));
        s->empty -= s->open[slot];
        s->open[slot] = 0;
    }
}

static void sketch(const u64 *features, size_t count, u64 *spare, u64 bits, u8 *out)
{
    Sketch s;
    first_round(&s, features, count);
    for (u64 round = 1; count && s.empty && round < 2 * SLOTS; round++)
        next_round(&s, features, count, round, spare);
    for (u64 k = 0; k < SLOTS; k++) {
        u32 slot = count ? (u32)(fmix64(k << SLOT_SHIFT | s.slots[k]) >> 32) : ~(u32)0;
        memcpy(out + k * (bits / 8), &slot, bits / 8);
    }
}

/* ---- runs of words, or of bytes that start with a code point ---- */

static size_t word_runs(const Job *job, u64 run, u64 salt, u64 *out)
{
    const u64 *prefix = job->words_prefix;
    u64 power = job->context->word_powers[run];
    if (job->words < run)
        return 0;
    size_t count = job->words - run + 1;
    for (size_t i = 0; i < count; i++)
        out[i] = fmix64(salt + prefix[i + run] - prefix[i] * power);
    return count;
}

static size_t byte_runs(const Job *job, u64 run, u64 salt, u64 *out)
{
    u64 power = job->context->powers[run];
    size_t count = 0;
    for (; count < job->firsts && job->firsts_at[count] + run <= job->size; count++) {
        const u64 *prefix = job->prefix + job->firsts_at[count];
        out[count] = fmix64(salt + prefix[run] - prefix[0] * power);
    }
    return count;
}

static size_t shingles(Job *job)
{
    const Context *c = job->context;
    size_t count = 0;
    if (job->spaceless)
        count = byte_runs(job, c->shingle_bytes, c->sketch_salt, job->shingles);
    if (!count && job->words)
        count = word_runs(job, smaller(c->shingle_words, job->words), c->sketch_salt, job->shingles);
    return distinct(job, job->shingles, count);
}

/* ---- anchors ---- */

/* Minima of all runs, in place, by suffix minima of blocks and prefix minima of the next (van Herk 1992); how many. */
static size_t run_minima(u64 *restrict values, size_t count, size_t run)
{
    u64 suffix[MOST_RUN];
    if (run > count)
        run = count;
    size_t minima = count - run + 1;
    for (size_t start = 0; start < minima; start += run) {
        size_t stop = smaller(run, minima - start);
        const u64 *restrict next = values + start + run - 1;
        u64 after = ~(u64)0, prefix = ~(u64)0;
        for (size_t i = run; i-- > 0;)
            suffix[i] = after = smaller(after, values[start + i]);
        values[start] = suffix[0];
        for (size_t i = 1; i < stop; i++) {
            prefix = smaller(prefix, next[i]);
            values[start + i] = smaller(suffix[i], prefix);
        }
    }
    return minima;
}

static size_t changes(const u64 *values, size_t count, u64 *out)
{
    size_t found = 1;
    out[0] = values[0];
    for (size_t i = 1; i < count; i++) {
        out[found] = values[i];
        found += values[i] != values[i - 1];
    }
    return found;
}

/* Sorts hashes: by their top bits into about one place each, then by insertion. */
static void sort(u64 *values, size_t count, u64 *spare)
{
    u32 starts[257] = {0};
    for (size_t i = 0; i < count; i++)
        starts[(values[i] >> 56) + 1]++;
    for (int i = 0; i < 256; i++)
        starts[i + 1] += starts[i];
    for (size_t i = 0; i < count; i++)
        spare[starts[values[i] >> 56]++] = values[i];
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (; at && values[at - 1] > spare[i]; at--)
            values[at] = values[at - 1];
        values[at] = spare[i];
    }
}

static void anchors(Job *job, Result *result)
{
    const Context *c = job->context;
    u64 *windows = job->windows;
    size_t run = c->run * (job->spaceless ? c->spaceless_factor : 1), count;
    if (job->spaceless)
        count = byte_runs(job, c->anchor_bytes, c->anchor_salt, windows);
    else
        count = word_runs(job, c->anchor_words, c->anchor_salt, windows);
    if (!count)
        return;
    result->anchor = job->shingles; /* done before */
    size_t minima = run_minima(windows, count, run);
    for (;;) {
        result->anchors = distinct(job, result->anchor, changes(windows, minima, result->anchor));
        if (result->anchors <= c->max_anchors)
            break;
        size_t shift = smaller(run, count - run);
        minima -= shift;
        for (size_t i = 0; i < minima; i++)
            windows[i] = smaller(windows[i], windows[i + shift]);
        run += shift;
    }
    sort(result->anchor, result->anchors, job->spare);
}

/* ---- all of it ---- */

static void measure(Job *job)
{
    const Context *c = job->context;
    job->most_words = count_of(job->data, job->size, 0xFF, SPACE) + 1 + job->size / c->word_bytes;
    job->firsts = job->spaceless ? job->size - count_of(job->data, job->size, 0xC0, 0x80) : 0;
    job->most_windows = job->most_words > job->firsts ? job->most_words : job->firsts;
    job->table_size = 64;
    while (job->table_size < job->most_windows)
        job->table_size *= 2;
    if (job->table_size <= 1 << 14)
        job->table_size *= 2; /* fewer collisions while it fits the cache */
}

/* Gives each list its place in the scratch, from *at on. */
static void *take(u64 *block, size_t *at, size_t size)
{
    size_t start = *at;
    *at += size;
    return block ? block + start : NULL;
}

/* Cuts the scratch into its parts; without a block only says how many u64 they need. */
static size_t lay_out(Job *job, Result *result, u64 *block)
{
    size_t at = 0, most = job->context->max_symbols + 1, list = job->most_windows + 1;
    result->ld = take(block, &at, most);
    result->gaps = take(block, &at, most);
    job->prefix = take(block, &at, job->spaceless ? LD_WINDOW + job->size + 1 : 0);
    job->firsts_at = take(block, &at, job->spaceless ? (job->firsts + PLACES) / 2 + 1 : 0);
    job->words_prefix = take(block, &at, job->most_words + 1);
    size_t shared = at; /* the LD signature is done before the sketch begins */
    job->kept.hashes = take(block, &at, job->size + 1);
    job->kept.positions = take(block, &at, job->size / 2 + 1);
    size_t end = at;
    job->shingles = take(block, &shared, list);
    job->windows = take(block, &shared, list);
    job->spare = take(block, &shared, list);
    job->table = take(block, &shared, job->table_size);
    return end > shared ? end : shared;
}

static void run_job(Job *job, Result *result)
{
    const Context *c = job->context;
    result->rate = first_rate(c, job->size);
    job->kept.count = 0;
    job->words = 0;
    job->words_prefix[0] = 0;
    if (job->spaceless) { /* windows that begin before the text are written, then dropped */
        memset(job->prefix, 0, (LD_WINDOW + 1) * sizeof(u64));
        job->prefix += LD_WINDOW;
        places(job->data, job->size, 1, job->firsts_at);
    }
    scan_all(job, c->rates ? rate_limit(result->rate) : 0);
    if (c->rates)
        ld_signature(job, result);
    result->shingles = shingles(job);
    sketch(job->shingles, result->shingles, job->spare, c->sketch_bits, result->sketch);
    if (c->max_anchors)
        anchors(job, result);
}
