#include <cstdio>
#include <cstring>

#include "check.hpp"
#include "nes/render.hpp"
#include "random_machine.hpp"
#include "slow_render.hpp"

namespace {

using namespace wz;
using slow::Dice;
using slow::random_cartridge;
using slow::random_machine;

using Screen = uint8_t[240][256];

void check_same(const Machine& m, const Cartridge& cart, const Screen& expected, Simd level,
                int round) {
  static Picture picture;
  std::memset(&picture, 0xEE, sizeof picture);
  draw(m, cart, picture, level);
  const auto index = [](int i) { return picture.line(i / kWidth)[i % kWidth]; };
  const auto right = [&](int i) {
    return index(i) < 32 && (index(i) & 3 ? index(i) : 0) == expected[i / kWidth][i % kWidth];
  };
  int same = 0;
  while (same < kHeight * kWidth && right(same)) ++same;
  if (CHECK(same == kHeight * kWidth)) return;
  std::printf("  %s, picture %d: pixel %d of line %d is %d, expected %d\n", simd_name(level), round,
              same % kWidth, same / kWidth, index(same), expected[same / kWidth][same % kWidth]);
}

void test_random_pictures() {
  Dice dice(7);
  static Screen expected;
  for (int round = 0; round < 240; ++round) {
    const CartridgePtr cart = random_cartridge(dice, dice.one_in(2));
    const int busy = round % 3 == 0 ? 0 : 1 + dice.below(kMaxRasterWrites);
    const Machine m = random_machine(dice, busy);
    slow::Renderer(m, *cart).draw(expected);
    for (const Simd level : simd_levels()) {
      check_same(m, *cart, expected, level, round);
    }
  }
}

/// Writes at every dot of a line and its neighbours: nothing may depend on how a picture is cut
/// into quiet and busy lines.
void test_every_dot() {
  Dice dice(8);
  static Screen expected;
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
    slow::Renderer(m, *cart).draw(expected);
    check_same(m, *cart, expected, best_simd(), dot - line);
  }
}

void test_palette() {
  Machine m{};
  for (int i = 0; i < 32; ++i) m.palette[i] = static_cast<uint8_t>(63 - i);
  uint8_t colors[32];
  palette_colors(m, colors);
  for (int i = 0; i < 32; ++i) CHECK_EQ(colors[i], i % 4 ? 63 - i : 63);
  m.picture.mask = 0x01;
  palette_colors(m, colors);
  CHECK_EQ(colors[0], 0x30);
  CHECK_EQ(colors[5], (63 - 5) & 0x30);
}

}  // namespace

int main() {
  test_random_pictures();
  test_every_dot();
  test_palette();
  return check::finish();
}
