#include "vec/machine_codec.hpp"

namespace wz {
namespace {

/// An instruction with sprite DMA can carry a frame this far past its end.
constexpr int32_t kMaxOverrun = 2000;

template <class Archive, class S>
void describe_scroll(Archive& archive, S& s) {
  archive.numbers(s.v, s.t);
  archive.choice(s.fine_x, 8);
  archive.choice(s.latch, 2);
  archive.numbers(s.ctrl, s.mask);
}

template <class Archive, class M>
void describe_nes(Archive& archive, M& m) {
  archive.numbers(m.cpu.pc, m.cpu.a, m.cpu.x, m.cpu.y, m.cpu.s, m.cpu.p);
  archive.choice(m.nmi, 3);
  archive.choice(m.dead_frames, 3);
  archive.numbers(m.now, m.frame);
  describe_scroll(archive, m.scroll);
  archive.choice(m.phase, 4);
  archive.choice(m.odd_frame, 2);
  archive.numbers(m.status, m.io_latch, m.read_buffer, m.oam_address, m.hit_dot);
  describe_scroll(archive, m.picture);
  archive.choice(m.raster_count, kMaxRasterWrites + 1);
  for (auto& write : m.raster) {
    archive.numbers(write.dot);
    archive.choice(write.reg, 8);
    archive.numbers(write.value);
  }
  for (auto& buttons : m.buttons) archive.numbers(buttons);
  for (auto& shift : m.shift) archive.numbers(shift);
  archive.numbers(m.strobe);
  for (auto& color : m.palette) archive.choice(color, 64);
  archive.block(m.oam, sizeof m.oam);
  archive.block(m.vram, sizeof m.vram);
  archive.block(m.ram, sizeof m.ram);
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

template <class Archive, class M>
void describe_nespy(Archive& archive, M& m) {
  archive.numbers(m.cpu.pc, m.cpu.a, m.cpu.x, m.cpu.y, m.cpu.s, m.cpu.p, m.cpu.odd_cycle,
                  m.cpu.wait);
  auto& p = m.ppu;
  archive.numbers(p.line, p.dot, p.v, p.t, p.fine_x, p.second_write, p.ctrl, p.mask, p.vblank,
                  p.sprite_zero_hit, p.odd_frame, p.read_buffer, p.oam_address, p.sprite_count);
  archive.block(p.sprites, sizeof p.sprites);
  for (auto& c : m.controllers) archive.numbers(c.buttons, c.shift, c.strobe);
  archive.block(m.palette, sizeof m.palette);  // whole bytes: nes-py keeps what was written
  archive.block(m.oam, sizeof m.oam);
  archive.block(m.vram, sizeof m.vram);
  archive.block(m.ram, sizeof m.ram);
  archive.block(m.screen, sizeof m.screen);
}

[[noreturn]] void refuse() {
  throw std::invalid_argument("a saved machine holds an impossible value");
}

}  // namespace

void save_machine(Writer& writer, const Machine& m) {
  Saving archive(writer);
  describe_nes(archive, m);
}

void save_machine(Writer& writer, const nespy::Machine& m) {
  Saving archive(writer);
  describe_nespy(archive, m);
}

void load_machine(Reader& reader, Machine& m) {
  Loading archive(reader);
  describe_nes(archive, m);
  if (!is_valid(m)) refuse();
}

void load_machine(Reader& reader, nespy::Machine& m) {
  Loading archive(reader);
  describe_nespy(archive, m);
  if (!nespy::is_valid(m)) refuse();
}

}  // namespace wz
