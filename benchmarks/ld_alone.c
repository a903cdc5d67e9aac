/* The LD signature of the C twin without the outputs beside it: the same functions, called by themselves. */
#include "_native.c"

static Context prepared;

/* Takes what native.py packs, once for all texts. */
void prepare(const void *packed)
{
    memcpy(&prepared.n, packed, sizeof prepared.n);
    complete(&prepared);
}

/* Length of the signature of a normal form, which is written to `out` (4 bytes a symbol and as much for an escape). */
size_t ld_alone(const uint8_t *data, size_t size, uint8_t *out, size_t rounds)
{
    Job job = {.context = &prepared, .data = data, .size = size};
    Result result = {0};
    for (size_t round = 0; round < rounds; round++) {
        measure(&job, 0);
        if (!grow(&prepared.scratch, lay_out(&job, &result, NULL) * sizeof(u64)))
            return 0;
        lay_out(&job, &result, (u64 *)prepared.scratch.start);
        ld_signature(&job, &result);
        memcpy(out, result.ld, result.ld_size);
    }
    return result.ld_size;
}
