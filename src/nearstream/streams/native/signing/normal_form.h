/* The normal form of a whole text. */

#pragma once

#include "platform.h"
#include "signing/nfkc.h"

/* Folds the whole text. */
static enum Outcome fold(Folding *f)
{
    if (!grow(&f->form, PADDING + 2 * (size_t)(f->end - f->at) + ROOM)) /* two bytes of UTF-8 may become three */
        return NO_MEMORY;
    memset(f->form.start, 0, PADDING);
    f->out = form_of(f);
    f->before = SPACE; /* so that the output does not start with a space */
    while (f->at < f->end) {
        if (*f->at < 0x80) {
            fold_ascii_run(f, ascii_run(f->at, f->end));
            continue;
        }
        if (!f->unicode)
            return NOT_ASCII;
        const u8 *start = f->at;
        int32_t code = next_code(&f->at, f->end);
        if (code < 0)
            return NOT_UTF8;
        u32 folded = fold_alone(f->unicode, (u32)code);
        if (folded != COMPLEX_UNIT) {
            put_code(f, folded, is_spaceless(f->unicode, folded));
            continue;
        }
        f->at = start;
        enum Outcome outcome = compose(f);
        if (outcome != FOLDED)
            return outcome;
    }
    f->out -= f->out > form_of(f) && f->before == SPACE;
    *f->out = 0; /* `roll` reads one byte after the last window */
    return FOLDED;
}
