/* The LD signature of a normal form: ld.py gives formulas and sources.
 *
 * Included by _native.c alone.
 */

enum { LANE = 512, LANES = 4, ESCAPE = (1 << GAP_BITS) - 1 };

static int log2_of(u64 power)
{
    int zeros = 0;
    while (power >>= 1)
        zeros++;
    return zeros;
}

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
    for (int i = 0; i < LD_WINDOW; i++)
        sum = sum * c->powers[1] + c->n.table[data[i]];
    return sum + c->n.ld_salt;
}

/* Hashes of the windows that begin at the first LANES * lane bytes; reads one byte more than they have.
 *
 * Each follows from the one before, and a core could do more meanwhile: so four stretches are worked on in turn.
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
        first = first * base + (c->entering[data[LD_WINDOW]] - c->leaving[data[0]]);
        second = second * base + (c->entering[data[lane + LD_WINDOW]] - c->leaving[data[lane]]);
        third = third * base + (c->entering[data[2 * lane + LD_WINDOW]] - c->leaving[data[2 * lane]]);
        fourth = fourth * base + (c->entering[data[3 * lane + LD_WINDOW]] - c->leaving[data[3 * lane]]);
    }
}

#ifdef VECTORS
/* The top bits of four hashes. */
static inline __m128i tops(const u64 *hashes, __m128i below)
{
    __m128 low = _mm_castsi128_ps(_mm_loadu_si128((const __m128i *)hashes));
    __m128 high = _mm_castsi128_ps(_mm_loadu_si128((const __m128i *)(hashes + 2)));
    return _mm_srl_epi32(_mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1))), below);
}

/* A bit for each of 16 hashes: its top bits are zero, and stay so, and no others become so, where they are packed. */
static inline u64 sampled16(const u64 *hashes, __m128i below)
{
    __m128i first = _mm_packs_epi32(tops(hashes, below), tops(hashes + 4, below));
    __m128i second = _mm_packs_epi32(tops(hashes + 8, below), tops(hashes + 12, below));
    return (u64)(u32)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_packs_epi16(first, second), _mm_setzero_si128()));
}
#endif

/* Keeps of hashes those that start with so many zero bits; of the first one the position is given. */
static void keep_sampled(Kept *kept, const u64 *hashes, size_t size, size_t position, int zeros)
{
    u64 *kept_hashes = kept->hashes, limit = (u64)1 << (64 - zeros);
    u32 *positions = kept->positions;
    size_t count = kept->count, i = 0;
#ifdef VECTORS
    __m128i below = _mm_cvtsi32_si128(32 - zeros);
    for (; i + 64 <= size; i += 64) {
        u64 mask = sampled16(hashes + i, below) | sampled16(hashes + i + 16, below) << 16 |
                   sampled16(hashes + i + 32, below) << 32 | sampled16(hashes + i + 48, below) << 48;
        while (mask) {
            for (int k = 0; k < 4; k++, mask &= mask - 1) { /* as in `places`: about one in 16 is kept */
                size_t at = i + (size_t)__builtin_ctzll(mask | (u64)1 << 63);
                kept_hashes[count] = hashes[at];
                positions[count] = (u32)(position + at);
                count += mask != 0;
            }
        }
    }
#endif
    for (; i < size; i++) { /* no branch: what is not wanted is written over */
        kept_hashes[count] = hashes[i];
        positions[count] = (u32)(position + i);
        count += hashes[i] < limit;
    }
    kept->count = count;
}

static void sample(Job *job, int zeros)
{
    const Context *c = job->context;
    u64 hashes[LANES * LANE];
    job->kept.count = 0;
    for (size_t start = 0, size; start + LD_WINDOW <= job->size; start += size) {
        const u8 *data = job->data + start;
        size = smaller(job->size + 1 - LD_WINDOW - start, LANES * LANE);
        if (size == LANES * LANE) {
            roll(c, data, LANE, hashes);
        } else {
            roll(c, data, size / LANES, hashes);
            for (size_t i = size / LANES * LANES; i < size; i++)
                hashes[i] = mix(first_window(c, data + i));
        }
        keep_sampled(&job->kept, hashes, size, start, zeros);
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
    u64 previous; /* position, in steps where gaps stand apart */
} Packing;

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

static inline void pack_split(Packing *p, u32 symbol, u32 position, u64 unit)
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
    const Numbers n = job->context->n;
    const Kept kept = job->kept;
    u64 unit = n.gap_bits ? 1 : ((u64)1 << zeros) / n.gap_steps;
    Packing packing = {0, result->ld, result->gaps, 0};
    u64 before = ~(u64)0;
    for (size_t i = 0; i < kept.count; i++) {
        u64 symbol = kept.hashes[i] << zeros >> (64 - n.symbol_bits);
        if (symbol == before)
            continue;
        before = symbol;
        if (packing.symbols++ == n.max_symbols)
            return 0;
        if (n.gap_bits)
            pack_joined(&packing, (u32)symbol, kept.positions[i]);
        else
            pack_split(&packing, (u32)symbol, kept.positions[i], unit);
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

static void ld_signature(Job *job, Result *result)
{
    int zeros = log2_of(first_rate(&job->context->n, job->size));
    sample(job, zeros);
    /* At 63 zeros two symbols are left, which only a made-up table could alternate: nothing then. */
    for (; zeros < 63 && !pack_ld(job, result, zeros); zeros++)
        keep_below(&job->kept, (u64)1 << (63 - zeros));
    result->rate = (u64)1 << zeros;
}
