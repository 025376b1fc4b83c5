#pragma once

#include "game/episode.hpp"
#include "vec/beginnings.hpp"
#include "vec/config.hpp"
#include "vec/rng.hpp"
#include "vec/shaping.hpp"

namespace wz {

/// All of a lane that needs the game's RAM but not the machine: its random stream, what is pressed,
/// what steps are worth, when an episode ends, and the info row. Lanes over other machines than the
/// engine's own have the same.
struct LaneAccounts {
  Episode episode{};
  Rng rng;
  uint8_t held = 0;              ///< buttons of the frame before, for sticky actions
  int32_t info[kInfoColumns]{};  ///< the last info row
  Script script;                 ///< forced buttons; null when the caller's actions count
  size_t script_at = 0;          ///< frames of it that have been played
  ShapingSums shaping;

  /// From now on these buttons are pressed; null gives control back.
  void force(Script masks) {
    script = std::move(masks);
    script_at = 0;
  }

  /// Frames without input at the start of an episode.
  int draw_delay(const LaneConfig& config);

  /// As what and where an episode begins; `halfway`: its stage has a page for that. Draws nothing
  /// that is not left to chance.
  Entrance draw_entrance(const LaneConfig& config, bool halfway);

  /// The info row of an episode that has just begun.
  void show_start(const uint8_t* ram);

  /// The buttons of the next frame.
  uint8_t press(const LaneConfig& config, uint8_t wanted);

  /// Accounts for a frame, before scenes are skipped; `last`: no other follows in this step.
  /// Returns whether the episode is over.
  bool account(const LaneConfig& config, const uint8_t* ram, bool last, StepTotals& totals);

  struct Outcome {
    float reward;
    bool terminated;
    bool truncated;
  };
  /// The results of a step's frames. Also advances the counters.
  Outcome finish(const LaneConfig& config, StepTotals& totals);

  /// The info columns that do not come from RAM.
  void write_counters(int32_t* row, bool forced) const;
};

}  // namespace wz
