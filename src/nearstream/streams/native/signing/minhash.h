/* Sets of hashes, and the sketch of a set: 128 minima.
 *
 * This is fast similarity sketching (Dahlgaard, Knudsen, Thorup, FOCS 2017). In each round, every feature throws a
 * value into one slot. In the first 128 rounds the slot is random. In the next 128 rounds all features throw into the
 * first slot, then all into the second, and so on. A slot keeps its smallest value, which always comes from the
 * earliest round that reached the slot. The rounds end when no slot is empty, because more would change nothing. */

#pragma once

#include "job.h"
#include "platform.h"

enum { SLOT_SHIFT = 57, VALUE_BITS = 49 };

/* Removes duplicates in place, in any order. Returns the number of distinct values.
 *
 * Some bits of a value choose its slot in a hash table. If another value is there already, other bits choose another
 * slot in the next round, and all copies of the value do this alike. No branch depends on a value.
 */
static size_t distinct(Job *job, u64 *values, size_t count)
{
    size_t size = 64, found = 0, rest = 0;
    u64 *table = job->table, *later = job->spare, zero = 0;
    while (2 * size < 3 * count)
        size *= 2;
    memset(table, 0, size * sizeof(u64));
    for (size_t i = 0; i < count; i++) {
        u64 value = values[i], *slot = table + (value & (size - 1)), there = *slot;
        zero |= value == 0;
        *slot = there ? there : value;
        values[found] = value;
        found += (there == 0) & (value != 0);
        later[rest] = value;
        rest += (there != 0) & (there != value);
    }
    for (int round = 1; rest; round++) {
        size_t again = 0;
        for (size_t i = 0; i < rest; i++) {
            u64 value = later[i];
            int turn = 1 + round % 63;
            size_t at = (value >> turn | value << (64 - turn)) + (u64)round * 7919;
            u64 *slot = table + (at & (size - 1)), there = *slot;
            *slot = there ? there : value;
            values[found] = value;
            found += there == 0;
            later[again] = value;
            again += (there != 0) & (there != value);
        }
        rest = again;
    }
    if (zero)
        values[found++] = 0;
    return found;
}

typedef struct {
    u64 slots[SLOTS];
    u8 open[SLOTS]; /* whether the slot is empty */
    int empty;      /* number of empty slots */
} Sketch;

/* Returns the value that a hash throws into its slot, below the number of the round. */
static inline u64 thrown(u64 round, u64 hash)
{
    return round << VALUE_BITS | hash << (64 - SLOT_SHIFT) >> (64 - VALUE_BITS);
}

static void first_round(Sketch *s, const u64 *features, size_t count)
{
    memset(s->slots, 0xFF, sizeof s->slots);
    for (size_t i = 0; i < count; i++) {
        u64 *slot = s->slots + (features[i] >> SLOT_SHIFT);
        *slot = smaller(*slot, thrown(0, features[i]));
    }
    s->empty = 0;
    for (int k = 0; k < SLOTS; k++)
        s->empty += s->open[k] = s->slots[k] == ~(u64)0;
}

/* Every feature throws once more. Only values for slots that were empty before this round change anything. */
static void next_round(Sketch *s, const u64 *features, size_t count, u64 round, u64 *useful)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        u64 hash = fmix64(features[i] + round * 0x9E3779B97F4A7C15u);
        useful[found] = hash;
        found += s->open[round < SLOTS ? hash >> SLOT_SHIFT : round - SLOTS];
    }
    for (size_t i = 0; i < found; i++) {
        u64 slot = round < SLOTS ? useful[i] >> SLOT_SHIFT : round - SLOTS;
        s->slots[slot] = smaller(s->slots[slot], thrown(round, useful[i]));
        s->empty -= s->open[slot];
        s->open[slot] = 0;
    }
}

static void sketch(const u64 *features, size_t count, u64 *spare, u64 bits, u8 *out)
{
    Sketch s;
    first_round(&s, features, count);
    for (u64 round = 1; count && s.empty && round < 2 * SLOTS; round++)
        next_round(&s, features, count, round, spare);
    for (u64 k = 0; k < SLOTS; k++) {
        u32 slot = count ? (u32)(fmix64(k << SLOT_SHIFT | s.slots[k]) >> 32) : ~(u32)0;
        memcpy(out + k * (bits / 8), &slot, bits / 8);
    }
}
