#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "nes/render.hpp"
#include "slow_render.hpp"

namespace {

using namespace wz;

class Dice {
 public:
  explicit Dice(uint32_t seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<uint32_t>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  uint8_t byte() { return static_cast<uint8_t>(below(256)); }

 private:
  std::mt19937 engine_;
};

CartridgePtr random_cartridge(Dice& dice, bool vertical) {
  std::vector<uint8_t> file(16 + 0x8000 + 0x2000);
  const uint8_t header[7] = {'N', 'E', 'S', 0x1A, 2, 1, static_cast<uint8_t>(vertical)};
  std::memcpy(file.data(), header, sizeof header);
  for (size_t i = 16 + 0x8000; i < file.size(); ++i) {
    // Blank rows, so that backgrounds and sprites have holes of every size.
    file[i] = dice.one_in(3) ? uint8_t{0} : dice.byte();
  }
  return parse_ines(file);
}

uint8_t random_mask(Dice& dice) {
  if (dice.one_in(4)) return dice.byte();
  return static_cast<uint8_t>(0x18 | dice.below(8));
}

/// `busy`: how many register writes fall into the picture, anywhere and at the edges of lines.
Machine random_machine(Dice& dice, int busy) {
  Machine m{};
  for (auto& byte : m.vram) byte = dice.byte();
  for (auto& byte : m.palette) byte = dice.byte() & 0x3F;
  for (int i = 0; i < 256; i += 4) {
    const bool crowded = dice.one_in(2);
    m.oam[i] = crowded ? static_cast<uint8_t>(100 + dice.below(24)) : dice.byte();
    for (int j = 1; j < 4; ++j) m.oam[i + j] = dice.byte();
    if (dice.one_in(8)) m.oam[i + 3] = static_cast<uint8_t>(dice.below(9));
  }
  m.picture.v = static_cast<uint16_t>(dice.below(0x8000));
  m.picture.t = dice.one_in(2) ? m.picture.v : static_cast<uint16_t>(dice.below(0x8000));
  m.picture.fine_x = static_cast<uint8_t>(dice.below(8));
  m.picture.latch = static_cast<uint8_t>(dice.below(2));
  m.picture.ctrl = dice.byte();
  m.picture.mask = random_mask(dice);
  m.odd_frame = dice.one_in(2);
  const int first = timing::kFirstLine - (m.odd_frame ? 0 : 1);
  int dot = first - 16;
  for (int i = 0; i < busy; ++i) {
    constexpr uint8_t kRegisters[4] = {0, 1, 5, 6};
    dot += dice.one_in(3) ? dice.below(12) : dice.below(2 * 240 * 341 / busy);
    if (dot >= first + 240 * 341) break;
    RasterWrite& write = m.raster[m.raster_count++];
    write = {dot, kRegisters[dice.below(4)], dice.byte()};
    if (write.reg == 1) write.value = random_mask(dice);
  }
  return m;
}

bool same(const Machine& m, const Cartridge& cart, Simd level, int round) {
  static uint8_t expected[240][256];
  static Picture picture;
  slow::Renderer(m, cart).draw(expected);
  std::memset(&picture, 0xEE, sizeof picture);
  draw(m, cart, picture, level);
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const uint8_t index = picture.line(y)[x];
      if (index < 32 && (index & 3 ? index : 0) == expected[y][x]) continue;
      std::fprintf(stderr, "%s, picture %d: pixel %d of line %d is %d, expected %d\n",
                   simd_name(level), round, x, y, index, expected[y][x]);
      return false;
    }
  }
  return true;
}

bool test_random_pictures() {
  Dice dice(7);
  for (int round = 0; round < 240; ++round) {
    const CartridgePtr cart = random_cartridge(dice, dice.one_in(2));
    const int busy = round % 3 == 0 ? 0 : 1 + dice.below(kMaxRasterWrites);
    const Machine m = random_machine(dice, busy);
    for (const Simd level : simd_levels()) {
      if (!same(m, *cart, level, round)) return false;
    }
  }
  return true;
}

/// Writes at every dot of a line and its neighbours: nothing may depend on how a picture is cut
/// into quiet and busy lines.
bool test_every_dot() {
  Dice dice(8);
  const CartridgePtr cart = random_cartridge(dice, true);
  Machine m = random_machine(dice, 0);
  m.picture.mask = 0x1E;
  const int line = timing::kFirstLine - (m.odd_frame ? 0 : 1) + 31 * timing::kDotsPerLine;
  for (int dot = line - 30; dot < line + 350; dot += 3) {
    m.raster_count = 3;
    m.raster[0] = {dot, 5, dice.byte()};
    m.raster[1] = {dot + 12, 5, dice.byte()};
    m.raster[2] = {dot + 24, 0, dice.byte()};
    m.picture.latch = 0;
    if (!same(m, *cart, best_simd(), dot - line)) return false;
  }
  return true;
}

bool test_palette() {
  Machine m{};
  for (int i = 0; i < 32; ++i) m.palette[i] = static_cast<uint8_t>(63 - i);
  uint8_t colors[32];
  palette_colors(m, colors);
  for (int i = 0; i < 32; ++i) {
    if (colors[i] != (i % 4 ? 63 - i : 63)) return false;
  }
  m.picture.mask = 0x01;
  palette_colors(m, colors);
  return colors[0] == 0x30 && colors[5] == ((63 - 5) & 0x30);
}

}  // namespace

int main() {
  const bool ok = test_random_pictures() & test_every_dot() & test_palette();
  std::puts(ok ? "ok" : "FAILED");
  return ok ? 0 : 1;
}
