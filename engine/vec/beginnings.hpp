#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "game/consoles.hpp"
#include "game/episode.hpp"
#include "vec/rng.hpp"

/// How episodes begin: which stage is drawn, from where in it, and with which buttons held.
namespace wz {

/// Button masks, one for each frame, that are pressed whatever the caller's actions are.
using Script = std::shared_ptr<const std::vector<uint8_t>>;

inline constexpr size_t kMaxScriptFrames = 1000000;
inline constexpr size_t kMaxRestarts = 65536;

/// A moment of some earlier episode from which others may begin.
template <Console C>
struct RestartPoint {
  int32_t id = 0;  ///< the caller's name for it, from 1 on
  typename C::State state{};
  Episode episode{};
  std::vector<uint8_t> history;  ///< observations, oldest first
  Script script;                 ///< forced after the restart; may be null
};

/// What a draw looks at of a restart point. There may be tens of thousands, and every reset looks
/// at all of them.
template <Console C>
struct Candidate {
  int32_t id;
  int32_t stage;
  double weight;
  std::unique_ptr<RestartPoint<C>> point;
};

/// One of a lane's stages; an empty list is the whole game, and draws nothing. `weights` are of all
/// stages; empty = all alike.
int draw_stage(const std::vector<uint8_t>& stages, const std::vector<double>& weights, Rng& rng);

/// Drawn from at every reset, changed only while no lane runs.
template <Console C>
struct Beginnings {
  std::vector<double> stage_weights;  ///< of each stage; empty = all alike
  Script script;                      ///< forced at the start of every episode; may be null
  std::vector<Candidate<C>> points;   ///< by rising id
  double share = 0;                   ///< of episodes that begin at a restart point of their stage
  std::vector<double> stage_shares;   ///< the same for each stage by itself; empty = `share`

  int draw_stage(const std::vector<uint8_t>& stages, Rng& rng) const {
    return wz::draw_stage(stages, stage_weights, rng);
  }
  /// The first restart point with this id or a higher one.
  typename std::vector<Candidate<C>>::iterator find(int32_t id) {
    return std::lower_bound(points.begin(), points.end(), id,
                            [](const Candidate<C>& one, int32_t other) { return one.id < other; });
  }
  /// Where in the stage to begin; null is at its start.
  const RestartPoint<C>* draw_point(int stage, Rng& rng) const;
};

/// Throws std::invalid_argument unless there are 32 shares, or none, all in 0..1.
void check_stage_shares(const std::vector<double>& shares);

/// Throws std::invalid_argument unless there are 32 weights, all of them finite and not negative.
void check_stage_weights(const std::vector<double>& weights);

/// The script behind these masks; null for none. Throws std::invalid_argument for too many.
Script make_script(std::vector<uint8_t> masks);

}  // namespace wz
