#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "game/ram_map.hpp"

/// What the game's RAM means. Everything here reads 2 KiB of RAM and nothing else; names and
/// quirks of the first ten fields are those of gym-super-mario-bros 7.4.0.
namespace wz {

/// Columns of an info row. The order of the names below is the order of this enum.
namespace column {
enum Column : int {
  kCoins,
  kFlagGet,
  kLife,
  kScore,
  kStage,
  kStatus,
  kTime,
  kWorld,
  kXPos,
  kYPos,
  kArea,
  kPlayerState,
  kPower,
  kXSpeed,
  kYSpeed,
  kFloatState,
  kFacing,
  kSwimming,
  kStarTimer,
  kScreenX,
  kAreaType,
  kAreaIndex,
  kLoopCommand,
  kLoopsCorrect,
  kLoopsPassed,
  kDying,
  kGameOver,
  kEnemies,
  kFurthestX = kEnemies + 4 * ram::kEnemySlots,
  kSteps,
  kStartDelay,
  kStartStage,
  kRestart,
  kForced,
  kButtons,
  kCount
};
}  // namespace column

inline constexpr int kInfoColumns = column::kCount;

inline constexpr std::array<std::string_view, kInfoColumns> kInfoNames = {
    "coins",         "flag_get",      "life",          "score",         "stage",
    "status",        "time",          "world",         "x_pos",         "y_pos",
    "area",          "player_state",  "power",         "x_speed",       "y_speed",
    "float_state",   "facing",        "swimming",      "star_timer",    "screen_x",
    "area_type",     "area_index",    "loop_command",  "loops_correct", "loops_passed",
    "dying",         "game_over",     "enemy0_type",   "enemy0_active", "enemy0_x",
    "enemy0_y",      "enemy1_type",   "enemy1_active", "enemy1_x",      "enemy1_y",
    "enemy2_type",   "enemy2_active", "enemy2_x",      "enemy2_y",      "enemy3_type",
    "enemy3_active", "enemy3_x",      "enemy3_y",      "enemy4_type",   "enemy4_active",
    "enemy4_x",      "enemy4_y",      "furthest_x",    "steps",         "start_delay",
    "start_stage",   "restart",       "forced",        "buttons"};

/// The number that the decimal digits at `ram` spell. A byte above 9 (seen while a stage loads)
/// contributes all its own digits, as it does when bytes are joined as text.
inline int64_t read_digits(const uint8_t* ram, int count) {
  int64_t value = 0;
  for (int i = 0; i < count; ++i) {
    const int64_t digit = ram[i];
    value = value * (digit < 10 ? 10 : digit < 100 ? 100 : 1000) + digit;
  }
  return value;
}

inline int32_t game_time(const uint8_t* ram) {
  return static_cast<int32_t>(read_digits(ram + ram::kTime, 3));
}

/// The points in the status bar, or -1 when its digits are none (a stage loads).
inline int32_t game_score(const uint8_t* ram) {
  for (int i = 0; i < 6; ++i) {
    if (ram[ram::kScore + i] > 9) return -1;
  }
  return static_cast<int32_t>(read_digits(ram + ram::kScore, 6));
}

inline int32_t x_position(const uint8_t* ram) {
  return ram[ram::kPlayerXPage] * 0x100 + ram[ram::kPlayerX];
}

/// In the dying animation or below the screen.
inline bool is_dying(const uint8_t* ram) {
  return ram[ram::kPlayerState] == ram::kDying || ram[ram::kPlayerYHigh] > 1;
}

inline bool is_dead(const uint8_t* ram) { return ram[ram::kPlayerState] == ram::kDead; }

inline bool is_game_over(const uint8_t* ram) { return ram[ram::kLife] == ram::kGameOverLife; }

/// Somewhere the player has no control: pipes, vines, the flagpole, the start of an area.
inline bool is_busy(const uint8_t* ram) {
  const uint8_t state = ram[ram::kPlayerState];
  return state <= ram::kWalkToCastle || state == ram::kEnterArea;
}

inline bool is_world_over(const uint8_t* ram) { return ram[ram::kGameMode] == ram::kWorldOver; }

/// Sliding down the flagpole. Only with a flag (or Bowser) in an enemy slot, because climbing a
/// vine looks the same otherwise.
inline bool is_stage_over(const uint8_t* ram) {
  if (ram[ram::kFloatState] != ram::kOnFlagpole) return false;
  for (int i = 0; i < ram::kEnemySlots; ++i) {
    const uint8_t type = ram[ram::kEnemyType + i];
    if (type == ram::kBowser || type == ram::kFlagpoleFlag) return true;
  }
  return false;
}

/// The flag of a stage or the axe of a castle.
inline bool flag_get(const uint8_t* ram) { return is_world_over(ram) || is_stage_over(ram); }

/// The princess is saved: the game waits for a button for ever. A cartridge with fewer worlds ends
/// with its last one; what it shows after that is nothing.
inline bool is_game_won(const uint8_t* ram, uint8_t last_world = 7) {
  return is_world_over(ram) && ram[ram::kWorld] == last_world;
}

/// The player moves Mario: no loading, no scene, no animation.
inline bool in_control(const uint8_t* ram) {
  return ram[ram::kPlayerState] == ram::kInControl && ram[ram::kGameMode] == ram::kPlaying &&
         ram[ram::kGameTask] == ram::kPlayingTask;
}

/// Fills the columns that come from RAM; those of the episode are left alone.
void write_signals(const uint8_t* ram, int32_t* info);

}  // namespace wz
