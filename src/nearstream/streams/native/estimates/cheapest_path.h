/* The cheapest path through two texts.
 *
 * A path leads from the start of both texts through some of the blocks, in order, to the last block. The blocks on the
 * path cost nothing. The text between two of them costs what unrelated texts of these lengths do. A short block whose
 * texts have moved against each other may not be worth its moves and is left out (chaining with gap costs: Myers,
 * Miller 1995). At an end of the texts, beyond the last change, up to a window may be common that no window shows. */

#pragma once

#include "job.h"
#include "platform.h"

enum { NUMBERS_PER_BLOCK = 5, LOOK_BACK = 32, RATIO_STEPS = 256 };
enum { SHARES_BYTES = (RATIO_STEPS + 1) * sizeof(double) };

/* A path from the start of both texts to the end of a block. `bound` is the least of all paths up to this one: the cost
 * minus `least` for each byte of the first text before its end. */
typedef struct {
    double end[2], cost, bound;
} Path;

/* What the text between two blocks costs: its expected edits. */
typedef struct {
    const double *shares;
    double narrow, narrow_share, wide_share, least;
} Costs;

/* Returns the cost of the cheapest path through some blocks. `paths` has room for one path more than there are blocks.
 */
static double cost_of_path(const double *block, size_t blocks, const Costs *costs, Path *paths)
{
    const double *end = block + blocks * NUMBERS_PER_BLOCK;
    Path *path = paths;
    *path = (Path){{0, 0}, 0, 0};
    for (; block < end; block += NUMBERS_PER_BLOCK, path++) {
        /* `bound + rest` is the least cost of a path that comes from that block or from an earlier one. */
        double cheapest = __builtin_inf(), rest = costs->least * (block[0] - costs->narrow - LD_WINDOW_BYTES);
        for (const Path *from = path;
             from >= paths && from > path - LOOK_BACK && from->bound + rest < cheapest; from--) {
            double one = block[0] - from->end[0], other = block[1] - from->end[1];
            double smaller = one < other ? one : other, larger = one < other ? other : one, share = 0;
            int is_at_an_end = block[0] == block[2] || (from->end[0] == 0 && from->end[1] == 0);
            double narrow = costs->narrow + (is_at_an_end ? LD_WINDOW_BYTES : 0);
            if (smaller > 0 && larger >= smaller && larger < __builtin_inf())
                share = costs->shares[(int)(smaller / larger * RATIO_STEPS)] *
                        (smaller < narrow ? costs->narrow_share : costs->wide_share);
            double cost = from->cost + (larger < 0 ? -larger : larger) - smaller + share * smaller;
            cheapest = cost < cheapest ? cost : cheapest;
        }
        double bound = cheapest - costs->least * block[2];
        path[1] = (Path){{block[2], block[3]}, cheapest, bound < path->bound ? bound : path->bound};
    }
    return path->cost;
}
