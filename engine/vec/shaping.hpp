#pragma once

#include <cstdint>

#include "game/episode.hpp"

namespace wz {

/// The order in which sums over all lanes are handed out; the last three are those
/// of the last step alone.
inline constexpr int kShapingFields = 8;

/// What shaping did to a lane's rewards since the last call.
struct ShapingSums {
  double distance = 0;  ///< pixels of new ground
  double raw = 0;       ///< distance and points with their weights
  double scaled = 0;    ///< the same times the scale: what the learner gets of it
  double unread = 0;    ///< steps whose score could not be read
  double steps = 0;
  float last_distance = 0;  ///< of the last step, whenever that was
  float last_raw = 0;
  float last_scaled = 0;

  void add(const StepTotals& totals, float scale) {
    last_distance = static_cast<float>(totals.pixels);
    last_raw = totals.shaping;
    last_scaled = totals.shaping * scale;
    distance += last_distance;
    raw += last_raw;
    scaled += last_scaled;
    unread += totals.score_unread;
    ++steps;
  }

  /// Adds kShapingFields numbers, then resets the counters.
  void take(double* out) {
    const double values[kShapingFields] = {distance, raw,           scaled,   unread,
                                           steps,    last_distance, last_raw, last_scaled};
    for (int i = 0; i < kShapingFields; ++i) out[i] += values[i];
    distance = raw = scaled = unread = steps = 0;
  }
};

}  // namespace wz
