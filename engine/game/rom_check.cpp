#include "game/rom_check.hpp"

#include <stdexcept>
#include <string>

namespace wz {
namespace {

constexpr uint16_t kNmiHandler = 0x8082;
constexpr uint16_t kResetHandler = 0x8000;
constexpr uint16_t kIrqHandler = 0xFFF0;
constexpr uint16_t kIdleLoop = 0x8057;
constexpr uint16_t kWaitForHit = 0x8150;
constexpr uint16_t kPpuStatus = 0x2002;
constexpr uint8_t kHitBit = 0x40;

constexpr uint16_t kReadJoypads = 0x8E5C;
constexpr int kReadJoypadsLength = 60;
constexpr uint64_t kReadJoypadsHash = 0x6ED16C53E1FAE5E5u;

enum Opcode : uint8_t { kJmp = 0x4C, kLdaAbsolute = 0xAD, kAndImmediate = 0x29, kBeq = 0xF0 };

uint16_t at(int address) { return static_cast<uint16_t>(address); }

bool has_vectors(const Cartridge& cart) {
  return cart.read16(0xFFFA) == kNmiHandler && cart.read16(0xFFFC) == kResetHandler &&
         cart.read16(0xFFFE) == kIrqHandler;
}

bool has_idle_loop(const Cartridge& cart) {
  return cart.read(kIdleLoop) == kJmp && cart.read16(at(kIdleLoop + 1)) == kIdleLoop;
}

bool has_sprite_poll(const Cartridge& cart) {
  return cart.read(kWaitForHit) == kLdaAbsolute && cart.read16(at(kWaitForHit + 1)) == kPpuStatus &&
         cart.read(at(kWaitForHit + 3)) == kAndImmediate &&
         cart.read(at(kWaitForHit + 4)) == kHitBit && cart.read(at(kWaitForHit + 5)) == kBeq;
}

/// Longer code is recognised by its hash: nothing of the program is spelled out here.
bool has_joypad_routine(const Cartridge& cart) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (int i = 0; i < kReadJoypadsLength; ++i) {
    hash = (hash ^ cart.read(at(kReadJoypads + i))) * 0x100000001B3u;
  }
  return hash == kReadJoypadsHash;
}

}  // namespace

void require_super_mario_bros(const Cartridge& cart) {
  const char* missing = !has_vectors(cart)          ? "its interrupt vectors differ"
                        : !has_idle_loop(cart)      ? "its idle loop is missing"
                        : !has_sprite_poll(cart)    ? "its status bar split is missing"
                        : !has_joypad_routine(cart) ? "its joypad routine differs"
                                                    : nullptr;
  if (missing) {
    throw std::invalid_argument(std::string("this cartridge is not Super Mario Bros: ") + missing);
  }
}

}  // namespace wz
