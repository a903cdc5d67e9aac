/* Edits all over two texts of nearly one length, read from the windows that they left.
 *
 * A window survives if none of the characters that it touches was edited. Among characters of w bytes, edited with
 * density p, a window of N bytes touches (N - 1 + w) / w of them and survives with (1 - p) to this power, which is
 * solved for p (refines Coates: "A Fast Metric of Document Similarity").
 *
 * Of windows, exp(-e (N - 1 + w)) survive e edits a byte of w bytes each, at random places. The edits form
 * e exp(-e (N - 1 + w)) runs of lost windows a byte, of which 1 / (1 + e (rate - 1)) are followed by a sampled window
 * before the next edit, and all but (1 - 1 / rate)^(2 (N - 1 + w)) lose a sampled window. Both are solved for e and w. Edits that
 * keep apart, as in a form, are a run each, and 1 - e (N - 1 + w) of the windows survive. Their variance from step to
 * step is then less than 1.3 times their mean.
 *
 * The bytes of an edit are known from the Poisson count of lost windows alone, so its cost is the mean of that and of
 * the usual cost of a word, 6 characters with a variance of 9, weighted by their inverse variances. */

#pragma once

#include "estimates/content.h"
#include "platform.h"

#define SCATTERED_RATIO 0.9
#define SCATTERED_DRIFT 0.10
#define SCATTERED_LARGEST 0.40
#define SCATTERED_VARIANCE 2.0
#define SCATTERED_RUN 4.5
#define COUNTABLE 0.60
#define WIDE 2.5
#define WORD_SHARE 0.9
#define WORD_COST 6.0
#define WORD_VARIANCE 9.0
#define WORD_BYTES 25.0
#define CROWDED 0.8
#define APART 1.3
#define DENSE 0.78
#define Z_90 1.645
#define DOUBT 0.05
#define MAX_ODDS 50.0
enum { SCATTERED_MATCHES = 8 };

/* The distance of texts with edits all over them. `found` is 0 unless edits are scattered. */
typedef struct {
    double value, low, high;
    int found, single;
} Scattered;

/* The reading that words were replaced: the distance, half the width of its band, and the probability of it. */
typedef struct {
    double value, half, chance;
} ReplacedWords;

/* What lies between two neighbouring matches, or between a match and an end of the texts. */
typedef struct {
    i64 lost, both, gap[2]; /* symbols lost in the text that lost more, and in both */
} Step;

static Step step_before(const Text text[2], size_t k, size_t matches)
{
    Step step = {0, 0, {0, 0}};
    for (int side = 0; side < 2; side++) {
        i64 before = k ? (i64)text[side].match[k - 1] : -1;
        i64 after = k < matches ? (i64)text[side].match[k] : (i64)text[side].size;
        step.lost = most_of(step.lost, after - before - 1);
        step.both += after - before - 1;
        step.gap[side] = text[side].starts[after] - (k ? text[side].starts[before] : -LD_WINDOW_BYTES);
    }
    return step;
}

/* Sums over the steps that lost symbols. */
typedef struct {
    i64 lost, both, squares, largest, steps, length, grown, drift;
} Losses;

static Losses losses_of(const Text text[2], size_t matches)
{
    Losses all = {0, 0, 0, 0, 0, 0, 0, 0};
    for (size_t k = 0; k <= matches; k++) {
        Step step = step_before(text, k, matches);
        if (step.lost) {
            i64 grown = step.gap[1] - step.gap[0];
            all.lost += step.lost;
            all.both += step.both;
            all.squares += step.both * step.both;
            all.largest = most_of(all.largest, step.lost);
            all.steps++;
            all.length += most_of(step.gap[0], step.gap[1]);
            all.grown += grown;
            all.drift += grown < 0 ? -grown : grown;
        }
    }
    return all;
}

/* Writes the bytes of edited single characters. Returns 0 if these cannot explain the lengths of the steps. */
static int single_characters(const Text text[2], const Content *shorter, const Losses *all, double *edited)
{
    size_t matches = matches_of(text);
    double survived = (double)matches / (double)text[0].size, length = (double)all->length;
    double characters = (double)shorter->characters, width = (double)shorter->n_bytes / characters;
    double edits = (1 - pow(survived, width / (LD_WINDOW_BYTES - 1 + width))) * characters, in_lengths = 0;
    i64 beyond_own = 0;
    for (size_t k = 0; k <= matches; k++) {
        Step step = step_before(text, k, matches);
        if (step.lost) {
            double gap = (double)most_of(step.gap[0], step.gap[1]), grown = (double)(step.gap[1] - step.gap[0]);
            double own = edits / length * gap, beyond = (grown - (double)all->grown / length * gap) / width;
            beyond_own += beyond * beyond > SCATTERED_VARIANCE * (own > 1 ? own : 1);
            in_lengths += grown < -own ? -own : grown > own ? own : grown;
        }
    }
    *edited = (edits - fabs(in_lengths)) * width;
    return 2 * beyond_own <= all->steps;
}

/* Returns the variance of the symbols that a step lost, over their mean. */
static double dispersion(const Losses *all)
{
    double total = (double)all->both, steps = (double)all->steps;
    return ((double)all->squares - total * total / steps) / (double)most_of(1, all->steps - 1) / (total / steps);
}

/* Writes the distance if words were replaced. Returns 0 if the edits are larger than words. */
static int replaced_words(const Content *shorter, const Content *longer, i64 rate, const Losses *all, double survived,
                          int could_be_characters, ReplacedWords *words)
{
    double n_bytes = (double)(shorter->n_bytes + longer->n_bytes) / 2 - (LD_WINDOW_BYTES - 1), unseen = 0;
    int apart = survived < DENSE && dispersion(all) < APART;
    double width = (double)shorter->n_bytes / (double)shorter->characters;
    double between = apart ? 0 : (double)most_of(1, rate - 1), lone = apart ? 1 : survived;
    double lost = apart ? 1 - survived : -log(survived);
    double steps = (double)all->steps, density = 0, reach = 0, touched = 0;
    n_bytes = n_bytes > 1 ? n_bytes : 1;
    for (int round = 0; round < 2; round++) {
        double seen = steps / (n_bytes * lone * (1 - unseen)), room = 1 - seen * between;
        density = seen / (room > 1 - CROWDED ? room : 1 - CROWDED);
        reach = lost / density;
        touched = reach > LD_WINDOW_BYTES ? reach : LD_WINDOW_BYTES;
        unseen = pow(1 - 1 / (double)rate, 2 * touched);
    }
    double edited = reach - (LD_WINDOW_BYTES - 1);
    if (edited > WORD_BYTES)
        return 0;
    double cost = WORD_SHARE * (edited + (double)all->drift / steps / 2);
    double variance = WORD_SHARE * WORD_SHARE * (double)rate * touched / 2 / (steps * survived);
    double usual = WORD_COST * width, spread = WORD_VARIANCE * width * width;
    double to_character = cost - width, to_word = cost - usual;
    double odds = to_word * to_word / (variance + spread) - to_character * to_character / variance;
    double exponent = (odds - log(variance / (variance + spread))) / 2, certainty = 1 / variance + 1 / spread;
    words->chance = could_be_characters ? 1 / (1 + exp(exponent < MAX_ODDS ? exponent : MAX_ODDS)) : 1;
    words->value = (cost / variance + usual / spread) / certainty * density * n_bytes;
    words->half = Z_90 / sqrt(certainty) * density * n_bytes;
    return 1;
}

static Scattered certain(double value)
{
    return (Scattered){value, value, value, 1, 1};
}

/* Returns the likelier of two readings, with a band that includes the other one if it is likely enough. */
static Scattered likelier(const ReplacedWords *words, double characters, int could_be_characters)
{
    double low = words->value - words->half, high = words->value + words->half;
    if (!could_be_characters || words->chance > 1 - DOUBT)
        return (Scattered){words->value, low, high, 1, 0};
    if (words->chance < DOUBT)
        return certain(characters);
    int single = words->chance < 0.5;
    return (Scattered){single ? characters : words->value, low < characters ? low : characters,
                       high > characters ? high : characters, 1, single};
}

static Scattered scattered_edits(const Text text[2], const Content *shorter, const Content *longer, i64 rate)
{
    Scattered none = {0, 0, 0, 0, 0};
    size_t matches = matches_of(text);
    if (matches < SCATTERED_MATCHES || (double)shorter->n_bytes < SCATTERED_RATIO * (double)longer->n_bytes)
        return none;
    Losses all = losses_of(text, matches);
    if ((double)all.largest >= SCATTERED_LARGEST * (double)all.lost ||
        (double)all.drift > SCATTERED_DRIFT * (double)all.length)
        return none;
    double least = (double)(longer->n_bytes - shorter->n_bytes), edited = 0;
    int could_be_characters = single_characters(text, shorter, &all, &edited);
    double survived = 2 * (double)matches / (double)(text[0].size + text[1].size);
    if (survived < COUNTABLE || (double)shorter->n_bytes >= WIDE * (double)shorter->characters) {
        double most = SCATTERED_RUN * (double)all.steps / ((double)matches / (double)text[0].size);
        return !could_be_characters || (double)all.lost > most ? none : certain(least + edited);
    }
    ReplacedWords words;
    if (!replaced_words(shorter, longer, rate, &all, survived, could_be_characters, &words))
        return none;
    return likelier(&words, least + edited, could_be_characters);
}
