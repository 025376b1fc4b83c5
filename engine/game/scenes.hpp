#pragma once

#include <stdexcept>
#include <string>

#include "game/consoles.hpp"
#include "game/signals.hpp"

/// Skipping what the player cannot influence, exactly as gym-super-mario-bros does it: the same
/// pokes and the same frames in the same order, so that the game continues in the same state.
namespace wz {

/// The longest scene (the end of a castle) takes about 2,000 frames.
inline constexpr int kMaxSceneFrames = 20000;

/// Runs frames without input, but not for ever: a game that never leaves a scene is an error.
template <Console C>
class SceneClock {
 public:
  explicit SceneClock(C& console) : console_(console) {}

  void advance() {
    if (++frames_ > kMaxSceneFrames) {
      const uint8_t* ram = console_.ram();
      throw std::runtime_error("the game did not leave a scene within " +
                               std::to_string(kMaxSceneFrames) + " frames (stage " +
                               std::to_string(ram[ram::kWorld] + 1) + "-" +
                               std::to_string(ram[ram::kStage] + 1) + ", player state " +
                               std::to_string(ram[ram::kPlayerState]) + ")");
    }
    console_.advance(0);
  }

 private:
  C& console_;
  int frames_ = 0;
};

/// Called after every frame that did not end the episode.
template <Console C>
inline void skip_scenes(C& console, bool single_stage) {
  uint8_t* ram = console.ram();
  SceneClock<C> clock(console);
  if (is_dying(ram)) {
    ram[ram::kPlayerState] = ram::kDead;
    clock.advance();
  }
  if (!single_stage && is_world_over(ram)) {
    const int32_t time = game_time(ram);
    while (game_time(ram) == time) clock.advance();
  }
  if (ram[ram::kChangeAreaTimer] > 1 && ram[ram::kChangeAreaTimer] < 255) {
    ram[ram::kChangeAreaTimer] = 1;
  }
  while (is_busy(ram) || is_world_over(ram)) {
    ram[ram::kPrelevelTimer] = 0;
    clock.advance();
  }
}

}  // namespace wz
