/* Edit distance from aligned LD signatures, with its 90 % band.
 *
 * Edits all over the texts are counted (scattered.h). Others are the cheapest path from block to block of common text.
 * Both methods refine the distance of two LD signatures (Coates: "A Fast Metric of Document Similarity").
 *
 * Between edits at random, common runs have exponential lengths, m bytes on average. A run of N - 1 + x bytes contains
 * a sampled window with the probability 1 - exp(-x / rate). Of all runs, exp(-(N - 1) / m) m / (m + rate) are seen, and
 * these have N - 1 + m + m rate / (m + rate) bytes on average, from which m follows, and with it the common text that
 * is hidden between the blocks. The band was measured, as shares of the longer length by (distance - least) / longer.
 */

#pragma once

#include "estimates/common_text.h"
#include "estimates/scattered.h"
#include "platform.h"

#define LEAST_COST 0.70
#define NARROW_SHARE 0.5
#define HIDDEN_WEIGHT 0.65
#define MAX_EXPONENT 20.0
#define WORD_PLACE 12.0
#define PASSAGE_DEVIATION 4.5
enum { NARROW_RATES = 4, HIDDEN_BLOCKS = 8, BANDS = 8, PLACES_MAX = 8 };

static const double band_from[BANDS] = {0.0, 0.01, 0.03, 0.06, 0.10, 0.20, 0.30, 0.40};
static const double band_minus[BANDS] = {0.003, 0.009, 0.014, 0.022, 0.030, 0.060, 0.090, 0.200};
static const double band_plus[BANDS] = {0.004, 0.015, 0.016, 0.018, 0.020, 0.025, 0.025, 0.025};

/* Returns the share of the text between blocks that is common too. */
static double hidden_share(Blocks blocks, double shorter, double rate)
{
    if (blocks.count < HIDDEN_BLOCKS)
        return 0;
    double seen = 0, count = (double)blocks.count;
    for (size_t i = 0; i < blocks.count; i++)
        seen += length_of(block_at(blocks, i));
    double beyond = seen / count - (LD_WINDOW_BYTES - 1);
    beyond = beyond > 1 ? beyond : 1;
    double half = beyond / 2 - rate, mean = half + sqrt(half * half + beyond * rate);
    double exponent = (LD_WINDOW_BYTES - 1) / mean;
    double all_runs = count * exp(exponent < MAX_EXPONENT ? exponent : MAX_EXPONENT) * (mean + rate);
    double hidden = all_runs - seen > 0 ? all_runs - seen : 0, rest = shorter - seen > 1 ? shorter - seen : 1;
    return hidden / rest < 1 ? hidden / rest : 1;
}

static int is_before(const double *block, const double *other)
{
    for (size_t i = 0; i < NUMBERS_PER_BLOCK; i++)
        if (block[i] != other[i])
            return block[i] < other[i];
    return 0;
}

/* Sorts blocks that are nearly sorted. */
static void sort_blocks(double *start, size_t count)
{
    double moving[NUMBERS_PER_BLOCK];
    for (size_t i = 1; i < count; i++) {
        double *to = start + i * NUMBERS_PER_BLOCK;
        if (!is_before(to, to - NUMBERS_PER_BLOCK))
            continue;
        memcpy(moving, to, sizeof moving);
        for (; to > start && is_before(moving, to - NUMBERS_PER_BLOCK); to -= NUMBERS_PER_BLOCK)
            memcpy(to, to - NUMBERS_PER_BLOCK, sizeof moving);
        memcpy(to, moving, sizeof moving);
    }
}

/* Merges sorted blocks. */
static Blocks merge(Blocks one, Blocks other, double *out)
{
    Blocks merged = {out, one.count + other.count};
    for (size_t i = 0, j = 0; i + j < merged.count;) {
        int is_other = i == one.count || (j < other.count && is_before(block_at(other, j), block_at(one, i)));
        const double *block = is_other ? block_at(other, j++) : block_at(one, i++);
        memcpy(out + (i + j - 1) * NUMBERS_PER_BLOCK, block, NUMBERS_PER_BLOCK * sizeof(double));
    }
    return merged;
}

/* Returns the cost of the cheapest path that keeps some blocks. It sorts them. */
static double block_edits(Room *room, size_t in_order, size_t moved, const double *shares, const double sizes[2],
                          double rate)
{
    sort_blocks(room->in_order, in_order);
    sort_blocks(room->moved, moved);
    Blocks all = merge((Blocks){room->in_order, in_order}, (Blocks){room->moved, moved}, room->used);
    double wide = 1 - HIDDEN_WEIGHT * hidden_share(all, sizes[0], rate);
    wide = wide > NARROW_SHARE ? wide : NARROW_SHARE;
    double *end = room->used + all.count * NUMBERS_PER_BLOCK;
    memcpy(end, (double[]){sizes[0], sizes[1], sizes[0], sizes[1], 0}, NUMBERS_PER_BLOCK * sizeof(double));
    Costs costs = {shares, NARROW_RATES * rate, NARROW_SHARE, wide, LEAST_COST * wide};
    return cost_of_path(room->used, all.count + 1, &costs, room->paths);
}

/* Returns how far the distance of texts that differ in a few places may be off, in bytes, 0 if there are many. */
static double passage_doubt(const Text text[2], i64 grain, double width)
{
    size_t matches = matches_of(text), places = 0;
    double edits = 0;
    for (size_t k = 0; k <= matches; k++) {
        Step step = step_before(text, k, matches);
        if (!step.lost && llabs(step.gap[1] - step.gap[0]) < most_of(1, grain))
            continue;
        if (++places > PLACES_MAX)
            return 0;
        double own = (double)(least_of(step.gap[0], step.gap[1]) - LD_WINDOW_BYTES) / WORD_PLACE;
        edits += own > 1 ? own : 1;
    }
    return Z_90 * PASSAGE_DEVIATION * sqrt(edits) * width;
}

/* Writes the 90 % band of a distance, which includes all that another reading gives. */
static void write_band(double value, double least, double expected, double longer, const double read[2], double band[2])
{
    int row = BANDS - 1;
    while (row && (value - least) / longer < band_from[row])
        row--;
    band[0] = value - band_minus[row] * longer;
    band[1] = value + band_plus[row] * longer;
    band[0] = read[0] < band[0] ? read[0] : band[0];
    band[1] = read[1] > band[1] ? read[1] : band[1];
    band[0] = band[0] < least ? least : band[0];
    band[1] = band[1] > expected ? expected : band[1];
}
