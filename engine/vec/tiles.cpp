#include "vec/tiles.hpp"

#include <cstring>

#include "game/ram_map.hpp"
#include "game/signals.hpp"

namespace wz {
namespace {

constexpr uint8_t kCoin = 0xC2;
constexpr uint8_t kWaterCoin = 0xC3;
constexpr int kTileSize = 16;

uint8_t kind_of(uint8_t tile) {
  if (tile == 0) return kEmptyTile;
  return tile == kCoin || tile == kWaterCoin ? kCoinTile : kSolidTile;
}

/// Rows count from below the status bar; a sprite stands in the lower half of its 32 pixels.
int row_of(int y) { return (y - kTileSize) / kTileSize; }
int column_of(int x) { return (x + kTileSize / 2) / kTileSize; }

}  // namespace

void observe_tiles(const uint8_t* ram, uint8_t* out) {
  const int mario = column_of(x_position(ram));
  const int left = mario - kTilesBehind;
  for (int row = 0; row < kTileRows; ++row) {
    for (int i = 0; i < kTileColumns; ++i) {
      const int column = left + i;
      // The game keeps two pages of 16 columns and overwrites the older one.
      const int page = column >> 4 & 1;
      const int at = ram::kBlocks + page * kTileRows * 16 + row * 16 + (column & 15);
      out[row * kTileColumns + i] = column < 0 ? uint8_t{kEmptyTile} : kind_of(ram[at]);
    }
  }
  const auto put = [&](int row, int column, uint8_t value) {
    const int i = column - left;
    if (row >= 0 && row < kTileRows && i >= 0 && i < kTileColumns) {
      out[row * kTileColumns + i] = value;
    }
  };
  for (int i = 0; i < ram::kEnemySlots; ++i) {
    if (ram[ram::kEnemyActive + i] == 0 || ram[ram::kEnemyYHigh + i] != 1) continue;
    const uint8_t type = ram[ram::kEnemyType + i];
    if (type == ram::kFlagpoleFlag) continue;
    const int x = ram[ram::kEnemyXPage + i] * 0x100 + ram[ram::kEnemyX + i];
    put(row_of(ram[ram::kEnemyY + i]), column_of(x),
        type == ram::kPowerUp ? kPowerUpTile : kEnemyTile);
  }
  if (ram[ram::kPlayerYHigh] == 1) put(row_of(ram[ram::kPlayerYOnScreen]), mario, kMarioTile);
}

}  // namespace wz
