#include "game/stage_table.hpp"

#include <stdexcept>
#include <string>

#include "game/ram_map.hpp"

namespace wz {
namespace {

/// Where every known program looks up which area a world and an area number are: the operands of
/// `ldy world; lda offsets,y; clc; adc area; tay; lda pointers,y`.
constexpr uint16_t kLookUp = 0x9C13;
enum Opcode : uint8_t { kLdyAbsolute = 0xAC, kLdaAbsoluteY = 0xB9, kClc = 0x18, kTay = 0xA8 };
constexpr uint8_t kAdcAbsolute = 0x6D;

/// Where a lost life looks up the halfway page, half a byte for each stage: the operands of
/// `lda world; asl; tax; lda stage; and #2; beq; inx; ldy pages,x`.
constexpr uint16_t kHalfwayLookUp = 0x91E9;
constexpr uint16_t kHalfwayPages = kHalfwayLookUp + 14;
constexpr uint8_t kLdaAbsolute = 0xAD, kAslA = 0x0A, kTax = 0xAA, kLdyAbsoluteX = 0xBC;

/// A pointer is `type << 5 | index`, with a flag above.
constexpr uint8_t kPointerBits = 0x7F;
constexpr uint8_t kTypeBits = 0x60;
constexpr uint8_t kCastle = 0x60;
/// The walk into a pipe: the same area wherever there is one.
constexpr uint8_t kEntryScene = 0x29;

uint16_t at(int address) { return static_cast<uint16_t>(address); }

bool has_look_up(const Cartridge& cart) {
  return cart.read(kLookUp) == kLdyAbsolute && cart.read16(at(kLookUp + 1)) == ram::kWorld &&
         cart.read(at(kLookUp + 3)) == kLdaAbsoluteY && cart.read(at(kLookUp + 6)) == kClc &&
         cart.read(at(kLookUp + 7)) == kAdcAbsolute && cart.read16(at(kLookUp + 8)) == ram::kArea &&
         cart.read(at(kLookUp + 10)) == kTay && cart.read(at(kLookUp + 11)) == kLdaAbsoluteY;
}

bool has_halfway_look_up(const Cartridge& cart) {
  return cart.read(kHalfwayLookUp) == kLdaAbsolute &&
         cart.read16(at(kHalfwayLookUp + 1)) == ram::kWorld &&
         cart.read(at(kHalfwayLookUp + 3)) == kAslA && cart.read(at(kHalfwayLookUp + 4)) == kTax &&
         cart.read(at(kHalfwayLookUp + 5)) == kLdaAbsolute &&
         cart.read16(at(kHalfwayLookUp + 6)) == ram::kStage &&
         cart.read(at(kHalfwayPages - 1)) == kLdyAbsoluteX;
}

/// These worlds of Super Mario Bros have an entry scene, before their second stage.
bool has_entry_scene(int world) { return world == 0 || world == 1 || world == 3 || world == 6; }

}  // namespace

StageTable::StageTable() {
  for (int stage = 0; stage < kStages; ++stage) {
    const int level = stage % kStagesPerWorld;
    const bool later = level >= 1 && has_entry_scene(stage / kStagesPerWorld);
    areas_[static_cast<size_t>(stage)] = static_cast<uint8_t>(level + (later ? 1 : 0));
  }
}

StageTable::StageTable(const Cartridge& cart) : StageTable() {
  if (has_halfway_look_up(cart)) {
    const uint16_t pages = cart.read16(kHalfwayPages);
    for (int stage = 0; stage < kStages; ++stage) {
      const uint8_t both = cart.read(at(pages + stage / 2));
      halfway_[static_cast<size_t>(stage)] = stage % 2 ? both & 0x0F : both >> 4;
    }
  }
  if (!has_look_up(cart)) return;
  const uint16_t offsets = cart.read16(at(kLookUp + 4));
  const uint16_t pointers = cart.read16(at(kLookUp + 12));
  for (int world = 0; world < kWorlds; ++world) {
    const int first = pointers + cart.read(at(offsets + world));
    uint8_t found[kStagesPerWorld];
    uint8_t areas[kStagesPerWorld];
    int level = 0;
    for (int area = 0; level < kStagesPerWorld && area < 2 * kStagesPerWorld; ++area) {
      const uint8_t pointer = cart.read(at(first + area)) & kPointerBits;
      if (pointer == kEntryScene) continue;
      found[level] = pointer;
      areas[level++] = static_cast<uint8_t>(area);
    }
    // A world that was left out has no castle, and one and the same area everywhere.
    const bool absent =
        level < kStagesPerWorld || ((found[3] & kTypeBits) != kCastle && found[0] == found[1]);
    for (int i = 0; i < kStagesPerWorld; ++i) {
      areas_[static_cast<size_t>(world * kStagesPerWorld + i)] = absent ? kAbsent : areas[i];
    }
  }
}

void StageTable::require(int stage) const {
  if (has(stage)) return;
  const auto name = [](int index) {
    return std::to_string(index / kStagesPerWorld + 1) + "-" +
           std::to_string(index % kStagesPerWorld + 1);
  };
  throw std::invalid_argument("this ROM has no stage " + name(stage) + "; its stages are 1-1 to " +
                              name(last_world() * kStagesPerWorld + kStagesPerWorld - 1));
}

uint8_t StageTable::last_world() const {
  for (int world = kWorlds - 1; world > 0; --world) {
    if (has(world * kStagesPerWorld)) return static_cast<uint8_t>(world);
  }
  return 0;
}

}  // namespace wz
