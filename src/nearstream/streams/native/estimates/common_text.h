/* Layout of common text, and the shingles it holds.
 *
 * The best segment is where common text outweighs other text most: Kadane's maximum subarray, where a common byte of
 * the longer text counts +1 and any other byte -1.
 *
 * Common shingles are counted twice: in the common blocks, by the bytes at which a shingle can start, and by the
 * sketches, where a resemblance J of sets of n and m shingles corresponds to J / (1 + J) * (n + m) common ones. The
 * result is the mean of both, weighted by inverse variance. The length of each block is known to about one rate. A set
 * of shingles cannot tell a text from that text ten times, so repetitions are added, as many as the text has that has
 * fewer of them. */

#pragma once

#include "estimates/content.h"
#include "platform.h"

#define TRIM 0.05
#define MOVED_SHARE 0.02
#define CHANCE (1.0 / 16)
enum { MOVED_SYMBOLS = 4 };

/* Blocks as `write_blocks` writes them. */
typedef struct {
    const double *start;
    size_t count;
} Blocks;

/* The best segment: its first and its last block, and its common bytes. Both blocks are NULL without common text. */
typedef struct {
    const double *first, *last;
    double common;
} Segment;

typedef struct {
    double common, spreads[2];
    Segment segment;
} Layout;

/* Memory for the blocks of two texts with at most `most` matches. */
typedef struct {
    double *in_order, *moved;
    double *used;   /* room for all of these, and one more */
    double *totals; /* one for each block */
    Path *paths;
    Buffer memory;
} Room;

/* Returns 0 if there is no memory. */
static int make_block_room(Room *room, size_t most)
{
    size_t all = 2 * most + 1;
    if (!grow(&room->memory, (most + all) * (NUMBERS_PER_BLOCK + 1) * sizeof(double) + (all + 1) * sizeof(Path)))
        return 0;
    room->in_order = (double *)(void *)room->memory.start;
    room->moved = room->in_order + most * NUMBERS_PER_BLOCK;
    room->used = room->moved + most * NUMBERS_PER_BLOCK;
    room->totals = room->used + all * NUMBERS_PER_BLOCK;
    room->paths = (Path *)(void *)(room->totals + most);
    return 1;
}

static double length_of(const double *block)
{
    return block[NUMBERS_PER_BLOCK - 1];
}

static const double *block_at(Blocks blocks, size_t i)
{
    return blocks.start + i * NUMBERS_PER_BLOCK;
}

/* Copies the blocks that are longer than `above` or at least `from`. Returns how many they are. */
static Blocks keep_blocks(Blocks blocks, double from, double above, double *out)
{
    Blocks kept = {out, 0};
    for (size_t i = 0; i < blocks.count; i++) {
        const double *block = block_at(blocks, i);
        if (length_of(block) >= from && length_of(block) > above)
            memcpy(out + NUMBERS_PER_BLOCK * kept.count++, block, NUMBERS_PER_BLOCK * sizeof(double));
    }
    return kept;
}

/* Returns the best segment of at least one block. */
static Segment best_segment(Blocks blocks)
{
    const double *start = blocks.start;
    double common = 0, end = 0, score = -1, best_score = 0;
    Segment best = {start, start, 0};
    for (size_t i = 0; i < blocks.count; i++) {
        const double *block = block_at(blocks, i);
        score -= block[1] - end;
        if (score < 0) {
            start = block;
            common = score = 0;
        }
        score += length_of(block);
        common += length_of(block);
        if (score > best_score) {
            best_score = score;
            best = (Segment){start, block, common};
        }
        end = block[1] + length_of(block);
    }
    return best;
}

/* Returns the block up to which a share of all common text lies. */
static const double *block_of_share(Blocks blocks, const double *totals, double common)
{
    size_t i = 0;
    while (totals[i] < common)
        i++;
    return block_at(blocks, i);
}

static Layout layout(Blocks blocks, double min_bytes, Room *room)
{
    Blocks used = keep_blocks(blocks, min_bytes, -__builtin_inf(), room->used);
    if (!used.count)
        used = keep_blocks(blocks, 0, 0, room->used);
    double all = 0;
    for (size_t i = 0; i < used.count; i++)
        room->totals[i] = all += length_of(block_at(used, i));
    if (!all)
        return (Layout){0, {0, 0}, {NULL, NULL, 0}};
    const double *first = block_of_share(used, room->totals, TRIM * all);
    const double *last = block_of_share(used, room->totals, (1 - TRIM) * all);
    return (Layout){all, {last[2] - first[0], last[3] - first[1]}, best_segment(used)};
}

/* Returns the bytes at which a common shingle can start. */
static double shingle_bytes(Blocks blocks, double lead)
{
    double bytes = 0;
    for (size_t i = 0; i < blocks.count; i++)
        if (length_of(block_at(blocks, i)) > lead)
            bytes += length_of(block_at(blocks, i)) - lead;
    return bytes;
}

static double weighted_shingles(double found, double deviation, double resemblance, i64 one, i64 other)
{
    double both = (double)(one + other), most = (double)least_of(one, other);
    double sketched = resemblance / (1 + resemblance) * both;
    double agreeing = (SLOTS * (resemblance * (1 - CHANCE) + CHANCE) + 1) / (SLOTS + 2);
    double slope = both / ((1 + resemblance) * (1 + resemblance)) / (1 - CHANCE);
    double variance = agreeing * (1 - agreeing) / SLOTS * slope * slope;
    double weight = both > 0 ? deviation * deviation / (deviation * deviation + variance) : 0;
    double mean = weight * sketched + (1 - weight) * (most < found ? most : found);
    return mean < most ? mean : most;
}
