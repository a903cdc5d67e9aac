/* All numbers about two texts.
 *
 * The shorter text has fewer bytes in its normal form, then fewer symbols, then the smaller digest: an alignment is not
 * unique, so without a fixed order the numbers would depend on the order of arrival. Floats are added from the first to
 * the last, so that every processor gives equal numbers. */

#pragma once

#include "estimates/distance.h"
#include "platform.h"

#define GATE_SHARE 0.04
#define GATE_RATIO 0.9
#define LEAST_ROWS 0.3
#define ORDERED_PART 0.5
#define ROWS_TOUCHED 3
#define REPEATED 0.06
enum { GATE_SYMBOLS = 4, SHINGLE_WORDS = 5, SPACELESS_SHINGLE_BYTES = 12 };
enum { MIN_WORDS = 8, MIN_SPACELESS_BYTES = 40 };

/* `PACKED` of estimates/estimate.py. */
typedef struct {
    u8 shorter_digest[DIGEST];
    i64 longer_characters, fewer_words, rate, symbols_shorter, symbols_longer, common, matches;
    i64 shingles_shorter, shingles_longer;
    double length_ratio, sketch_resemblance, common_shingles, text_in_order, spread_shorter, spread_longer;
    double segment_cover, segment_share, distance, low, high, expected;
    double shared_shorter, shared, common_words, order_gap, mean_resemblance, spread, distance_ratio;
    u8 scattered, is_equal, is_short, same_lineage, same_site, padding[3];
} Estimate;

/* One text of a pair, at the rate of the pair. */
typedef struct {
    const Content *content;
    const View *view;
} Side;

/* Memory of one comparison after another, and the tables that Python gives. */
typedef struct {
    Workspace space;
    Room room;
    Buffer left; /* symbols that are left to the second alignment */
    Reach reach;
    const double *costs; /* RATIO_STEPS + 1 numbers */
} Comparing;

static void free_comparing(Comparing *with)
{
    free_workspace(&with->space);
    free(with->room.memory.start);
    free(with->left.start);
}

/* Returns the bytes of a character. */
static double width_of(const Content *text)
{
    return (double)text->n_bytes / (double)text->characters;
}

static double at_most_one(double share)
{
    return share < 1 ? share : 1;
}

static double ratio(double part, double whole)
{
    return whole != 0 ? part / whole : 0;
}

/* Returns whether the first text is the shorter one. */
static int is_in_order(const Side *a, const Side *b)
{
    if (a->content->n_bytes != b->content->n_bytes)
        return a->content->n_bytes < b->content->n_bytes;
    if (a->view->size != b->view->size)
        return a->view->size < b->view->size;
    return memcmp(a->content->digest, b->content->digest, DIGEST) <= 0;
}

static int is_either_spaceless(const Content *a, const Content *b)
{
    return a->spaceless || b->spaceless;
}

/* Returns the bytes of a shingle before its last word, or before its last character. */
static double lead_of(const Content *a, const Content *b)
{
    double bytes = (double)(a->n_bytes + b->n_bytes);
    if (!is_either_spaceless(a, b))
        return (SHINGLE_WORDS - 1) * bytes / (double)most_of(1, a->words + b->words);
    double lead = SPACELESS_SHINGLE_BYTES - bytes / (double)(a->characters + b->characters);
    return lead > 0 ? lead : 0;
}

static double length_ratio(const Content *shorter, const Content *longer)
{
    if (is_either_spaceless(shorter, longer))
        return (double)shorter->n_bytes / (double)longer->n_bytes;
    i64 fewer = least_of(shorter->words, longer->words), more = most_of(shorter->words, longer->words);
    return (double)fewer / (double)most_of(1, more);
}

/* Returns the shingles of a text, each as often as it comes. */
static i64 shingle_count(const Content *text)
{
    i64 places = text->words - (SHINGLE_WORDS - 1);
    if (text->spaceless)
        places = most_of(0, text->n_bytes - SPACELESS_SHINGLE_BYTES) * text->characters / text->n_bytes + 1;
    return most_of(text->shingles, places);
}

static int is_short(const Content *text)
{
    return text->spaceless ? text->n_bytes < MIN_SPACELESS_BYTES : text->words < MIN_WORDS;
}

static int is_equal(const Content *a, const Content *b)
{
    return !memcmp(a->digest, b->digest, DIGEST);
}

/* Returns the least number of common symbols that is worth an alignment. */
static i64 least_common(const Side *shorter, const Side *longer)
{
    if ((double)shorter->content->n_bytes >= GATE_RATIO * (double)longer->content->n_bytes)
        return GATE_SYMBOLS;
    size_t fewer = shorter->view->size < longer->view->size ? shorter->view->size : longer->view->size;
    return most_of(GATE_SYMBOLS, (i64)ceil(GATE_SHARE * (double)fewer));
}

static Text text_of(const Side *side)
{
    const View *view = side->view;
    return (Text){.symbols = view->symbols, .starts = view->starts, .rate = view->rate, .size = view->size};
}

/* Marks the matches as taken in copies of the symbols. Returns 0 if there is no memory. */
static int take_matches(Text text[2], Buffer *left)
{
    if (!grow(left, (text[0].size + text[1].size) * sizeof(i64) + 1))
        return 0;
    i64 *copy = (i64 *)(void *)left->start;
    for (int side = 0; side < 2; copy += text[side++].size) {
        if (text[side].symbols != copy) /* they are copies already when they are aligned for the third time */
            memcpy(copy, text[side].symbols, text[side].size * sizeof(i64));
        for (const u32 *match = text[side].match; match < text[side].end; match++)
            copy[*match] += TAKEN;
        text[side].symbols = copy;
    }
    return 1;
}

/* What the symbols of two texts say. `symbols_per_match` is that of the blocks in another order. */
typedef struct {
    size_t common, matches;
    Blocks in_order, moved;
    double symbols_per_match;
    Scattered scattered;
    double doubt; /* bytes by which the distance may be off where it is not read from scattered edits */
} Found;

/* Finds the common blocks, and then those in another order if there is enough of them. Returns 0 if there is no memory.
 */
static int find_blocks(Side both[2], i64 rate, i64 least, Comparing *with, Found *found)
{
    Text text[2] = {text_of(&both[0]), text_of(&both[1])};
    i64 grain = most_of(both[0].view->grain, both[1].view->grain);
    *found = (Found){.symbols_per_match = 1};
    if (!align(text, least, &with->space, &found->common))
        return 0;
    found->matches = matches_of(text);
    if (!make_block_room(&with->room, found->common))
        return 0;
    size_t numbers = write_blocks(text, &with->reach, grain, with->room.in_order);
    found->in_order = (Blocks){with->room.in_order, numbers / NUMBERS_PER_BLOCK};
    found->scattered = scattered_edits(text, both[0].content, both[1].content, rate);
    found->doubt = passage_doubt(text, grain, width_of(both[0].content));
    double left = (double)(found->common - found->matches), enough = MOVED_SHARE * (double)text[0].size;
    if (!found->matches || left < MOVED_SYMBOLS || left < enough)
        return 1;
    size_t rest;
    if (!take_matches(text, &with->left) || !align(text, 0, &with->space, &rest))
        return 0;
    numbers = write_blocks(text, &with->reach, grain, with->room.moved);
    found->moved = (Blocks){with->room.moved, numbers / NUMBERS_PER_BLOCK};
    found->symbols_per_match = left / (double)matches_of(text);
    return 1;
}

static double common_shingles(const Side both[2], const Found *found, double rate, double lead, double resemblance)
{
    const Content *shorter = both[0].content, *longer = both[1].content;
    i64 counts[2] = {shingle_count(shorter), shingle_count(longer)}, one = shorter->shingles, other = longer->shingles;
    if (is_equal(shorter, longer))
        return (double)least_of(counts[0], counts[1]);
    double places = (double)shorter->n_bytes - lead;
    double per_byte = (double)counts[0] / (places > 1 ? places : 1);
    double new_one = (double)one / (double)most_of(1, counts[0]), new_other = (double)other / (double)most_of(1, counts[1]);
    double new_per_byte = per_byte * (new_one > new_other ? new_one : new_other);
    double moved = shingle_bytes(found->moved, lead), guessed = moved * (found->symbols_per_match - 1);
    double bytes = shingle_bytes(found->in_order, lead) + moved + guessed;
    double uncertain = rate > 1 ? rate * sqrt((double)(found->in_order.count + 1)) : 0;
    double deviation = sqrt(uncertain * uncertain + guessed * guessed);
    double common = weighted_shingles(bytes * new_per_byte, deviation * new_per_byte, resemblance, one, other);
    double most = common + (double)least_of(counts[0] - one, counts[1] - other);
    double counted = bytes * per_byte > common ? bytes * per_byte : common;
    return counted < most ? counted : most;
}

/* Returns the common rows of two lists, as shingles, if most of these are in another order, else 0. The sketches of lists
 * are sets of rows. If only some rows had changed, windows would have survived as often as all rows that they touch. A
 * text that repeats itself is no list, because a set does not show how often it has a row. */
static double rows_in_other_order(const Side both[2], const Found *found, double resemblance)
{
    i64 one = both[0].content->shingles, other = both[1].content->shingles, fewer = least_of(one, other);
    i64 counts[2] = {shingle_count(both[0].content), shingle_count(both[1].content)};
    double rows = at_most_one(ratio(resemblance / (1 + resemblance) * (double)(one + other), (double)fewer));
    double in_order = ratio((double)found->matches, (double)both[0].view->size);
    if (rows < LEAST_ROWS || in_order >= ORDERED_PART * pow(rows, ROWS_TOUCHED) || 2 * fewer < most_of(counts[0], counts[1]))
        return 0;
    return rows * (double)least_of(counts[0], counts[1]);
}

/* Writes the distance with its band, in characters. It sorts the blocks. */
static void write_distance(const Side both[2], const Found *found, Comparing *with, Estimate *out)
{
    const Content *shorter = both[0].content, *longer = both[1].content;
    double sizes[2] = {(double)shorter->n_bytes, (double)longer->n_bytes}, least = sizes[1] - sizes[0], band[2] = {0, 0};
    double expected = least + with->costs[(int)rint(sizes[0] / sizes[1] * RATIO_STEPS)] * sizes[0], value = expected;
    double read[2] = {expected, expected};
    const Scattered *edits = &found->scattered;
    if (out->is_equal)
        value = 0;
    else if (found->matches) {
        value = edits->found ? edits->value
                             : block_edits(&with->room, found->in_order.count, found->moved.count, with->costs, sizes,
                                           (double)out->rate);
        value = value < least ? least : value;
        value = value > expected ? expected : value;
        read[0] = edits->found ? edits->low : value - found->doubt;
        read[1] = edits->found ? edits->high : value + found->doubt;
    }
    if (!out->is_equal)
        write_band(value, least, expected, sizes[1], read, band);
    double width = (double)(shorter->characters + longer->characters) / (sizes[0] + sizes[1]);
    i64 grown = longer->characters - shorter->characters;
    double known = (double)(grown < 0 ? -grown : grown), bytes[] = {value, band[0], band[1], expected};
    double *characters[] = {&out->distance, &out->low, &out->high, &out->expected};
    for (int i = 0; i < 4; i++) {
        double distance = known + (bytes[i] - least) * width;
        *characters[i] = distance > 0 ? distance : 0;
    }
    out->scattered = !out->is_equal && found->scattered.single;
}

/* Writes the numbers that follow from others. */
static void write_shares(Estimate *e)
{
    double shingles = (double)(e->shingles_shorter + e->shingles_longer);
    e->shared_shorter = ratio(e->common_shingles, (double)e->shingles_shorter);
    e->shared = ratio(e->common_shingles, (double)least_of(e->shingles_shorter, e->shingles_longer));
    e->common_words = e->shared * (double)e->fewer_words;
    double shingles_moved = e->shared_shorter - e->text_in_order;
    /* Short rows that moved keep few of their shingles, but a window of 16 bytes hardly spans two of them. */
    double symbols_moved = ratio((double)(e->common - e->matches), (double)e->symbols_shorter) - REPEATED;
    e->order_gap = fmax(0, fmax(shingles_moved, symbols_moved));
    double fewer = (double)least_of(e->shingles_shorter, e->shingles_longer);
    double bound = ratio(fewer, shingles - fewer);
    double sketched = e->sketch_resemblance < bound ? e->sketch_resemblance : bound;
    e->mean_resemblance = e->rate ? ratio(e->common_shingles, shingles - e->common_shingles) : sketched;
    e->spread = e->spread_longer < e->spread_shorter ? e->spread_longer : e->spread_shorter;
    e->distance_ratio = e->distance / (double)e->longer_characters;
}

/* Writes all numbers about two texts, the shorter one first. Returns 0 if there is no memory. */
static int write_estimate(Side both[2], i64 least, Comparing *with, Estimate *out)
{
    const Content *shorter = both[0].content, *longer = both[1].content;
    double bytes = (double)shorter->n_bytes, lead = lead_of(shorter, longer);
    Found found;
    if (!find_blocks(both, most_of(shorter->rate, longer->rate), least, with, &found))
        return 0;
    Layout lie = layout(found.in_order, lead, &with->room);
    *out = (Estimate){
        .longer_characters = most_of(shorter->characters, longer->characters),
        .fewer_words = is_either_spaceless(shorter, longer) ? least_of(shingle_count(shorter), shingle_count(longer))
                                                     : least_of(shorter->words, longer->words),
        .rate = most_of(shorter->rate, longer->rate),
        .symbols_shorter = (i64)both[0].view->size,
        .symbols_longer = (i64)both[1].view->size,
        .common = (i64)found.common,
        .matches = (i64)found.matches,
        .shingles_shorter = shingle_count(shorter),
        .shingles_longer = shingle_count(longer),
        .length_ratio = length_ratio(shorter, longer),
        .sketch_resemblance = resemblance(shorter, longer),
        .text_in_order = at_most_one(lie.common / bytes),
        .spread_shorter = at_most_one(lie.spreads[0] / bytes),
        .spread_longer = at_most_one(lie.spreads[1] / (double)longer->n_bytes),
        .segment_cover = at_most_one(lie.segment.common / bytes),
        .segment_share = ratio(lie.segment.common, lie.common),
        .is_equal = (u8)is_equal(shorter, longer),
        .is_short = is_short(shorter) || is_short(longer),
    };
    memcpy(out->shorter_digest, shorter->digest, DIGEST);
    double rows = rows_in_other_order(both, &found, out->sketch_resemblance);
    double in_place = common_shingles(both, &found, (double)out->rate, lead, out->sketch_resemblance);
    out->common_shingles = rows > in_place ? rows : in_place;
    write_distance(both, &found, with, out);
    write_shares(out);
    return 1;
}
