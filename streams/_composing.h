/* NFKC (Unicode Standard Annex 15) of code points that fold with their neighbours: marks, Jamo, ligatures.
 *
 * Nothing composes with a code point that folds alone but what comes after it, so one of them before is taken back and
 * none behind is needed. Included by _folding.h alone.
 */

enum { MOST_MARKS = 512 };
static const u32 NONE = ~(u32)0;

/* Hangul, with which one reckons: section 3.12 of the Unicode Standard. */
enum { SYLLABLES = 0xAC00, LEADS = 0x1100, VOWELS = 0x1161, FINALS = 0x11A7 };
enum { LEAD_COUNT = 19, VOWEL_COUNT = 21, FINAL_COUNT = 28 };

typedef struct {
    Folding *f;
    u32 starter; /* the last code point of class 0, NONE at first */
    int carried; /* the last one written that is no mark is a letter or number */
    u64 run;     /* of what marks or becomes a mark */
    size_t count;
    u32 marks[MOST_MARKS]; /* after the starter, by class */
    u8 classes[MOST_MARKS];
} Composing;

static u32 composed_of(const Unicode *unicode, u32 first, u32 second)
{
    u32 lead = first - LEADS, vowel = second - VOWELS, syllable = first - SYLLABLES, final = second - FINALS;
    if (lead < LEAD_COUNT && vowel < VOWEL_COUNT)
        return SYLLABLES + (lead * VOWEL_COUNT + vowel) * FINAL_COUNT;
    if (syllable < LEAD_COUNT * VOWEL_COUNT * FINAL_COUNT && syllable % FINAL_COUNT == 0 && final - 1 < FINAL_COUNT - 1)
        return first + final;
    u64 pair = (u64)first << 32 | second;
    size_t low = 0, high = unicode->pair_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (unicode->pairs[middle] < pair)
            low = middle + 1;
        else
            high = middle;
    }
    return low < unicode->pair_count && unicode->pairs[low] == pair ? unicode->composed[low] : NONE;
}

/* Lower case of a code point of the NFKC; marks stay on letters and numbers only. */
static void write_code(Composing *c, u32 code)
{
    const Unicode *unicode = c->f->unicode;
    u32 fold = letter_of(unicode, code)->fold, lower = fold & CODE_POINT;
    int mark = (fold & MARK) != 0;
    if (!mark)
        c->carried = (fold & BASE) != 0;
    if (c->carried)
        put_code(c->f, lower, is_spaceless(unicode, lower));
    else
        put_code(c->f, SPACE, 0);
}

/* Composes the starter with the marks that none of their class keeps off it. */
static void compose_marks(Composing *c)
{
    size_t left = 0;
    int before = 0; /* class of the last mark that stays */
    for (size_t i = 0; i < c->count; i++) {
        u32 composed = NONE;
        if (c->starter != NONE && c->classes[i] > before)
            composed = composed_of(c->f->unicode, c->starter, c->marks[i]);
        if (composed != NONE) {
            c->starter = composed;
            continue;
        }
        before = c->classes[i];
        c->marks[left] = c->marks[i];
        c->classes[left++] = c->classes[i];
    }
    c->count = left;
}

static void write_all(Composing *c)
{
    compose_marks(c);
    if (c->starter != NONE)
        write_code(c, c->starter);
    for (size_t i = 0; i < c->count; i++)
        write_code(c, c->marks[i]);
    c->starter = NONE;
    c->count = 0;
}

static void add_mark(Composing *c, u32 code, u8 class)
{
    size_t at = c->count++;
    for (; at && c->classes[at - 1] > class; at--) {
        c->marks[at] = c->marks[at - 1];
        c->classes[at] = c->classes[at - 1];
    }
    c->marks[at] = code;
    c->classes[at] = class;
}

/* A code point that NFKD left. */
static void add_part(Composing *c, u32 code)
{
    u8 class = letter_of(c->f->unicode, code)->parts & 0xFF;
    if (c->count == MOST_MARKS) /* only with made-up tables */
        write_all(c);
    if (class) {
        add_mark(c, code, class);
        return;
    }
    compose_marks(c);
    if (!c->count && c->starter != NONE) {
        u32 composed = composed_of(c->f->unicode, c->starter, code);
        if (composed != NONE) {
            c->starter = composed;
            return;
        }
    }
    write_all(c);
    c->starter = code;
}

static void add_code(Composing *c, u32 code)
{
    const Unicode *unicode = c->f->unicode;
    const Letter *letter = letter_of(unicode, code);
    u32 count = letter->parts >> 8 & 31, start = letter->parts >> 13;
    c->run = letter->fold & MARK_LIKE ? c->run + 1 : 0;
    if (c->run > c->f->mark_run)
        add_part(c, SPACE);
    else if (!count)
        add_part(c, code);
    for (u32 i = 0; i < count && c->run <= c->f->mark_run; i++)
        add_part(c, unicode->parts[start + i]);
}

/* The code point before, which folded alone; takes back what it wrote. */
static u32 taken_back(Folding *f)
{
    const u8 *at = f->at - 1;
    while (at > f->data && follows(*at))
        at--;
    u32 code = (u32)next_code(&at, f->end), folded = fold_alone(f->unicode, code);
    if (folded == SPACE)
        return SPACE;
    f->spaceless -= (size_t)is_spaceless(f->unicode, folded);
    while (follows(*--f->out))
        f->following--;
    f->before = f->out == form_of(f) ? SPACE : f->out[-1];
    return code;
}

/* Folds the next code points up to one that folds alone. */
static enum Outcome compose(Folding *f)
{
    Composing c;
    c.f = f;
    c.starter = NONE;
    c.carried = 0;
    c.run = 0;
    c.count = 0;
    if (!make_room(f))
        return NO_MEMORY;
    if (f->at > f->data)
        add_code(&c, taken_back(f));
    while (f->at < f->end) {
        const u8 *start = f->at;
        int32_t code = next_code(&f->at, f->end);
        if (code < 0)
            return NOT_UTF8;
        if (!(letter_of(f->unicode, (u32)code)->fold & COMPLEX)) {
            f->at = start;
            break;
        }
        if (!make_room(f))
            return NO_MEMORY;
        add_code(&c, (u32)code);
    }
    write_all(&c);
    return FOLDED;
}
