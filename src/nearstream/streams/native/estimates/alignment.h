/* The symbols that two LD signatures have in common, and the blocks that they form.
 *
 * Matches are a longest common subsequence of the symbols. A block is a maximal run of matches between which no symbol
 * is lost and no text moved, grown to its expected ends. Neighbouring blocks that would overlap meet halfway.
 *
 * The first difference lies after the last window of a block and before the end of the next sampled window, which is r
 * bytes on. One in `rate` windows is sampled, and windows that differ are sampled in each text separately, so a
 * difference x bytes on is as likely as exp(x / rate). On average it lies at r / (1 - exp(-r / rate)) - rate. */

#pragma once

#include "answers.h"
#include "estimates/cheapest_path.h"
#include "job.h"
#include "platform.h"

enum { CELLS = 1 << 13, LOW_BITS = CELLS - 1, TAKEN = 1 << 19 };
enum { HEADS = 1 << 11 }; /* few enough to be cheap to clear */

typedef int64_t i64;

/* One text. Only the first text has the hash table of `head` and `next`. */
typedef struct {
    const i64 *symbols, *starts; /* `starts`: bytes where the windows of the symbols start, and where the text ends */
    i64 rate;
    size_t size, count;          /* of all symbols, and of kept ones */
    u32 *kept;                   /* ascending indices of the symbols that may be common */
    u32 *match, *end;            /* indices of matches, which are found from the last to the first */
    u32 *head, *next;            /* first kept symbol with some low bits, then the next one with them */
    u32 *left;                   /* by the first kept occurrence of a symbol: first its count, then its first row */
} Text;

static i64 kept_symbol(const Text *text, size_t i)
{
    return text->symbols[text->kept[i]];
}

/* Keeps the symbols whose low bits occur in the other text. A symbol with the bit TAKEN must not match again. */
static void keep_indices(Text *text, const Text *other)
{
    u64 seen[CELLS / 64] = {0};
    size_t count = 0;
    for (size_t i = 0; i < other->size; i++) {
        u64 cell = other->symbols[i] & LOW_BITS;
        seen[cell / 64] |= 1ull << cell % 64;
    }
    for (size_t i = 0; i < text->size; i++) {
        u64 cell = text->symbols[i] & LOW_BITS;
        text->kept[count] = (u32)i; /* without a branch, which could not be predicted */
        count += (text->symbols[i] < TAKEN) & (seen[cell / 64] >> cell % 64);
    }
    text->count = count;
}

/* Returns the first kept occurrence of a symbol in the first text, UINT32_MAX if there is none. */
static u32 first_of(const Text *one, i64 symbol)
{
    u32 i = one->head[symbol & (HEADS - 1)];
    while (i != UINT32_MAX && kept_symbol(one, i) != symbol)
        i = one->next[i];
    return i;
}

/* Fills the hash table of the first text. Returns the size of the intersection of both multisets of symbols. */
static size_t count_common(const Text *one, const Text *other)
{
    size_t common = 0;
    memset(one->head, 0xFF, HEADS * sizeof(u32));
    for (size_t i = one->count; i--;) {
        i64 symbol = kept_symbol(one, i);
        u32 same = first_of(one, symbol);
        one->left[i] = same == UINT32_MAX ? 1 : one->left[same] + 1;
        one->next[i] = one->head[symbol & (HEADS - 1)];
        one->head[symbol & (HEADS - 1)] = (u32)i;
    }
    for (size_t j = 0; j < other->count; j++) {
        u32 first = first_of(one, kept_symbol(other, j));
        if (first != UINT32_MAX && one->left[first]) {
            one->left[first]--;
            common++;
        }
    }
    return common;
}

/* Computes the rows of the bit-parallel longest common subsequence (Hyyrö 2004).
 *
 * There is one row for each symbol of the second text. A bit of a row is 0 where the subsequence grows at its column, a
 * symbol of the first text. All bits of the row before the first one are 1. `edges` holds the first index in both
 * texts, then the end in the first and in the second text.
 */
static void fill_rows(u64 *row, size_t words, const Text text[2], const size_t edges[3])
{
    u64 *columns = row + (edges[2] - edges[0] + 1) * words; /* columns equal to a symbol, by its first row */
    memset(row, 0xFF, words * sizeof(u64));
    memset(text[0].left, 0xFF, text[0].count * sizeof(u32));
    for (size_t j = edges[0]; j < edges[2]; j++, row += words) {
        i64 symbol = kept_symbol(&text[1], j);
        u32 first = first_of(&text[0], symbol), *known = first == UINT32_MAX ? NULL : &text[0].left[first];
        u64 *equal = columns + (known && *known != UINT32_MAX ? *known : j - edges[0]) * words, carry = 0;
        if (!known || *known == UINT32_MAX)
            memset(equal, 0, words * sizeof(u64));
        if (known && *known == UINT32_MAX) {
            *known = (u32)(j - edges[0]);
            for (u32 i = first; i != UINT32_MAX && i < edges[1]; i = text[0].next[i])
                if (i >= edges[0] && kept_symbol(&text[0], i) == symbol)
                    equal[(i - edges[0]) / 64] |= 1ull << (i - edges[0]) % 64;
        }
        for (size_t word = 0; word < words; word++) {
            u64 same = row[word] & equal[word], sum = row[word] + carry;
            carry = sum < carry;
            sum += same;
            carry |= sum < same;
            row[words + word] = sum | (row[word] - same);
        }
    }
}

static void match(Text text[2], size_t i, size_t j)
{
    *--text[0].match = text[0].kept[i];
    *--text[1].match = text[1].kept[j];
}

/* Finds the longest common subsequence that rapidfuzz finds. Returns 0 if there is no memory. */
static int match_in_order(Text text[2], Buffer *memory)
{
    size_t start = 0, i = text[0].count, j = text[1].count;
    while (start < i && start < j && kept_symbol(&text[0], start) == kept_symbol(&text[1], start))
        start++;
    while (start < i && start < j && kept_symbol(&text[0], i - 1) == kept_symbol(&text[1], j - 1))
        match(text, --i, --j);
    size_t words = (i - start + 63) / 64;
    if (!grow(memory, (2 * (j - start) + 1) * words * sizeof(u64) + 1))
        return 0;
    u64 *rows = (u64 *)(void *)memory->start;
    fill_rows(rows, words, text, (size_t[]){start, i, j});
    while (start < i && start < j) {
        const u64 *word = rows + (j - start) * words + (i - 1 - start) / 64;
        unsigned bit = (i - 1 - start) % 64;
        if (*word >> bit & 1)
            i--;
        else if (--j, *(word - words) >> bit & 1)
            match(text, --i, j);
    }
    while (start--)
        match(text, start, start);
    return 1;
}

/* Returns whether a block ends between a match and the next one. */
static int is_apart(const Text text[2], size_t k, i64 grain)
{
    i64 gap[2];
    for (int side = 0; side < 2; side++) {
        const u32 *at = text[side].match + k;
        if (at[1] != at[0] + 1)
            return 1;
        gap[side] = text[side].starts[at[1]] - text[side].starts[at[0]];
    }
    return llabs(gap[0] - gap[1]) > grain;
}

/* Bytes from the window next to a block to the expected end of the block, by the bytes up to this window. */
typedef struct {
    const double *table;
    i64 farthest; /* index of the last number */
} Reach;

/* Returns the bytes by which a block extends before its first window, or after its last window if `behind` is 1. */
static double growth_at(const Text text[2], size_t k, int behind, const Reach *reach)
{
    i64 room = INT64_MAX, closed = INT64_MAX;
    for (int side = 0; side < 2; side++) {
        size_t at = text[side].match[k] + (size_t)behind;
        const i64 *start = text[side].starts + at;
        int is_end = at == (behind ? text[side].size : 0);
        i64 apart = at ? start[0] - start[-1] - (is_end ? LD_WINDOW_BYTES : 0) : start[0];
        room = apart < room ? apart : room;
        closed = is_end && apart < closed ? apart : closed;
    }
    double beyond = reach->table[room < 0 ? 0 : room < reach->farthest ? room : reach->farthest];
    return closed == room ? (double)room : (double)room + beyond;
}

/* Writes the starts in both texts, the ends in both texts and the length of each block. Returns how many numbers these
 * are. */
static size_t write_blocks(const Text text[2], const Reach *reach, i64 grain, double *begin)
{
    double *out = begin;
    size_t matches = (size_t)(text[0].end - text[0].match);
    for (size_t first = 0, last; first < matches; first = last + 1, out += NUMBERS_PER_BLOCK) {
        for (last = first; last + 1 < matches && !is_apart(text, last, grain);)
            last++;
        double left = growth_at(text, first, 0, reach), overlap = 0;
        double right = growth_at(text, last, 1, reach) + LD_WINDOW_BYTES;
        for (int side = 0; side < 2; side++) {
            out[side] = (double)text[side].starts[text[side].match[first]] - left;
            out[2 + side] = (double)text[side].starts[text[side].match[last]] + right;
            if (out > begin && out[side] - out[side + 2 - NUMBERS_PER_BLOCK] < overlap)
                overlap = out[side] - out[side + 2 - NUMBERS_PER_BLOCK];
        }
        for (int side = 0; side < 2 && overlap < 0; side++) {
            out[side + 2 - NUMBERS_PER_BLOCK] += overlap / 2;
            out[side] -= overlap / 2;
        }
    }
    for (double *block = begin; block < out; block += NUMBERS_PER_BLOCK) {
        double one = block[2] - block[0], other = block[3] - block[1], length = one < other ? one : other;
        block[4] = length > 0 ? length : 0;
    }
    return (size_t)(out - begin);
}

/* Memory of one alignment after another. */
typedef struct {
    Buffer indices, rows;
} Workspace;

static void free_workspace(Workspace *space)
{
    free(space->indices.start);
    free(space->rows.start);
}

/* Points into the memory of the workspace. Returns 0 if there is none. */
static int take_indices(Text text[2], Workspace *space)
{
    size_t one = text[0].size, other = text[1].size, fewer = one < other ? one : other;
    if (!grow(&space->indices, (HEADS + 3 * one + other + 2 * fewer) * sizeof(u32)))
        return 0;
    text[0].head = (u32 *)(void *)space->indices.start;
    text[0].next = text[0].head + HEADS;
    text[0].left = text[0].next + one;
    text[0].kept = text[0].left + one;
    text[1].kept = text[0].kept + one;
    text[0].match = text[0].end = text[1].kept + other + fewer;
    text[1].match = text[1].end = text[0].end + fewer;
    text[0].count = text[1].count = 0;
    return 1;
}

static size_t matches_of(const Text text[2])
{
    return (size_t)(text[0].end - text[0].match);
}

/* Drops matches that have none beside them in both texts. Where all windows are symbols, such matches are nearly all
 * chance, which comes elsewhere under another key. */
static void drop_lone_matches(Text text[2])
{
    u32 *one = text[0].match, *other = text[1].match, *end = text[0].end;
    size_t matches = matches_of(text);
    int is_behind = 0; /* whether a match follows at once */
    for (size_t k = matches; k--;) {
        int is_before = k && one[k - 1] + 1 == one[k] && other[k - 1] + 1 == other[k];
        if (is_before || is_behind) {
            *--end = one[k];
            text[1].end[end - text[0].end] = other[k];
        }
        is_behind = is_before;
    }
    text[0].match = end;
    text[1].match = text[1].end + (end - text[0].end);
}

/* Aligns two texts of which size, symbols and starts are known. Nothing is matched if they have fewer common symbols
 * than `least`. Returns 0 if there is no memory. */
static int align(Text text[2], i64 least, Workspace *space, size_t *common)
{
    if (!take_indices(text, space))
        return 0;
    keep_indices(&text[0], &text[1]);
    keep_indices(&text[1], &text[0]);
    *common = count_common(&text[0], &text[1]);
    if ((i64)*common >= least && !match_in_order(text, &space->rows))
        return 0;
    if (text[0].rate == 1)
        drop_lone_matches(text);
    return 1;
}
