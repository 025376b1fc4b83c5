#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace wz {

/// Vector instruction sets with code of their own. Every level gives the same bytes.
enum class Simd : uint8_t { kPortable, kAvx2, kAvx512, kNeon };

/// What this build can use on this CPU, best first; the portable level is always the last.
std::vector<Simd> simd_levels();

/// The first of `simd_levels()`.
Simd best_simd();

const char* simd_name(Simd level);

/// "auto", "avx512", "avx2", "neon" or "portable". Throws std::invalid_argument for another name
/// and for a level this CPU does not have.
Simd parse_simd(std::string_view name);

}  // namespace wz
