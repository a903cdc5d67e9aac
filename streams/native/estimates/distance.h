/* Edit distance from aligned LD signatures. Twin of estimates/distance.py, and of `distance_band` in
 * estimates/intervals.py.
 */

#define LEAST_COST 0.70
#define NARROW_SHARE 0.5
#define HIDDEN_WEIGHT 0.65
#define MAX_EXPONENT 20.0
#define SCATTERED_RATIO 0.9
#define SCATTERED_DRIFT 0.10
#define SCATTERED_LARGEST 0.40
#define SCATTERED_VARIANCE 2.0
#define SCATTERED_RUN 8.0
enum { NARROW_RATES = 4, HIDDEN_BLOCKS = 8, SCATTERED_MATCHES = 8, BANDS = 8 };

static const double band_from[BANDS] = {0.0, 0.01, 0.03, 0.06, 0.10, 0.20, 0.30, 0.40};
static const double band_minus[BANDS] = {0.003, 0.009, 0.014, 0.022, 0.030, 0.060, 0.090, 0.200};
static const double band_plus[BANDS] = {0.004, 0.015, 0.016, 0.018, 0.020, 0.025, 0.025, 0.025};

/* What lies between two neighbouring matches, or between a match and an end of the texts. */
typedef struct {
    i64 lost, gap[2];
} Step;

static Step step_before(const Text text[2], size_t k, size_t matches)
{
    Step step = {0, {0, 0}};
    for (int side = 0; side < 2; side++) {
        i64 before = k ? (i64)text[side].match[k - 1] : -1;
        i64 after = k < matches ? (i64)text[side].match[k] : (i64)text[side].size;
        step.lost = most_of(step.lost, after - before - 1);
        step.gap[side] = text[side].starts[after] - (k ? text[side].starts[before] : -LD_WINDOW_BYTES);
    }
    return step;
}

/* Sums over the steps that lost symbols. */
typedef struct {
    i64 lost, largest, steps, length, grown, drift;
} Losses;

static Losses losses_of(const Text text[2], size_t matches)
{
    Losses all = {0, 0, 0, 0, 0, 0};
    for (size_t k = 0; k <= matches; k++) {
        Step step = step_before(text, k, matches);
        if (step.lost) {
            i64 grown = step.gap[1] - step.gap[0];
            all.lost += step.lost;
            all.largest = most_of(all.largest, step.lost);
            all.steps++;
            all.length += most_of(step.gap[0], step.gap[1]);
            all.grown += grown;
            all.drift += grown < 0 ? -grown : grown;
        }
    }
    return all;
}

/* Writes the bytes of edited characters. Returns 0 unless edits are scattered. */
static int scattered_edits(const Text text[2], const Content *shorter, const Content *longer, double *edited)
{
    size_t matches = matches_of(text);
    if (matches < SCATTERED_MATCHES || (double)shorter->n_bytes < SCATTERED_RATIO * (double)longer->n_bytes)
        return 0;
    Losses all = losses_of(text, matches);
    double survived = (double)matches / (double)text[0].size, length = (double)all.length;
    if ((double)all.lost > SCATTERED_RUN * (double)all.steps / survived ||
        (double)all.largest >= SCATTERED_LARGEST * (double)all.lost || (double)all.drift > SCATTERED_DRIFT * length)
        return 0;
    double characters = (double)shorter->characters, width = (double)shorter->n_bytes / characters;
    double edits = (1 - pow(survived, width / (LD_WINDOW_BYTES - 1 + width))) * characters, in_lengths = 0;
    i64 beyond_own = 0;
    for (size_t k = 0; k <= matches; k++) {
        Step step = step_before(text, k, matches);
        if (step.lost) {
            double gap = (double)most_of(step.gap[0], step.gap[1]), grown = (double)(step.gap[1] - step.gap[0]);
            double own = edits / length * gap, beyond = (grown - (double)all.grown / length * gap) / width;
            beyond_own += beyond * beyond > SCATTERED_VARIANCE * (own > 1 ? own : 1);
            in_lengths += grown < -own ? -own : grown > own ? own : grown;
        }
    }
    *edited = (edits - fabs(in_lengths)) * width;
    return 2 * beyond_own <= all.steps;
}

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

/* Writes the 90 % band of a distance. */
static void write_band(double value, double least, double expected, double longer, double band[2])
{
    int row = BANDS - 1;
    while (row && (value - least) / longer < band_from[row])
        row--;
    band[0] = value - band_minus[row] * longer;
    band[1] = value + band_plus[row] * longer;
    band[0] = band[0] < least ? least : band[0];
    band[1] = band[1] > expected ? expected : band[1];
}
