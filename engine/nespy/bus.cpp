#include "nespy/bus.hpp"

namespace wz::nespy {
namespace {

constexpr uint16_t kSpriteDma = 0x4014;
constexpr uint16_t kJoypad1 = 0x4016;
constexpr uint16_t kJoypad2 = 0x4017;
constexpr int kDmaCycles = 513;

void strobe(Controller& c, uint8_t value) {
  c.strobe = value & 1;
  if (c.strobe == 0) c.shift = c.buttons;
}

uint8_t read_joypad(Controller& c) {
  if (c.strobe != 0) return 0x40 | (c.buttons & 1);
  const int bit = c.shift & 1;
  c.shift >>= 1;
  return static_cast<uint8_t>(0x40 | bit);
}

}  // namespace

bool Bus::sync(int32_t at) {
  const int32_t target = dots_after(at);
  const bool nmi = run_ppu(m, cart, target - dots_);
  dots_ = target;
  vblank_ = target + dots_to_vblank(m.ppu);
  return nmi;
}

uint8_t Bus::read_io(uint16_t address) {
  if (address < 0x4000) {
    sync(cycle);
    return read_ppu(m, cart, address & 7);
  }
  if (address == kJoypad1) return read_joypad(m.controllers[0]);
  if (address == kJoypad2) return read_joypad(m.controllers[1]);
  return 0;
}

void Bus::write_io(uint16_t address, uint8_t value) {
  if (address < 0x4000) {
    sync(cycle);
    write_ppu(m, cart, address & 7, value);
  } else if (address == kSpriteDma) {
    sprite_dma(value);
  } else if (address == kJoypad1) {
    for (Controller& c : m.controllers) strobe(c, value);
  }
}

void Bus::sprite_dma(uint8_t page) {
  m.cpu.wait += kDmaCycles + ((m.cpu.odd_cycle + cycle + 1) & 1);
  if (page >= 0x20) return;
  sync(cycle);
  copy_sprites(m, m.ram + (page & 7) * 0x100);
}

}  // namespace wz::nespy
