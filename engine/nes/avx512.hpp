#pragma once

// The AVX-512 intrinsics of GCC 12 start from a deliberately undefined register, which its own
// -Wuninitialized then reports inside the functions that use them.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>
