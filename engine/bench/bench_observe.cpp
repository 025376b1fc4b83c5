// Nanoseconds to draw a picture and to make an observation of it, for each instruction set.
//
//   bench_observe [rom.nes]
//
// With a ROM the pictures come from playing it for a while, running and jumping to the right;
// without, from random memories with twenty sprites.

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <vector>

#include "nes/console.hpp"
#include "vec/observe.hpp"

namespace {

using namespace wz;

constexpr int kBatches = 101;

struct Game {
  CartridgePtr cart;
  std::vector<Machine> machines;
};

Game play(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(file)), {});
  Game game{parse_ines(bytes), {}};
  constexpr uint8_t kA = 1, kB = 2, kStart = 8, kRight = 128;
  Machine m = power_on(*game.cart);
  for (int frame = 0; frame < 1400; ++frame) {
    const bool start = frame >= 60 && frame < 70;
    const bool jump = frame > 300 && frame % 48 < 30;
    m.buttons[0] = static_cast<uint8_t>(start ? kStart : kB | kRight | (jump ? kA : 0));
    run_frame(m, *game.cart);
    if (frame > 300 && frame % 17 == 0) game.machines.push_back(m);
  }
  return game;
}

Game invent() {
  std::mt19937 dice(1);
  std::vector<uint8_t> rom(16 + 0x8000 + 0x2000);
  const uint8_t header[7] = {'N', 'E', 'S', 0x1A, 2, 1, 1};
  std::copy(std::begin(header), std::end(header), rom.begin());
  for (size_t i = 16; i < rom.size(); ++i) rom[i] = static_cast<uint8_t>(dice());
  Game game{parse_ines(rom), {}};
  for (int n = 0; n < 64; ++n) {
    Machine m{};
    for (auto& byte : m.vram) byte = static_cast<uint8_t>(dice());
    for (auto& byte : m.palette) byte = dice() & 0x3F;
    for (int i = 0; i < 256; ++i) {
      m.oam[i] = static_cast<uint8_t>(i % 4 == 0 && i >= 80 ? 0xF8u : dice() % 240);
    }
    m.picture = {.v = 0, .t = 0, .fine_x = 0, .latch = 0, .ctrl = 0x90, .mask = 0x1E};
    m.raster_count = 3;
    const int32_t dot = line_start(m, 31) + 200;
    m.raster[0] = {dot, 5, static_cast<uint8_t>(dice())};
    m.raster[1] = {dot + 12, 5, 0};
    m.raster[2] = {dot + 24, 0, 0x90};
    game.machines.push_back(m);
  }
  return game;
}

/// CPU time of this thread: what other programs take does not count.
double cpu_nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Median over short batches of the time for one call.
template <class F>
double nanoseconds(size_t calls, F&& batch) {
  std::vector<double> times;
  for (int i = 0; i < kBatches; ++i) {
    const double start = cpu_nanoseconds();
    batch();
    times.push_back((cpu_nanoseconds() - start) / static_cast<double>(calls));
  }
  std::nth_element(times.begin(), times.begin() + kBatches / 2, times.end());
  return times[kBatches / 2];
}

void report(const Game& game, Simd level) {
  constexpr size_t kRepeat = 1;
  const size_t calls = game.machines.size() * kRepeat;
  const auto picture = std::make_unique<Picture>();
  const auto every_machine = [&](auto&& f) {
    return nanoseconds(calls, [&] {
      for (size_t i = 0; i < calls; ++i) f(game.machines[i % game.machines.size()]);
    });
  };
  std::printf("%-9s draw %7.0f ns\n", simd_name(level),
              every_machine([&](const Machine& m) { draw(m, *game.cart, *picture, level); }));
  const struct {
    const char* name;
    ObserveSpec spec;
  } specs[] = {{"84x84 gray", {}},
               {"84x84 gray, mask 32", {.mask_top = 32}},
               {"84x84 gray, crop 32", {.crop_top = 32}},
               {"64x64 gray", {.height = 64, .width = 64}},
               {"42x42 gray", {.height = 42, .width = 42}},
               {"96x96 gray", {.height = 96, .width = 96}},
               {"128x128 gray", {.height = 128, .width = 128}},
               {"84x84 RGB", {.kind = ObserveKind::kRgb}},
               {"84x84 gray nearest", {.resize = Resize::kNearest}}};
  for (const auto& [name, spec] : specs) {
    const ObservePlan plan(spec, level);
    std::vector<uint8_t> out(plan.size());
    uint8_t colors[32];
    const double alone = every_machine([&](const Machine& m) {
      palette_colors(m, colors);
      observe(plan, *picture, colors, out.data());
    });
    const double both = every_machine(
        [&](const Machine& m) { observe_machine(plan, m, *game.cart, *picture, out.data()); });
    std::printf("%-9s %-20s observe %7.0f ns, draw + observe %7.0f ns\n", simd_name(level), name,
                alone, both);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Game game = argc > 1 ? play(argv[1]) : invent();
  for (const Simd level : simd_levels()) report(game, level);
  return 0;
}
