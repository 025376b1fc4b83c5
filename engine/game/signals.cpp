#include "game/signals.hpp"

#include <algorithm>

namespace wz {
namespace {

int32_t height(uint8_t screen_y, uint8_t high) {
  const int32_t y = 255 - screen_y;
  return high < 1 ? 255 + y : y;
}

int32_t as_int32(int64_t value) {
  return static_cast<int32_t>(std::min<int64_t>(value, INT32_MAX));
}

}  // namespace

void write_signals(const uint8_t* ram, int32_t* info) {
  using namespace column;
  info[kCoins] = as_int32(read_digits(ram + ram::kCoins, 2));
  info[kFlagGet] = flag_get(ram);
  info[kLife] = ram[ram::kLife];
  info[kScore] = as_int32(read_digits(ram + ram::kScore, 6));
  info[kStage] = ram[ram::kStage] + 1;
  info[kStatus] = std::min<int32_t>(ram[ram::kPower], 2);
  info[kTime] = game_time(ram);
  info[kWorld] = ram[ram::kWorld] + 1;
  info[kXPos] = x_position(ram);
  info[kYPos] = height(ram[ram::kPlayerYOnScreen], ram[ram::kPlayerYHigh]);
  info[kArea] = ram[ram::kArea] + 1;
  info[kPlayerState] = ram[ram::kPlayerState];
  info[kPower] = ram[ram::kPower];
  info[kXSpeed] = static_cast<int8_t>(ram[ram::kPlayerXSpeed]);
  info[kYSpeed] = static_cast<int8_t>(ram[ram::kPlayerYSpeed]);
  info[kFloatState] = ram[ram::kFloatState];
  info[kFacing] = ram[ram::kFacing];
  info[kSwimming] = ram[ram::kSwimming];
  info[kStarTimer] = ram[ram::kStarTimer];
  info[kScreenX] = ram[ram::kScreenXPage] * 0x100 + ram[ram::kScreenX];
  info[kAreaType] = ram[ram::kAreaType];
  info[kAreaIndex] = ram[ram::kAreaIndex];
  info[kLoopCommand] = ram[ram::kLoopCommand];
  info[kLoopsCorrect] = ram[ram::kLoopsCorrect];
  info[kLoopsPassed] = ram[ram::kLoopsPassed];
  info[kDying] = is_dying(ram) || is_dead(ram);
  info[kGameOver] = is_game_over(ram);
  for (int i = 0; i < ram::kEnemySlots; ++i) {
    int32_t* enemy = info + kEnemies + 4 * i;
    enemy[0] = ram[ram::kEnemyType + i];
    enemy[1] = ram[ram::kEnemyActive + i];
    enemy[2] = ram[ram::kEnemyXPage + i] * 0x100 + ram[ram::kEnemyX + i];
    enemy[3] = height(ram[ram::kEnemyY + i], ram[ram::kEnemyYHigh + i]);
  }
}

}  // namespace wz
