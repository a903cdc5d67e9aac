/* The LD compression of Coates, "A Fast Metric of Document Similarity", section 3.1, in its two readings.
 *
 * Where the rolling sum of `width` bytes is a multiple of `rate`, the bit that a table has for this sum is emitted. Each
 * function returns how many bits were emitted in all `rounds` together.
 */
#include <stddef.h>
#include <stdint.h>

static uint32_t first_sum(const uint8_t *data, size_t width)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < width; i++)
        sum += data[i];
    return sum;
}

/* The steps as printed: "compute i = s (mod c); if i = k, emit a bit". */
static size_t by_modulus(const uint8_t *data, size_t size, uint32_t rate, size_t width, const uint8_t *table,
                         uint8_t *out)
{
    uint32_t sum = first_sum(data, width);
    size_t count = 0;
    for (size_t p = 0;; p++) {
        if (sum % rate == 0)
            out[count++] = table[sum];
        if (p + width == size)
            return count;
        sum += data[p + width] - (uint32_t)data[p];
    }
}

/* The closing remark: "three arithmetic operations and a lookup, per character". A 2 in the table
 * means that no bit is emitted. */
static size_t by_table(const uint8_t *data, size_t size, size_t width, const uint8_t *table, uint8_t *out)
{
    uint32_t sum = first_sum(data, width);
    size_t count = 0;
    for (size_t p = 0;; p++) {
        uint8_t bit = table[sum];
        out[count] = bit;
        count += bit < 2;
        if (p + width == size)
            return count;
        sum += data[p + width] - (uint32_t)data[p];
    }
}

size_t sum_and_modulus(const uint8_t *data, size_t size, uint32_t rate, size_t width, const uint8_t *table,
                       uint8_t *out, size_t rounds)
{
    size_t count = 0;
    for (size_t round = 0; round < rounds; round++)
        count += by_modulus(data, size, rate, width, table, out);
    return count;
}

size_t sum_and_table(const uint8_t *data, size_t size, uint32_t rate, size_t width, const uint8_t *table, uint8_t *out,
                     size_t rounds)
{
    size_t count = 0;
    (void)rate;
    for (size_t round = 0; round < rounds; round++)
        count += by_table(data, size, width, table, out);
    return count;
}
