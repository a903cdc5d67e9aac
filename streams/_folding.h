/* Normal forms without code points that neighbours change: normalize.py says what they are.
 *
 * Included by _native.c alone.
 */

enum {
    COMPLEX = 0xFFFF,
    MOST_HOLES = 16,
    BMP_UNITS = 0x10000 * 2,
    BMP_TABLE = BMP_UNITS + 0x10000 / 8,
};

/* Lower case of ASCII letters, digits, else a space. */
static inline u8 fold_ascii(u8 byte)
{
    u8 lower = byte | 0x20;
    int letter = (u8)(lower - 'a') < 26, digit = (u8)(byte - '0') < 10;
    return letter ? lower : digit ? byte : SPACE;
}

typedef struct {
    u8 folds[128];
    const u8 *at, *end;
    u8 *out;
    u8 before;        /* what was written last, or would have been but for its being a space */
    size_t spaceless; /* code points of scripts without spaces */
} Folding;

static void begin_folding(Folding *f, const u8 *data, size_t size, u8 *out)
{
    for (int byte = 0; byte < 128; byte++)
        f->folds[byte] = fold_ascii((u8)byte);
    f->at = data;
    f->end = data + size;
    f->out = out;
    f->before = SPACE; /* none at the start */
    f->spaceless = 0;
}

/* The next `size` bytes, ASCII; drops a space after a space without a branch. */
static inline void fold_run(Folding *f, size_t size)
{
    const u8 *at = f->at;
    u8 *out = f->out, before = f->before;
    for (size_t i = 0; i < size; i++) {
        u8 folded = f->folds[at[i] & 0x7F];
        *out = folded;
        out += (folded != SPACE) | (before != SPACE);
        before = folded;
    }
    f->at = at + size;
    f->out = out;
    f->before = before;
}

static size_t end_folding(const Folding *f, const u8 *out)
{
    size_t size = (size_t)(f->out - out);
    return size - (size && f->before == SPACE);
}

static int all_ascii(const u8 *eight)
{
    u64 bytes;
    memcpy(&bytes, eight, 8);
    return (bytes & 0x8080808080808080u) == 0;
}

static inline int follows(u8 byte)
{
    return (byte & 0xC0) == 0x80;
}

/* Code point at f->at, not ASCII, which moves on; -1 if the bytes are not UTF-8 (surrogates may stand in it). */
static inline int32_t next_code(Folding *f)
{
    const u8 *b = f->at;
    ptrdiff_t left = f->end - b;
    if (b[0] >= 0xE0 && b[0] < 0xF0 && left >= 3 && follows(b[1]) && follows(b[2])) {
        f->at += 3;
        return (b[0] & 0x0F) << 12 | (b[1] & 0x3F) << 6 | (b[2] & 0x3F);
    }
    if (b[0] >= 0xC2 && b[0] < 0xE0 && left >= 2 && follows(b[1])) {
        f->at += 2;
        return (b[0] & 0x1F) << 6 | (b[1] & 0x3F);
    }
    if (b[0] >= 0xF0 && b[0] < 0xF5 && left >= 4 && follows(b[1]) && follows(b[2]) && follows(b[3])) {
        int32_t code = (b[0] & 0x07) << 18 | (b[1] & 0x3F) << 12 | (b[2] & 0x3F) << 6 | (b[3] & 0x3F);
        f->at += 4;
        return code >= 0x10000 && code < 0x110000 ? code : -1;
    }
    return -1;
}

static inline void put_unit(Folding *f, u32 unit, const u8 *spaceless)
{
    u8 *out = f->out;
    if (unit >= 0x800) {
        out[0] = (u8)(0xE0 | unit >> 12);
        out[1] = (u8)(0x80 | (unit >> 6 & 0x3F));
        out[2] = (u8)(0x80 | (unit & 0x3F));
        f->out += 3;
        f->spaceless += spaceless[unit >> 3] >> (unit & 7) & 1; /* no such script stands below */
    } else if (unit >= 0x80) {
        out[0] = (u8)(0xC0 | unit >> 6);
        out[1] = (u8)(0x80 | (unit & 0x3F));
        f->out += 2;
    } else {
        out[0] = (u8)unit;
        f->out += unit != SPACE || f->before != SPACE;
    }
    f->before = unit == SPACE ? SPACE : 0;
}

enum Outcome { FOLDED, NEEDS_NEIGHBOURS, NOT_UTF8 };

/* Folds up to the end, or to the first code point that only NFKC can fold. */
static enum Outcome fold(Folding *f, const u8 *table)
{
    while (f->at < f->end) {
        if (f->end - f->at >= 8 && all_ascii(f->at)) {
            fold_run(f, 8);
            continue;
        }
        if (*f->at < 0x80) {
            fold_run(f, 1);
            continue;
        }
        const u8 *start = f->at;
        int32_t code = next_code(f);
        if (code < 0)
            return NOT_UTF8;
        u32 place = (u32)(code < 0x10000 ? code : 0xD800 + ((code - 0x10000) >> 10));
        u16 unit;
        memcpy(&unit, table + 2 * place, 2);
        if (unit == COMPLEX) {
            f->at = start;
            return NEEDS_NEIGHBOURS;
        }
        put_unit(f, unit, table + BMP_UNITS);
    }
    return FOLDED;
}

/* A stretch between ASCII spaces that NFKC has to see: its bytes, and where in the output its form belongs. */
typedef struct {
    size_t start, end, place;
} Hole;

typedef struct {
    Folding folding;
    const u8 *data;
    u8 *out;
    size_t count;
    Hole holes[MOST_HOLES];
} Holed;

/* Takes back the stretch in which folding stopped, steps over it; whether there was room to note it.
 *
 * Nothing composes with a space or control before it, so the form of a stretch does not depend on its neighbours.
 */
static int leave_hole(Holed *h, const u8 *table)
{
    Folding *f = &h->folding, again = *f;
    const u8 *start = f->at;
    while (start > h->data && start[-1] > SPACE)
        start--;
    again.at = start;
    again.end = f->at;
    again.before = SPACE;
    fold(&again, table);
    f->out -= again.out - f->out;
    f->spaceless -= again.spaceless - f->spaceless;
    f->before = 0;
    while (f->at < f->end && *f->at > SPACE)
        f->at++;
    size_t place = (size_t)(f->out - h->out);
    Hole *last = h->holes + h->count - 1;
    if (h->count && place <= last->place + 1) { /* only a space between: they are one */
        f->out = h->out + last->place;
        last->end = (size_t)(f->at - h->data);
    } else if (h->count < MOST_HOLES) {
        h->holes[h->count++] = (Hole){(size_t)(start - h->data), (size_t)(f->at - h->data), place};
    } else {
        return 0;
    }
    return 1;
}

static enum Outcome fold_all(Holed *h, const u8 *table)
{
    enum Outcome outcome = fold(&h->folding, table);
    while (outcome == NEEDS_NEIGHBOURS && leave_hole(h, table))
        outcome = fold(&h->folding, table);
    return outcome;
}
