/* The LD signature of the C twin without its other outputs. It calls the functions that the signer calls. */
#include "module.c"

static Context prepared;

/* Take the context that native_backend.py packs, once for all texts. */
void prepare(const void *packed)
{
    memcpy(&prepared.n, packed, sizeof prepared.n);
    complete(&prepared);
}

/* Write the signature of a normal form to `out` and return its length. `out` needs 4 bytes for each symbol and 4 bytes
 * for each escape. */
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
