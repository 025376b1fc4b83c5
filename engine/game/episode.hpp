#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "game/signals.hpp"
#include "game/start.hpp"
#include "game/weights.hpp"

/// Rewards, progress and ends: what a run of frames was worth and whether it is over.
namespace wz {

enum class RewardKind : uint8_t {
  kGym,       ///< gym-super-mario-bros' reward, as it is
  kProgress,  ///< new ground and what else has a weight
  kShaped,    ///< the sum of both
};

struct Rules {
  RewardKind reward = RewardKind::kProgress;
  RewardWeights weights;
  bool end_on_life = true;      ///< otherwise only game over ends (and the flag, in a single stage)
  bool end_on_setback = false;  ///< a wrong turn in a maze ends, and is paid like a death
  bool skip_scenes = true;
  uint8_t last_world = 7;  ///< after which the whole game is won; the cartridge says which it is
};

/// The restart point of an episode that began at its stage's halfway page.
inline constexpr int32_t kHalfwayRestart = INT32_MAX;

inline constexpr int kRememberedAreas = 8;

/// How far Mario has been in each map of the stage he is in. A map is remembered when he leaves
/// it, so neither a maze's loop nor a pipe that leads back makes old ground new.
struct Ground {
  uint16_t area[kRememberedAreas];
  int32_t furthest[kRememberedAreas];
  uint8_t count;
  uint8_t current;
  uint8_t world;
  uint8_t stage;
};

/// Everything an episode remembers besides the machine.
struct Episode {
  int32_t x_last;
  int32_t time_last;
  int32_t steps;
  int32_t stagnant;     ///< steps since there was new ground
  int32_t start_delay;  ///< frames
  int32_t start_stage;  ///< 0..31, or kWholeGame
  int32_t score_last;
  int32_t pixels;   ///< new ground since the episode began in its stage's first room
  int32_t restart;  ///< the restart point it began from; 0 = the stage's own start
  Ground ground;
  bool was_dying;
  bool had_flag;

  bool single_stage() const { return start_stage != kWholeGame; }
  int32_t furthest_x() const { return ground.furthest[ground.current]; }
};

static_assert(std::is_trivially_copyable_v<Episode>);

/// What the frames of one step add up to.
struct StepTotals {
  float gym_reward = 0;
  int32_t pixels = 0;
  int32_t points = 0;
  float shaping = 0;  ///< distance and points with their weights; set by `finish_step`
  bool new_ground = false;
  bool flag = false;
  bool death = false;
  bool setback = false;  ///< the game sent Mario back, or is going to
  bool done = false;
  bool score_unread = false;  ///< the score's digits were none
};

/// An episode that begins now.
Episode begin_episode(const uint8_t* ram, int start_stage, int start_delay);

/// Credits new ground; pays nothing for jumps (pipes, warps) and outside the player's control. Also
/// notices set-backs.
void explore(Ground& ground, const uint8_t* ram, StepTotals& totals);

/// Whether the game has sent Mario back over ground that he had passed, or has counted a wrong turn
/// for which it will. The screen never scrolls to the left, so nothing but a maze's loop or a pipe
/// that leads back puts him more than a screen behind the furthest place of a map.
bool is_set_back(const Ground& ground, const uint8_t* ram);

/// One frame of gym-super-mario-bros 7.4.0's reward, clipped as nes-py clips it.
inline int32_t gym_frame_reward(Episode& episode, const uint8_t* ram, bool dying) {
  const int32_t x = x_position(ram);
  const int32_t time = game_time(ram);
  const int32_t dx = x - episode.x_last;
  const int32_t dt = time - episode.time_last;
  episode.x_last = x;
  episode.time_last = time;
  // A larger move is not walking but a new place; a rising clock is a new stage.
  const int32_t reward = (dx < -5 || dx > 5 ? 0 : dx) + (dt > 0 ? 0 : dt) + (dying ? -25 : 0);
  return std::clamp(reward, -15, 15);
}

/// Accounts for one frame, before scenes are skipped.
inline void account_frame(const Rules& rules, Episode& episode, const uint8_t* ram,
                          StepTotals& totals) {
  const bool dying = is_dying(ram) || is_dead(ram);
  const bool flag = flag_get(ram);
  totals.gym_reward += static_cast<float>(gym_frame_reward(episode, ram, dying));
  if (in_control(ram)) explore(episode.ground, ram, totals);
  totals.death |= dying && !episode.was_dying;
  totals.flag |= flag && !episode.had_flag;
  episode.was_dying = dying;
  episode.had_flag = flag;
  const bool lost =
      is_game_over(ram) || (rules.end_on_life && dying) || (rules.end_on_setback && totals.setback);
  totals.done = lost || (episode.single_stage() ? flag : is_game_won(ram, rules.last_world));
}

/// Credits the points made since the last call. While a stage loads, the score's digits are none.
void account_score(Episode& episode, const uint8_t* ram, StepTotals& totals);

/// The step's reward; also advances the counters of the episode.
float finish_step(const Rules& rules, Episode& episode, StepTotals& totals);

/// The info columns that come from the episode.
void write_counters(const Episode& episode, int32_t* info);

/// Whether the counters are ones an episode can have; for episodes of unknown origin.
bool is_valid(const Episode& episode);

}  // namespace wz
