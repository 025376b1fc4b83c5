#pragma once

#include <array>
#include <cstdint>

#include "game/ram_map.hpp"

/// Memory of a game in play, for tests of what it means.
namespace wz {

using Ram = std::array<uint8_t, 2048>;

/// Mario on the ground of 1-1, in the player's control.
inline Ram playing() {
  Ram ram{};
  ram[ram::kPlayerState] = ram::kInControl;
  ram[ram::kGameMode] = ram::kPlaying;
  ram[ram::kGameTask] = ram::kPlayingTask;
  ram[ram::kPlayerYHigh] = 1;
  ram[ram::kAreaType] = 1;
  return ram;
}

inline void set_x(Ram& ram, int x) {
  ram[ram::kPlayerXPage] = static_cast<uint8_t>(x >> 8);
  ram[ram::kPlayerX] = static_cast<uint8_t>(x);
}

}  // namespace wz
