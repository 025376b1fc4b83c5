#include "nes/simd.hpp"

#include <stdexcept>
#include <string>

namespace wz {
namespace {

bool available([[maybe_unused]] Simd level) {
#if defined(__x86_64__)
  if (level == Simd::kAvx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi");
  }
  if (level == Simd::kAvx2) return __builtin_cpu_supports("avx2");
#elif defined(__aarch64__)
  if (level == Simd::kNeon) return true;  // part of every such CPU
#endif
  return level == Simd::kPortable;
}

constexpr Simd kBestFirst[] = {Simd::kAvx512, Simd::kAvx2, Simd::kNeon, Simd::kPortable};

}  // namespace

std::vector<Simd> simd_levels() {
  std::vector<Simd> levels;
  for (const Simd level : kBestFirst) {
    if (available(level)) levels.push_back(level);
  }
  return levels;
}

Simd best_simd() {
  for (const Simd level : kBestFirst) {
    if (available(level)) return level;
  }
  return Simd::kPortable;
}

const char* simd_name(Simd level) {
  switch (level) {
    case Simd::kAvx512:
      return "avx512";
    case Simd::kAvx2:
      return "avx2";
    case Simd::kNeon:
      return "neon";
    default:
      return "portable";
  }
}

Simd parse_simd(std::string_view name) {
  if (name == "auto") return best_simd();
  for (const Simd level : kBestFirst) {
    if (name != simd_name(level)) continue;
    if (!available(level)) {
      throw std::invalid_argument("this CPU has no " + std::string(name) + " instructions");
    }
    return level;
  }
  throw std::invalid_argument("simd is \"" + std::string(name) +
                              "\"; expected auto, avx512, avx2, neon or portable");
}

}  // namespace wz
