/* A few edits apart from each other, read from the windows that each edit destroys.
 *
 * In a short text each edit is a place of its own, and the path from block to block counts half of a replaced word. The
 * costs were measured on texts of 30 to 400 words in which up to six words were replaced, inserted or deleted, or a
 * character of them changed. The windows around an edit of w bytes leave s more bytes free, the sum of two geometric
 * draws, with a probability of (s + 1) (1 - 1 / rate)^s / rate^2, which tells words replaced by others of their length
 * from changed characters. */

#pragma once

#include "estimates/scattered.h"
#include "platform.h"

#define ISOLATED_RATIO 0.8
#define WORD_PLACE 12.0
#define ISOLATED_COST 4.2
#define GROWN_SHARE 0.6
#define ISOLATED_DEVIATION 2.5
#define PASSAGE_DEVIATION 3.5
#define EQUAL_ODDS 4.0
#define EQUAL_LENGTH 0.13
#define FIELD_ODDS 0.5
#define FIELD_SHARE 0.9
#define ONE_WAY_ODDS 8.0
#define ONE_WAY 0.22
enum { ISOLATED_MATCHES = 4, PLACES_MAX = 8, RATES_OF_ONE = 2, TOUCHED = 42, INSERTED = 3, GROWN_MAX = 9, FIELD_BYTES = 9 };
enum { SMALL_RATES = 3, SMALL_BYTES = 25 };

/* A place where two texts differ, in bytes. */
typedef struct {
    i64 room, grown;
} Difference;

/* Writes at most PLACES_MAX places, and returns how many there are, at most one more. */
static size_t write_differences(const Text text[2], i64 grain, Difference found[PLACES_MAX])
{
    size_t matches = matches_of(text), count = 0;
    for (size_t k = 0; k <= matches; k++) {
        Step step = step_before(text, k, matches);
        i64 grown = step.gap[1] - step.gap[0], room = least_of(step.gap[0], step.gap[1]) - LD_WINDOW_BYTES;
        if (llabs(grown) < most_of(1, grain))
            grown = 0;
        if (!step.lost && !grown)
            continue;
        if (count == PLACES_MAX)
            return PLACES_MAX + 1;
        found[count++] = (Difference){most_of(0, room), grown};
    }
    return count;
}

/* Returns how far the distance of texts with a few changed passages may be off, in bytes. */
static double passage_doubt(const Difference *found, size_t count, double width)
{
    double edits = 0;
    if (count > PLACES_MAX)
        return 0;
    for (size_t i = 0; i < count; i++) {
        double own = (double)found[i].room / WORD_PLACE;
        edits += own > 1 ? own : 1;
    }
    return Z_90 * PASSAGE_DEVIATION * sqrt(edits) * width;
}

/* Returns how many edits a place holds. */
static double edits_at(const Difference *place, i64 rate)
{
    double own = (double)(place->room - RATES_OF_ONE * rate) / WORD_PLACE;
    return own > 1 ? own : 1;
}

/* Returns the mean of two readings, the first with a chance. */
static Scattered mean_of(double words, double other, double spread, double chance)
{
    double value = chance * words + (1 - chance) * other;
    return (Scattered){value, value < other ? value : other, chance > DOUBT ? words + spread : value, 1, 0};
}

/* Returns the distance of texts whose places all are as long as they were, from how wide these are. */
static Scattered edits_of_equal_length(const Difference *found, size_t count, i64 rate, double width, double more)
{
    double of_fields = 1, of_characters = 1, fields = 0, edits = 0, kept = 1 - 1 / (double)rate;
    for (size_t i = 0; i < count; i++) {
        i64 room = most_of(1, found[i].room);
        double own = edits_at(&found[i], rate), likely = 0, bytes_of_one = 0;
        for (i64 bytes = 1; bytes <= least_of(room, FIELD_BYTES); bytes++) {
            double chance = (double)(room - bytes + 1) * pow(kept, (double)(room - bytes));
            likely += chance / FIELD_BYTES;
            bytes_of_one += (double)bytes * chance / FIELD_BYTES;
        }
        of_characters *= (double)room * pow(kept, (double)(room - 1));
        of_fields *= likely;
        fields += own == 1 && likely > 0 ? FIELD_SHARE * bytes_of_one / likely : own * ISOLATED_COST * width;
        edits += own;
    }
    double odds = (EQUAL_ODDS * pow(EQUAL_LENGTH, (double)count) + FIELD_ODDS) * of_fields;
    double chance = odds + of_characters > 0 ? odds / (odds + of_characters) : 1;
    double spread = Z_90 * ISOLATED_DEVIATION * width * sqrt(edits) * more;
    return mean_of(fields * more, edits * width * more, spread, chance);
}

/* Returns the mean of what replaced words cost, and of what other edits would that look alike. */
static Scattered likelier_edits(const Difference *found, size_t count, i64 rate, double width, double more)
{
    double edits = 0, words = 0, least = 0, inserted = 0;
    int is_equal_length = 1, has_grown = 1, has_shrunk = 1;
    for (size_t i = 0; i < count; i++) {
        double own = edits_at(&found[i], rate), moved = (double)llabs(found[i].grown);
        double cost = own * ISOLATED_COST * width + GROWN_SHARE * moved;
        edits += own;
        words += cost > moved ? cost : moved;
        least += own * width > moved ? own * width : moved;
        inserted += moved;
        is_equal_length &= !found[i].grown;
        has_grown &= found[i].grown >= INSERTED;
        has_shrunk &= found[i].grown <= -INSERTED;
    }
    words *= more;
    double spread = Z_90 * ISOLATED_DEVIATION * width * sqrt(edits) * more, other, odds;
    if (is_equal_length)
        return edits_of_equal_length(found, count, rate, width, more);
    if (has_grown || has_shrunk) {
        other = inserted;
        odds = ONE_WAY_ODDS * pow(ONE_WAY, (double)count);
    } else
        return (Scattered){words, least < words - spread ? least : words - spread, words + spread, 1, 0};
    return mean_of(words, other, spread, odds / (1 + odds));
}

/* Returns the distance of two texts that differ in a few small places. `found` is 0 if they do not. */
static Scattered isolated_edits(const Text text[2], const Difference *seen, size_t count, const Content *shorter,
                                const Content *longer, i64 rate)
{
    Scattered none = {0, 0, 0, 0, 0};
    double width = (double)shorter->n_bytes / (double)shorter->characters;
    if (matches_of(text) < ISOLATED_MATCHES || (double)shorter->n_bytes < ISOLATED_RATIO * (double)longer->n_bytes ||
        count > PLACES_MAX || width >= WIDE)
        return none;
    Difference unseen_place = {0, longer->n_bytes - shorter->n_bytes};
    const Difference *found = count ? seen : &unseen_place;
    size_t all = count ? count : 1;
    i64 most = SMALL_RATES * rate + SMALL_BYTES;
    for (size_t i = 0; i < all; i++)
        if (found[i].room > most || llabs(found[i].grown) > GROWN_MAX)
            return none;
    double unseen = count ? pow(1 - 1 / (double)rate, TOUCHED) : 0;
    return likelier_edits(found, all, rate, width, 1 / (1 - unseen));
}
