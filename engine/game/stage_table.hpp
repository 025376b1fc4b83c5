#pragma once

#include <array>
#include <cstdint>

#include "nes/cartridge.hpp"

namespace wz {

inline constexpr int kStages = 32;
inline constexpr int kStagesPerWorld = 4;
inline constexpr int kWorlds = kStages / kStagesPerWorld;

/// Where the stages are in a cartridge's list of areas, and where they are halfway. A world lists
/// its four stages and, before a stage that is entered by a pipe, the walk to it as an area of its
/// own.
class StageTable {
 public:
  /// Of Super Mario Bros.
  StageTable();
  /// Of a cartridge: read from the tables its program looks stages up in; those of Super Mario Bros
  /// where the look-up is not the known one. Where that of halfway pages is not, there are none.
  explicit StageTable(const Cartridge& cart);

  bool has(int stage) const { return areas_[static_cast<size_t>(stage)] != kAbsent; }
  /// Throws std::invalid_argument for one that it does not have.
  void require(int stage) const;
  /// What the game counts in `ram::kArea` at the start of a stage that it has.
  uint8_t area(int stage) const { return areas_[static_cast<size_t>(stage)]; }
  /// The page at which the game lets a stage begin after a lost life; 0 = at its door, always.
  uint8_t halfway_page(int stage) const { return halfway_[static_cast<size_t>(stage)]; }
  /// The world after which the game has no other, from 0.
  uint8_t last_world() const;

 private:
  static constexpr uint8_t kAbsent = 0xFF;
  std::array<uint8_t, kStages> areas_{};
  std::array<uint8_t, kStages> halfway_{};
};

}  // namespace wz
