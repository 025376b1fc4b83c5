#include "nes/console.hpp"

#include <cstring>

#include "nes/cpu.hpp"
#include "nes/ppu.hpp"

namespace wz {
namespace {

constexpr uint16_t kResetVector = 0xFFFC;
constexpr uint8_t kDeadFrames = 2;

void reset_ppu(Machine& m) {
  m.scroll = {};
  m.picture = {};
  m.raster_count = 0;
  m.status = m.io_latch = m.read_buffer = m.oam_address = 0;
  m.phase = PpuPhase::kPicture;
  m.odd_frame = false;
  m.hit_dot = kHitUnknown;
  m.dead_frames = kDeadFrames;
}

}  // namespace

Machine power_on(const Cartridge& cart) {
  Machine m;
  std::memset(static_cast<void*>(&m), 0, sizeof m);
  // Undefined on the hardware; FCEUmm starts with this.
  std::memset(m.ram, 0xFF, sizeof m.ram);
  m.cpu.s = 0xFD;
  m.cpu.p = 0x24;
  m.cpu.pc = cart.read16(kResetVector);
  reset_ppu(m);
  return m;
}

void reset(Machine& m, const Cartridge& cart) {
  m.nmi = NmiState::kNone;
  m.cpu.p = 0x24;
  m.cpu.pc = cart.read16(kResetVector);
  reset_ppu(m);
}

void run_frame(Machine& m, const Cartridge& cart, const NativeCode* native) {
  const int32_t length = frame_length(m);
  if (m.dead_frames) {
    cpu::run(m, cart, native, length);
    --m.dead_frames;
  } else {
    m.phase = PpuPhase::kPicture;
    cpu::run(m, cart, native, timing::kNmi);
    ppu::sync(m, timing::kNmi);
    if (m.scroll.ctrl & 0x80) m.nmi = NmiState::kPending;
    cpu::run(m, cart, native, length);
    ppu::sync(m, length);
    m.odd_frame = !m.odd_frame;
  }
  m.now -= length;
  ++m.frame;
}

}  // namespace wz
