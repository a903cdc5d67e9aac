/* Symbols and gaps of an LD signature in Rice's code, the twin of workers/redis_pairs.py. */

enum { PAIR_GAP_BITS = 13, MOST_STEP = 0x7F, PAIR_COUNT_BYTES = 2, MOST_PAIRS = 0xFFFF, MOST_LOW_BITS = 5 };

/* Words of symbol and gap, or bytes that are gaps alone; `odd` bits of each do not stand apart. */
typedef struct {
    size_t count;
    unsigned symbol_bits, low_bits, whole, odd;
} Pairs;

static Pairs pairs_of(size_t count, unsigned symbol_bits, unsigned low_bits)
{
    unsigned width = symbol_bits + low_bits, whole = width > 16 ? 16 : 0;
    return (Pairs){count, symbol_bits, low_bits, whole, width - whole};
}

static size_t pair_size(const Pairs *p)
{
    return p->symbol_bits ? 4 : 1;
}

/* Where the unary part begins. */
static size_t pairs_before_unary(const Pairs *p)
{
    return PAIR_COUNT_BYTES + p->count * p->whole / 8 + (p->count * p->odd + 7) / 8;
}

static u32 pair_at(const Pairs *p, const u8 *data, size_t i)
{
    u32 word;
    if (!p->symbol_bits)
        return data[i];
    memcpy(&word, data + 4 * i, 4);
    return word;
}

static u32 gap_of(const Pairs *p, u32 word)
{
    return p->symbol_bits ? word & ((1u << PAIR_GAP_BITS) - 1) : word;
}

/* Bits of the unary part; 0 if a word is no pair. */
static size_t unary_bits(const Pairs *p, const u8 *data)
{
    u32 end = p->symbol_bits ? (1u << PAIR_GAP_BITS) - 1 : MOST_STEP + 1;
    size_t bits = 0;
    for (size_t i = 0; i < p->count; i++) {
        u32 gap = gap_of(p, pair_at(p, data, i));
        if (gap >= end)
            return 0;
        bits += (gap >> p->low_bits) + 1;
    }
    return bits;
}

/* Writes to zeroed bytes. */
static void write_pairs(const Pairs *p, const u8 *data, u8 *out)
{
    u8 *head = out + PAIR_COUNT_BYTES, *middle = head + p->count * p->whole / 8, *unary = out + pairs_before_unary(p);
    size_t place = 0, end = 0;
    u32 low = (1u << p->low_bits) - 1;
    out[0] = (u8)(p->count >> 8);
    out[1] = (u8)p->count;
    for (size_t i = 0; i < p->count; i++) {
        u32 word = pair_at(p, data, i), gap = gap_of(p, word);
        u32 fixed = (p->symbol_bits ? word >> PAIR_GAP_BITS << p->low_bits : 0) | (gap & low);
        if (p->whole) {
            head[2 * i] = (u8)fixed;
            head[2 * i + 1] = (u8)(fixed >> 8);
            fixed >>= 16;
        }
        fixed <<= 16 - p->odd - place % 8;
        middle[place / 8] |= (u8)(fixed >> 8);
        middle[place / 8 + 1] |= (u8)fixed; /* at the end nothing, to the unary part */
        place += p->odd;
        end += gap >> p->low_bits;
        unary[end / 8] |= (u8)(0x80 >> end % 8);
        end++;
    }
}

/* Zeros before the next one, which is passed too; as many as there are bits if there is none. */
static size_t zeros_before_one(const u8 *packed, size_t bits, size_t *at)
{
    size_t start = *at;
    u64 window;
    if (start / 8 + 8 <= bits / 8) {
        memcpy(&window, packed + start / 8, 8);
        window = __builtin_bswap64(window) << start % 8;
        if (window) {
            size_t zeros = (size_t)__builtin_clzll(window);
            *at = start + zeros + 1;
            return zeros;
        }
    }
    for (; *at < bits; ++*at)
        if (packed[*at / 8] & 0x80 >> *at % 8)
            return (*at)++ - start;
    return bits;
}

/* Whether the bytes, which reach into the unary part, held so many pairs. */
static int read_pairs(const Pairs *p, const u8 *packed, size_t size, u8 *out)
{
    const u8 *head = packed + PAIR_COUNT_BYTES, *middle = head + p->count * p->whole / 8;
    size_t place = 0, at = 8 * pairs_before_unary(p);
    for (size_t i = 0; i < p->count; i++) {
        u32 two = (u32)middle[place / 8] << 8 | middle[place / 8 + 1];
        u32 fixed = two >> (16 - p->odd - place % 8) & ((1u << p->odd) - 1), word;
        size_t high = zeros_before_one(packed, 8 * size, &at);
        if (high == 8 * size)
            return 0;
        place += p->odd;
        if (p->whole)
            fixed = fixed << 16 | (u32)head[2 * i + 1] << 8 | head[2 * i];
        word = (u32)high << p->low_bits | (fixed & ((1u << p->low_bits) - 1));
        if (p->symbol_bits)
            word |= fixed >> p->low_bits << PAIR_GAP_BITS;
        memcpy(out + pair_size(p) * i, &word, pair_size(p));
    }
    return 1;
}
