/* NFKC (Unicode Standard Annex 15) of code points that fold with their neighbours: marks, Jamo, ligatures.
 *
 * A code point that folds alone composes only with code points after it. So one such code point before these is taken
 * back, and none after them is needed. */

#pragma once

#include "platform.h"
#include "signing/case_folding.h"

enum { MAX_MARKS = 512 };
static const u32 NONE = ~(u32)0;

/* Hangul syllables are computed, see section 3.12 of the Unicode Standard. */
enum { SYLLABLES = 0xAC00, LEADS = 0x1100, VOWELS = 0x1161, FINALS = 0x11A7 };
enum { LEAD_COUNT = 19, VOWEL_COUNT = 21, FINAL_COUNT = 28 };

/* The state of composing: the last starter, and the marks after it. */
typedef struct {
    Folding *f;
    u32 starter;  /* the last code point of combining class 0, NONE at first */
    int has_base; /* the last code point written that is no mark is a letter or number */
    u64 run;      /* length of the current run of marks, and of code points that become marks */
    size_t count;
    u32 marks[MAX_MARKS]; /* after the starter, sorted by class */
    u8 classes[MAX_MARKS];
} Composing;

/* Returns what two code points compose to, or NONE. */
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

/* Writes the lower case of a code point of the NFKC. Marks are kept only on letters and numbers. */
static void write_code(Composing *c, u32 code)
{
    const Unicode *unicode = c->f->unicode;
    u32 fold = properties_of(unicode, code)->fold, lower = fold & CODE_POINT;
    int mark = (fold & MARK) != 0;
    if (!mark)
        c->has_base = (fold & BASE) != 0;
    if (c->has_base)
        put_code(c->f, lower, is_spaceless(unicode, lower));
    else
        put_code(c->f, SPACE, 0);
}

/* Composes the starter with the marks that are not blocked by another mark of their class. */
static void compose_marks(Composing *c)
{
    size_t left = 0;
    int before = 0; /* class of the last mark that was not composed */
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

/* Adds a code point of the NFKD. */
static void add_part(Composing *c, u32 code)
{
    u8 class = properties_of(c->f->unicode, code)->parts & 0xFF;
    if (c->count == MAX_MARKS) /* happens only with invalid tables */
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

/* Adds a code point of the text. Marks after the longest run that is kept become spaces. */
static void add_code(Composing *c, u32 code)
{
    const Unicode *unicode = c->f->unicode;
    const Properties *properties = properties_of(unicode, code);
    u32 count = properties->parts >> 8 & 31, start = properties->parts >> 13;
    c->run = properties->fold & MARK_LIKE ? c->run + 1 : 0;
    if (c->run > c->f->mark_run)
        add_part(c, SPACE);
    else if (!count)
        add_part(c, code);
    for (u32 i = 0; i < count && c->run <= c->f->mark_run; i++)
        add_part(c, unicode->parts[start + i]);
}

/* Returns the code point before, which folded alone, and takes back what it wrote. */
static u32 take_back(Folding *f)
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

/* Folds the next code points, up to the first that folds alone. */
static enum Outcome compose(Folding *f)
{
    Composing c;
    c.f = f;
    c.starter = NONE;
    c.has_base = 0;
    c.run = 0;
    c.count = 0;
    if (!make_room(f))
        return NO_MEMORY;
    if (f->at > f->data)
        add_code(&c, take_back(f));
    while (f->at < f->end) {
        const u8 *start = f->at;
        int32_t code = next_code(&f->at, f->end);
        if (code < 0)
            return NOT_UTF8;
        if (!(properties_of(f->unicode, (u32)code)->fold & COMPLEX)) {
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
