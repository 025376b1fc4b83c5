#pragma once

#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "game/episode.hpp"

/// From what Python gives to what the engine takes; what makes no sense is std::invalid_argument.
namespace wz::bindings {

namespace nb = nanobind;

using Integers = std::vector<int64_t>;

inline std::vector<uint8_t> stage_list(const Integers& stages) {
  std::vector<uint8_t> list;
  for (const int64_t stage : stages) {
    if (stage < 0 || stage >= kStages) {
      throw std::invalid_argument("a stage must be in 0..31, and is " + std::to_string(stage));
    }
    list.push_back(static_cast<uint8_t>(stage));
  }
  return list;
}

/// One button mask for each byte.
inline std::vector<uint8_t> masks_of(const nb::bytes& bytes) {
  const auto* data = static_cast<const uint8_t*>(bytes.data());
  return {data, data + bytes.size()};
}

}  // namespace wz::bindings
