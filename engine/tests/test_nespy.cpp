// The nes-py machine on programs made up here, so that no ROM is needed. The hashes at the end were
// recorded from nes-py 8.2.1 itself; tests/oracle compares with it on the game.

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <vector>

#include "check.hpp"
#include "nespy/cpu.hpp"
#include "nespy/nespy.hpp"

namespace {

using namespace wz;
using nespy::Bus;
using nespy::Machine;

struct Rng {
  uint32_t state;
  int below(int n) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return static_cast<int>((state >> 8) % static_cast<uint32_t>(n));
  }
  uint8_t byte() { return static_cast<uint8_t>(below(256)); }
};

/// A cartridge from its parts, through the same loader as a real one.
CartridgePtr make_cartridge(const std::vector<uint8_t>& prg, const std::vector<uint8_t>& chr,
                            bool vertical = true) {
  std::vector<uint8_t> file = {'N', 'E', 'S', 0x1A, 2, 1, static_cast<uint8_t>(vertical ? 1 : 0)};
  file.resize(16);
  file.insert(file.end(), prg.begin(), prg.end());
  file.insert(file.end(), chr.begin(), chr.end());
  return parse_ines(file);
}

CartridgePtr program_at(size_t offset, std::initializer_list<int> bytes) {
  std::vector<uint8_t> prg(0x8000, 0xEA);
  std::transform(bytes.begin(), bytes.end(), prg.begin() + static_cast<std::ptrdiff_t>(offset),
                 [](int b) { return static_cast<uint8_t>(b); });
  prg[0x7FFC] = static_cast<uint8_t>(offset & 0xFF);
  prg[0x7FFD] = static_cast<uint8_t>(0x80 + (offset >> 8));
  return make_cartridge(prg, std::vector<uint8_t>(0x2000));
}

struct Cost {
  const char* what;
  size_t offset;
  std::initializer_list<int> bytes;
  int32_t wait;
  int pc_after;
};

void test_costs() {
  const Cost costs[] = {
      {"LDA abs,X in page", 0, {0xBD, 0x00, 0x02}, 4, 0x8003},
      {"LDA abs,X across", 0, {0xBD, 0xFF, 0x02}, 5, 0x8003},
      {"STA abs,X across", 0, {0x9D, 0xFF, 0x02}, 5, 0x8003},
      {"INC abs,X across", 0, {0xFE, 0xFF, 0x02}, 8, 0x8003},
      {"BPL taken", 0, {0x10, 0x10}, 3, 0x8012},
      {"BPL to another page", 0xF0, {0x10, 0x20}, 5, 0x8112},
      {"BMI not taken", 0, {0x30, 0x10}, 2, 0x8002},
      {"BRK", 0, {0x00}, 14, 0xEAEA},
      {"sprite DMA on an odd cycle", 0, {0x8D, 0x14, 0x40}, 4 + 514, 0x8003},
      {"undecodable $03", 0, {0x03}, 0, 0x8001},
      {"operand only $04", 0, {0x04, 0x12}, 0, 0x8002},
      {"operand only $1C across", 0, {0x1C, 0xFF, 0x02}, 1, 0x8003},
  };
  for (const Cost& cost : costs) {
    const CartridgePtr cart = program_at(cost.offset, cost.bytes);
    auto m = std::make_unique<Machine>(nespy::power_on(*cart));
    m->cpu.x = 1;
    m->cpu.p = 0x34;
    Bus bus(*m, *cart);
    nespy::execute(bus);
    const int before = check::counts().failed;
    CHECK_EQ(m->cpu.wait, cost.wait);
    CHECK_EQ(m->cpu.pc, cost.pc_after);
    if (check::counts().failed != before) std::printf("  in: %s\n", cost.what);
  }
}

void test_flags_are_pushed_in_reverse() {
  const CartridgePtr cart = program_at(0, {0x38, 0x08});  // SEC, PHP
  auto m = std::make_unique<Machine>(nespy::power_on(*cart));
  Bus bus(*m, *cart);
  nespy::execute(bus);
  nespy::execute(bus);
  CHECK_EQ(m->ram[0x1FD], 0xB4);  // C is the highest bit; D, I and the constant one as at reset
  CHECK_EQ(m->cpu.s, 0xFC);
}

void test_vram_map() {
  const CartridgePtr cart = program_at(0, {0xEA});
  auto m = std::make_unique<Machine>(nespy::power_on(*cart));
  const auto set = [&](int address, uint8_t value) {
    nespy::write_vram(*m, *cart, static_cast<uint16_t>(address), value);
  };
  const auto get = [&](int address) {
    return nespy::read_vram(*m, *cart, static_cast<uint16_t>(address));
  };
  set(0x2405, 1);
  CHECK_EQ(get(0x2C05), 1);  // vertical mirroring
  CHECK_EQ(get(0x2005), 0);
  CHECK_EQ(get(0x3005), 1);  // not the first table but the fourth
  set(0x3F10, 2);
  CHECK_EQ(get(0x3F00), 2);
  set(0x3F14, 3);
  CHECK_EQ(get(0x3F04), 0);
  set(0x3EFF, 4);
  CHECK_EQ(m->palette[31], 4);
  set(0x3FFF, 5);
  CHECK_EQ(m->palette[31], 4);
  CHECK_EQ(get(0x3FFF), 0);

  m->ppu.read_buffer = 9;
  m->ppu.v = 0x2405;
  CHECK_EQ(nespy::read_ppu(*m, *cart, 7), 9);
  CHECK_EQ(m->ppu.read_buffer, 1);
  m->ppu.v = 0x3EFF;  // ends at $3F00: read at once, buffer untouched
  CHECK_EQ(nespy::read_ppu(*m, *cart, 7), 4);
  CHECK_EQ(m->ppu.read_buffer, 1);
}

int dots_of_frame(Machine& m, const Cartridge& cart) {
  int dots = 0;
  do {
    nespy::run_ppu(m, cart, 1);
    ++dots;
  } while (m.ppu.line != nespy::kVblankLine || m.ppu.dot != 2);
  return dots;
}

void test_frame_lengths() {
  const CartridgePtr cart = program_at(0, {0xEA});
  auto m = std::make_unique<Machine>(nespy::power_on(*cart));
  CHECK_EQ(dots_of_frame(*m, *cart), 342 + 241 * 341 + 1);  // the line after reset is longer
  CHECK_EQ(dots_of_frame(*m, *cart), 262 * 341 - 1);
  CHECK_EQ(dots_of_frame(*m, *cart), 262 * 341);
  m->ppu.mask = nespy::mask::kBackground;
  CHECK_EQ(dots_of_frame(*m, *cart), 262 * 341);
}

void test_restore_forgets_controllers() {
  const CartridgePtr cart = program_at(0, {0xEA});
  auto m = std::make_unique<Machine>(nespy::power_on(*cart));
  m->controllers[0] = {1, 2, 0};
  const auto backup = std::make_unique<Machine>(*m);
  nespy::step(*m, *cart, 0x81, 0x42);
  m->controllers[0].shift = 7;
  m->ram[5] = 5;
  nespy::restore(*m, *backup);
  CHECK_EQ(m->ram[5], 0);
  CHECK_EQ(m->cpu.pc, backup->cpu.pc);
  CHECK_EQ(m->controllers[0].buttons, 0x81);
  CHECK_EQ(m->controllers[0].shift, 7);
  CHECK_EQ(m->controllers[1].buttons, 0x42);
}

void test_is_valid() {
  const CartridgePtr cart = program_at(0, {0xEA});
  const auto good = std::make_unique<Machine>(nespy::power_on(*cart));
  CHECK_EQ(nespy::is_valid(*good), true);
  const auto refused = [&](auto damage) {
    const auto m = std::make_unique<Machine>(*good);
    damage(*m);
    return !nespy::is_valid(*m);
  };
  CHECK_EQ(refused([](Machine& m) { m.ppu.line = 261; }), true);
  CHECK_EQ(refused([](Machine& m) { m.ppu.line = -2; }), true);
  CHECK_EQ(refused([](Machine& m) { m.ppu.dot = 342; }), true);
  CHECK_EQ(refused([](Machine& m) { m.ppu.line = m.ppu.dot = 0; }), true);
  CHECK_EQ(refused([](Machine& m) { m.ppu.sprite_count = 9; }), true);
  CHECK_EQ(refused([](Machine& m) { m.ppu.sprites[0] = 64, m.ppu.sprite_count = 1; }), true);
  CHECK_EQ(refused([](Machine& m) { m.cpu.wait = -1; }), true);
  CHECK_EQ(refused([](Machine& m) { m.cpu.wait = 1 << 20; }), true);
  CHECK_EQ(refused([](Machine& m) { m.screen[1000] = 64; }), true);
}

/// A program that writes to every PPU register at any time, with sprite DMA, loops and joypads.
CartridgePtr random_cartridge(uint32_t seed) {
  Rng rng{seed * 2654435761u + 1};
  std::vector<uint8_t> prg, chr(0x2000);
  const auto emit = [&](std::initializer_list<int> bytes) {
    for (const int b : bytes) prg.push_back(static_cast<uint8_t>(b));
  };
  const auto store = [&](int value, int address) {
    emit({0xA9, value, 0x8D, address, address >> 8});
  };
  emit({0xAD, 0x07, 0x20});  // nes-py never initialises its read buffer and edge masks
  store(0x1E, 0x2001);
  store(0x3F, 0x2006);
  store(0x00, 0x2006);
  for (int i = 0; i < 32; ++i) store(rng.below(64), 0x2007);
  for (int i = 0; i < 256; ++i) store(rng.byte(), 0x200 + i);
  store(0x02, 0x4014);
  store(0x80, 0x2000);
  const int loop = 0x8000 + static_cast<int>(prg.size());
  // Arithmetic, shifts and compares whose operand is one byte of zero page.
  static constexpr int kZeroPageOps[] = {0x05, 0x25, 0x45, 0x65, 0x85, 0xA5, 0xC5,
                                         0xE5, 0x06, 0x26, 0x46, 0x66, 0xE6, 0xC6,
                                         0x24, 0x84, 0xA4, 0x86, 0xA6, 0xB1};
  static constexpr int kScrollRegisters[] = {0x2000, 0x2005, 0x2006, 0x2003, 0x2004};
  while (prg.size() < 0x7F00) {
    switch (rng.below(12)) {
      case 0:
        store(0x1E & ~(rng.below(4) == 0 ? 1 << rng.below(5) : 0), 0x2001);
        break;
      case 1:
        store(rng.byte() | 0x80, kScrollRegisters[rng.below(5)]);
        break;
      case 2:
        store(rng.byte() & 0x27, 0x2006);
        break;
      case 3:
        rng.below(3) == 0 ? store(rng.below(64), 0x2007) : store(rng.byte(), 0x2005);
        break;
      case 4:
        emit({0xA2, 1 + rng.below(200), 0xCA, 0xD0, 0xFD});
        break;  // a delay
      case 5:
        emit({0xAD, 0x02 + 5 * rng.below(2), 0x20, 0x8D, rng.below(256), 0x03});
        break;
      case 6:
        store(rng.below(2), 0x4016), emit({0xAD, 0x16 + rng.below(2), 0x40});
        break;
      case 7:
        emit({0xBD, rng.byte(), rng.below(8), 0x9D, rng.byte(), 0x02});
        break;
      case 8:
        rng.below(8) == 0 ? store(rng.below(8), 0x4014) : emit({0x08, 0x48, 0x68, 0x28});
        break;
      default:
        emit({kZeroPageOps[rng.below(20)], rng.byte() & 0x7F});
        break;
    }
  }
  emit({0x4C, loop, loop >> 8});
  prg.resize(0x7FF0, 0xEA);
  emit({0xE6, 0xF0, 0x40, 0xEA, 0xEA, 0xEA, 0xEA, 0xEA, 0xEA, 0xEA});  // NMI: count it, return
  emit({0xF0, 0xFF, 0x00, 0x80, 0xF2, 0xFF});
  for (uint8_t& b : chr) b = rng.byte();
  return make_cartridge(prg, chr, (seed & 1) != 0);
}

/// Dots done one by one and in runs of any length give the same machine.
void test_runs_of_dots() {
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    Rng rng{seed};
    const CartridgePtr cart = random_cartridge(seed);
    auto a = std::make_unique<Machine>(nespy::power_on(*cart));
    for (uint8_t& b : a->oam) b = rng.byte();
    for (uint8_t& b : a->vram) b = rng.byte();
    for (uint8_t& b : a->palette) b = static_cast<uint8_t>(rng.below(64));
    auto b = std::make_unique<Machine>(*a);
    for (int i = 0; i < 600; ++i) {
      const int dots = 1 + rng.below(700);
      bool nmi = false;
      for (int k = 0; k < dots; ++k) nmi |= nespy::run_ppu(*a, *cart, 1);
      CHECK_EQ(nespy::run_ppu(*b, *cart, dots), nmi);
      const int reg = rng.below(8);
      const uint8_t value = rng.byte();
      nespy::write_ppu(*a, *cart, reg, value);
      nespy::write_ppu(*b, *cart, reg, value);
    }
    CHECK_EQ(std::memcmp(a.get(), b.get(), sizeof(Machine)), 0);
  }
}

uint64_t mix(uint64_t hash, uint8_t byte) { return (hash ^ byte) * 0x100000001B3u; }

/// FNV-1a over RAM and RGB picture of every step.
uint64_t play(uint32_t seed, int steps) {
  const CartridgePtr cart = random_cartridge(seed);
  auto m = std::make_unique<Machine>(nespy::power_on(*cart));
  Rng rng{seed};
  uint64_t hash = 0xCBF29CE484222325u;
  for (int i = 0; i < steps; ++i) {
    const uint8_t first = rng.byte(), second = rng.byte();
    nespy::step(*m, *cart, first, second);
    CHECK_EQ(nespy::is_valid(*m), true);
    for (const uint8_t byte : m->ram) hash = mix(hash, byte);
    for (const uint8_t color : m->screen) {
      const auto [red, green, blue] = kPalette[color];
      for (const uint8_t part : {red, green, blue}) hash = mix(hash, part);
    }
  }
  return hash;
}

void test_recorded_programs() {
  constexpr uint64_t kRecorded[] = {0xA20C23F2A9BD7B0F, 0x868A33D4873BA457, 0x95F9AF3FABB29A05,
                                    0xD5DC07643FA47A58, 0x65A063D86D2BCD9E, 0xAC5596038C060001,
                                    0x46E0418E3C4F4BA3, 0x867C1904E19FF3B0};
  for (uint32_t seed = 1; seed <= std::size(kRecorded); ++seed) {
    CHECK_EQ(play(seed, 8), kRecorded[seed - 1]);
  }
}

}  // namespace

int main() {
  test_costs();
  test_flags_are_pushed_in_reverse();
  test_vram_map();
  test_frame_lengths();
  test_restore_forgets_controllers();
  test_is_valid();
  test_runs_of_dots();
  test_recorded_programs();
  return check::finish();
}
