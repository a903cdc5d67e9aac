/* The LD signature of the C twin without the outputs beside it: the same functions, called by themselves. */
#include "_native.c"

/* Length of the signature, which is written to `out` (4 bytes a symbol and as much for an escape); 0 if none. */
size_t ld_alone(const void *context, const uint8_t *data, size_t size, uint8_t *out, size_t rounds)
{
    Context c;
    Result result = {0};
    memcpy(&c, context, sizeof c);
    for (size_t round = 0; round < rounds; round++) {
        Job job = {.context = &c, .data = data, .size = size};
        result = (Result){.rate = first_rate(&c, size)};
        measure(&job);
        u64 *block = malloc(lay_out(&job, &result, NULL) * sizeof(u64));
        if (!block)
            return 0;
        lay_out(&job, &result, block);
        job.words_prefix[0] = 0;
        scan_all(&job, rate_limit(result.rate));
        ld_signature(&job, &result);
        memcpy(out, result.ld, result.ld_size);
        free(block);
    }
    return result.ld_size;
}
