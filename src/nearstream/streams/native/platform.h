/* What every file needs of Python, C and the processor. */

#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "a little-endian processor is expected"
#endif

/* Some loops use vector instructions of x86-64. Plain C gives equal bytes on other processors, or with the macro
 * NEARSTREAM_PLAIN. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(NEARSTREAM_PLAIN)
#define VECTORS
#include <immintrin.h>
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
enum {
    SPACE = 0x20,
    PADDING = 8,         /* bytes before a normal form, so that a chunk may begin before it */
    MAX_BYTES = 1 << 28, /* of a text */
    LONG_TEXT = 4096,    /* bytes from which on other threads may run */
};
