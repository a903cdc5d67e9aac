/* What two LD signatures have in common: the twin of pair_loops.py. Included by _native.c alone. */

enum { CELLS = 1 << 13, LOW_BITS = CELLS - 1, TAKEN = 1 << 19 };

typedef int64_t i64;

/* One text. Of the first one is known where the kept symbols with some low bits stand, and which were counted. */
typedef struct {
    const i64 *symbols, *starts; /* bytes where symbols start and the text ends */
    size_t size, count;
    u32 *kept, *match, *end; /* ascending places of symbols that may be common; of matches, the last one found first */
    u32 *head, *next, *left;
} Text;

static i64 kept_symbol(const Text *text, size_t i)
{
    return text->symbols[text->kept[i]];
}

/* Keeps the symbols whose low bits the other text has; with further bits one is taken already. */
static void keep(Text *text, const Text *other)
{
    u8 seen[CELLS] = {0};
    for (size_t i = 0; i < other->size; i++)
        seen[other->symbols[i] & LOW_BITS] = 1;
    for (size_t i = 0; i < text->size; i++)
        if (text->symbols[i] < TAKEN && seen[text->symbols[i] & LOW_BITS])
            text->kept[text->count++] = (u32)i;
}

/* The first kept place of a symbol in the first text, in the cell of its low bits. */
static u32 first_of(const Text *one, i64 symbol)
{
    u32 i = one->head[symbol & LOW_BITS];
    while (i != UINT32_MAX && kept_symbol(one, i) != symbol)
        i = one->next[i];
    return i;
}

/* Fills the cells; size of the intersection of both multisets. */
static size_t count_common(const Text *one, const Text *other)
{
    size_t common = 0;
    memset(one->head, 0xFF, CELLS * sizeof(u32));
    for (size_t i = one->count; i--;) {
        i64 symbol = kept_symbol(one, i);
        u32 same = first_of(one, symbol);
        one->left[i] = same == UINT32_MAX ? 1 : one->left[same] + 1;
        one->next[i] = one->head[symbol & LOW_BITS];
        one->head[symbol & LOW_BITS] = (u32)i;
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

/* Hyyrö 2004: a bit of a row is 0 where the longest common subsequence grows at its column; before the first all 1. */
static void fill_rows(u64 *row, size_t words, const Text text[2], const size_t edges[3])
{
    u64 *columns = row + (edges[2] - edges[0] + 1) * words; /* of each symbol, where its first row would be */
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

/* The longest common subsequence that rapidfuzz finds; 0 with an exception if there is no memory. */
static int align(Text text[2])
{
    size_t start = 0, i = text[0].count, j = text[1].count;
    while (start < i && start < j && kept_symbol(&text[0], start) == kept_symbol(&text[1], start))
        start++;
    while (start < i && start < j && kept_symbol(&text[0], i - 1) == kept_symbol(&text[1], j - 1))
        match(text, --i, --j);
    size_t words = (i - start + 63) / 64;
    u64 *rows = malloc((2 * (j - start) + 1) * words * sizeof(u64) + 1);
    if (!rows)
        return PyErr_NoMemory() != NULL;
    fill_rows(rows, words, text, (size_t[]){start, i, j});
    while (start < i && start < j) {
        const u64 *word = rows + (j - start) * words + (i - 1 - start) / 64;
        unsigned bit = (i - 1 - start) % 64;
        if (*word >> bit & 1)
            i--;
        else if (--j, *(word - words) >> bit & 1)
            match(text, --i, j);
    }
    free(rows);
    while (start--)
        match(text, start, start);
    return 1;
}

/* Whether a stretch ends between a match and the next. */
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

/* Bytes by which a stretch reaches further than its first window, or (`behind` 1) its last one. */
static double reach_at(const Text text[2], size_t k, int behind, const double *reach, i64 farthest)
{
    i64 room = INT64_MAX, closed = INT64_MAX;
    for (int side = 0; side < 2; side++) {
        size_t at = text[side].match[k] + (size_t)behind;
        const i64 *start = text[side].starts + at;
        int is_end = at == (behind ? text[side].size : 0);
        i64 apart = at ? start[0] - start[-1] - (is_end ? LD_WINDOW : 0) : start[0];
        room = apart < room ? apart : room;
        closed = is_end && apart < closed ? apart : closed;
    }
    double beyond = reach[room < 0 ? 0 : room < farthest ? room : farthest];
    return closed == room ? (double)room : (double)room + beyond;
}

/* Starts and ends in both texts and length of each stretch; returns how many numbers that are. */
static size_t stretch(const Text text[2], const double *reach, i64 farthest, i64 grain, double *begin)
{
    double *out = begin;
    size_t matches = (size_t)(text[0].end - text[0].match);
    for (size_t first = 0, last; first < matches; first = last + 1, out += PER_STRETCH) {
        for (last = first; last + 1 < matches && !is_apart(text, last, grain);)
            last++;
        double left = reach_at(text, first, 0, reach, farthest), meet = 0;
        double right = reach_at(text, last, 1, reach, farthest) + LD_WINDOW;
        for (int side = 0; side < 2; side++) {
            out[side] = (double)text[side].starts[text[side].match[first]] - left;
            out[2 + side] = (double)text[side].starts[text[side].match[last]] + right;
            if (out > begin && out[side] - out[side + 2 - PER_STRETCH] < meet)
                meet = out[side] - out[side + 2 - PER_STRETCH];
        }
        for (int side = 0; side < 2 && meet < 0; side++) {
            out[side + 2 - PER_STRETCH] += meet / 2;
            out[side] -= meet / 2;
        }
    }
    for (double *each = begin; each < out; each += PER_STRETCH) {
        double one = each[2] - each[0], other = each[3] - each[1], length = one < other ? one : other;
        each[4] = length > 0 ? length : 0;
    }
    return (size_t)(out - begin);
}

static PyObject *matched_of(const Text text[2])
{
    size_t matches = (size_t)(text[0].end - text[0].match);
    PyObject *matched = bytes_of(NULL, 2 * (matches + 2) * sizeof(i64));
    i64 *out = matched ? (i64 *)PyBytes_AsString(matched) : NULL;
    for (int side = 0; side < 2 && out; side++) {
        *out++ = -1;
        for (const u32 *each = text[side].match; each < text[side].end; each++)
            *out++ = *each;
        *out++ = (i64)text[side].size;
    }
    return matched;
}

static PyObject *meet(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *windows[2], *reach;
    Py_ssize_t sizes[2], reaches;
    long long grain, least;
    if (!PyArg_ParseTuple(arguments, "y#y#y#LL", &windows[0], &sizes[0], &windows[1], &sizes[1], &reach, &reaches,
                          &grain, &least))
        return NULL;
    Text text[2];
    for (int side = 0; side < 2; side++) {
        size_t places = (size_t)sizes[side] / sizeof(i64) / 2;
        text[side] = (Text){.starts = (const i64 *)windows[side], .size = places - 1};
        text[side].symbols = text[side].starts + places;
        if (!places || places > MOST_KEPT || reaches < (Py_ssize_t)sizeof(double))
            return PyErr_Format(PyExc_ValueError, "windows of two texts, growth of stretches expected");
    }
    size_t one = text[0].size, other = text[1].size, fewer = one < other ? one : other;
    size_t numbers = fewer * PER_STRETCH;
    double *stretches = malloc(numbers * sizeof(double) + (CELLS + 3 * one + other + 2 * fewer) * sizeof(u32));
    if (!stretches)
        return PyErr_NoMemory();
    text[0].head = (u32 *)(stretches + numbers);
    text[0].next = text[0].head + CELLS;
    text[0].left = text[0].next + one;
    text[0].kept = text[0].left + one;
    text[1].kept = text[0].kept + one;
    text[0].match = text[0].end = text[1].kept + other + fewer;
    text[1].match = text[1].end = text[0].end + fewer;
    keep(&text[0], &text[1]);
    keep(&text[1], &text[0]);
    size_t common = count_common(&text[0], &text[1]);
    PyObject *items[3] = {NULL};
    if ((long long)common < least || align(text)) {
        numbers = stretch(text, (const double *)reach, reaches / (i64)sizeof(double) - 1, grain, stretches);
        items[0] = PyLong_FromSize_t(common);
        items[1] = matched_of(text);
        items[2] = bytes_of(stretches, numbers * sizeof(double));
    }
    free(stretches);
    return tuple_of(items, 3);
}
