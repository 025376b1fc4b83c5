#pragma once

#include <cstdint>
#include <vector>

#include "game/consoles.hpp"
#include "game/episode.hpp"
#include "vec/observe.hpp"

namespace wz {

/// What happens to a lane whose episode has ended (the modes of Gymnasium).
enum class Autoreset : uint8_t {
  kNextStep,  ///< the next step ignores its action and resets
  kSameStep,  ///< the step that ends also resets; the end is delivered beside it
  kDisabled,  ///< stepping the lane is an error until it is reset
};

/// As what Mario begins an episode.
enum class StartPower : uint8_t {
  kSmall,
  kBig,
  kFire,
  kAny,  ///< one of the three, drawn at each reset
};

/// What all lanes of a vector have in common.
struct LaneConfig {
  std::vector<uint8_t> buttons;  ///< action -> button mask
  int frame_skip = 4;
  int frame_stack = 4;
  ObserveSpec observe;
  bool max_last_two = false;
  Rules rules;
  int time_limit = 0;        ///< steps; 0 = none
  int stagnation_limit = 0;  ///< steps without new ground; 0 = none
  int delay_low = 0;         ///< start delay, inclusive range of frames
  int delay_high = 0;
  StartPower start_power = StartPower::kSmall;
  double start_halfway = 0;  ///< share of episodes that begin halfway, small as after a lost life
  std::vector<uint8_t> script;  ///< button masks forced at the start of every episode
  double sticky = 0;            ///< chance that a frame repeats the buttons of the frame before
  Timing timing = Timing::kVblank;
  Autoreset autoreset = Autoreset::kNextStep;
};

inline constexpr int kMaxFrameSkip = 1024;
inline constexpr int kMaxFrameStack = 64;
inline constexpr int kMaxStartDelay = 100000;
inline constexpr int kMaxStageList = 1024;
inline constexpr int kMaxMilestoneInterval = 1000000;

/// Throws std::invalid_argument with one sentence when a value makes no sense.
void check_config(const LaneConfig& config);

/// The same for rewards alone, whose weights may change while lanes play.
void check_weights(const RewardWeights& weights);

/// Throws std::invalid_argument unless all are 0..31. An empty list means the whole game.
void check_stages(const std::vector<uint8_t>& stages);

/// Names everything a saved lane depends on: the program and the configuration.
uint64_t fingerprint(const LaneConfig& config, const Cartridge& cart);

}  // namespace wz
