#pragma once

#include <nanobind/nanobind.h>

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "game/episode.hpp"

/// From what Python gives to what the engine takes; what makes no sense is std::invalid_argument.
namespace wz::bindings {

namespace nb = nanobind;

using Integers = std::vector<int64_t>;

/// The value that a word stands for.
template <class T>
T choose(const char* name, const std::string& given,
         std::initializer_list<std::pair<const char*, T>> choices) {
  std::string known;
  for (const auto& [word, value] : choices) {
    if (given == word) return value;
    known += std::string(known.empty() ? "\"" : " or \"") + word + "\"";
  }
  throw std::invalid_argument(std::string(name) + " must be " + known + ", and is \"" + given +
                              "\"");
}

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

inline ProgressWeights weights_of(const std::vector<float>& w) {
  if (w.size() != 5 && w.size() != 9) {
    throw std::invalid_argument(
        "reward_weights must be five numbers (pixel, step, flag, death, clip), or nine (also "
        "score, scale, milestone, milestone interval), not " +
        std::to_string(w.size()));
  }
  ProgressWeights weights{w[0], w[1], w[2], w[3], w[4]};
  if (w.size() == 9) {
    weights.score = w[5];
    weights.scale = w[6];
    weights.milestone = w[7];
    if (!(w[8] >= 0 && w[8] <= 1e6f)) {
      throw std::invalid_argument("the milestone interval must be in 0..1000000 pixels");
    }
    weights.milestone_pixels = static_cast<int32_t>(w[8]);
  }
  return weights;
}

/// One button mask for each byte.
inline std::vector<uint8_t> masks_of(const nb::bytes& bytes) {
  const auto* data = static_cast<const uint8_t*>(bytes.data());
  return {data, data + bytes.size()};
}

}  // namespace wz::bindings
