#include "vec/machine_codec.hpp"

namespace wz {
namespace {

/// An instruction with sprite DMA can carry a frame this far past its end.
constexpr int32_t kMaxOverrun = 2000;

template <class Codec, class S>
void describe_scroll(Codec& codec, S& s) {
  codec.numbers(s.v, s.t);
  codec.choice(s.fine_x, 8);
  codec.choice(s.latch, 2);
  codec.numbers(s.ctrl, s.mask);
}

template <class Codec, class M>
void describe_nes(Codec& codec, M& m) {
  codec.numbers(m.cpu.pc, m.cpu.a, m.cpu.x, m.cpu.y, m.cpu.s, m.cpu.p);
  codec.choice(m.nmi, 3);
  codec.choice(m.dead_frames, 3);
  codec.numbers(m.now, m.frame);
  describe_scroll(codec, m.scroll);
  codec.choice(m.phase, 4);
  codec.choice(m.odd_frame, 2);
  codec.numbers(m.status, m.io_latch, m.read_buffer, m.oam_address, m.hit_dot);
  describe_scroll(codec, m.picture);
  codec.choice(m.raster_count, kMaxRasterWrites + 1);
  for (auto& write : m.raster) {
    codec.numbers(write.dot);
    codec.choice(write.reg, 8);
    codec.numbers(write.value);
  }
  for (auto& buttons : m.buttons) codec.numbers(buttons);
  for (auto& shift : m.shift) codec.numbers(shift);
  codec.numbers(m.strobe);
  for (auto& color : m.palette) codec.choice(color, 64);
  codec.block(m.oam, sizeof m.oam);
  codec.block(m.vram, sizeof m.vram);
  codec.block(m.ram, sizeof m.ram);
}

bool is_dot(int32_t dot) { return dot >= 0 && dot <= timing::kFrame + kMaxOverrun; }

bool is_valid(const Machine& m) {
  if (m.now < 0 || m.now > kMaxOverrun || m.scroll.v > 0x7FFF || m.scroll.t > 0x7FFF ||
      m.picture.v > 0x7FFF || m.picture.t > 0x7FFF) {
    return false;
  }
  if (m.hit_dot != kHitUnknown && m.hit_dot != kHitNever && !is_dot(m.hit_dot)) return false;
  // After power-on and reset the PPU has not drawn anything yet.
  if (m.dead_frames && (m.phase != PpuPhase::kPicture || m.raster_count)) return false;
  int32_t last = 0;
  for (int i = 0; i < m.raster_count; ++i) {
    const int32_t dot = m.raster[i].dot;
    if (!is_dot(dot) || dot < last) return false;
    last = dot;
  }
  return true;
}

template <class Codec, class M>
void describe_nespy(Codec& codec, M& m) {
  codec.numbers(m.cpu.pc, m.cpu.a, m.cpu.x, m.cpu.y, m.cpu.s, m.cpu.p, m.cpu.odd_cycle, m.cpu.wait);
  auto& p = m.ppu;
  codec.numbers(p.line, p.dot, p.v, p.t, p.fine_x, p.second_write, p.ctrl, p.mask, p.vblank,
                p.sprite_zero_hit, p.odd_frame, p.read_buffer, p.oam_address, p.sprite_count);
  codec.block(p.sprites, sizeof p.sprites);
  for (auto& c : m.controllers) codec.numbers(c.buttons, c.shift, c.strobe);
  codec.block(m.palette, sizeof m.palette);  // whole bytes: nes-py keeps what was written
  codec.block(m.oam, sizeof m.oam);
  codec.block(m.vram, sizeof m.vram);
  codec.block(m.ram, sizeof m.ram);
  codec.block(m.screen, sizeof m.screen);
}

[[noreturn]] void refuse() {
  throw std::invalid_argument("a saved machine holds an impossible value");
}

}  // namespace

void save_machine(Writer& writer, const Machine& m) {
  Saving codec(writer);
  describe_nes(codec, m);
}

void save_machine(Writer& writer, const nespy::Machine& m) {
  Saving codec(writer);
  describe_nespy(codec, m);
}

void load_machine(Reader& reader, Machine& m) {
  Loading codec(reader);
  describe_nes(codec, m);
  if (!is_valid(m)) refuse();
}

void load_machine(Reader& reader, nespy::Machine& m) {
  Loading codec(reader);
  describe_nespy(codec, m);
  if (!nespy::is_valid(m)) refuse();
}

}  // namespace wz
