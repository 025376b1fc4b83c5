#pragma once

#include <cstddef>
#include <cstdint>

/// What is around Mario, read from RAM: the semantic alternative to pictures.
namespace wz {

/// The 13 rows of tiles below the status bar.
inline constexpr int kTileRows = 13;
inline constexpr int kTileColumns = 16;
/// Columns left of Mario's; the rest is his own and what lies ahead of him.
inline constexpr int kTilesBehind = 6;

/// What a cell holds. The values are far apart, so that the grid also works as a picture.
enum Tile : uint8_t {
  kEmptyTile = 0,
  kCoinTile = 48,
  kSolidTile = 96,
  kMarioTile = 144,
  kPowerUpTile = 192,
  kEnemyTile = 255,
};

/// Writes kTileRows x kTileColumns cells, top row first.
void observe_tiles(const uint8_t* ram, uint8_t* out);

}  // namespace wz
