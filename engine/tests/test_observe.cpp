#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "nes/palette.hpp"
#include "random_machine.hpp"
#include "vec/observe.hpp"
#include "vec/observe_tables.hpp"

namespace {

using namespace wz;

std::mt19937 dice(3);
int below(int n) { return static_cast<int>(dice() % static_cast<uint32_t>(n)); }

/// Length of the part that [a, a + n) and [b, b + m) share.
int64_t overlap(int64_t a, int64_t n, int64_t b, int64_t m) {
  return std::max<int64_t>(0, std::min(a + n, b + m) - std::max(a, b));
}

/// The mean of the area under an output pixel, from the definition, rounded half up.
uint8_t area_pixel(const std::vector<uint8_t>& image, int h, int w, int oh, int ow, int y, int x) {
  int64_t sum = 0;
  for (int i = 0; i < h; ++i) {
    const int64_t rows = overlap(int64_t{y} * h, h, int64_t{i} * oh, oh);
    for (int j = 0; rows && j < w; ++j) {
      sum += rows * overlap(int64_t{x} * w, w, int64_t{j} * ow, ow) *
             image[static_cast<size_t>(i * w + j)];
    }
  }
  const int64_t total = int64_t{h} * w;
  return static_cast<uint8_t>((2 * sum + total) / (2 * total));
}

int nearest(int out, int source, int output) {
  return static_cast<int>(out * (1.0 / (static_cast<double>(output) / source)));
}

struct Pictures {
  Picture picture[2];
  uint8_t colors[2][32];
};

std::unique_ptr<Pictures> random_pictures() {
  auto result = std::make_unique<Pictures>();
  for (int n = 0; n < 2; ++n) {
    std::memset(&result->picture[n], 0xEE, sizeof(Picture));
    const int bright = below(3);
    for (int i = 0; i < 32; ++i) {
      // White and black only, now and then: the largest sums there are.
      result->colors[n][i] = static_cast<uint8_t>(bright == 0 ? 0x30 : below(64));
    }
    for (int y = 0; y < kHeight; ++y) {
      const int shift = below(8);
      result->picture[n].shift[y] = static_cast<uint8_t>(shift);
      for (int x = 0; x < kWidth; ++x) {
        result->picture[n].rows[y][shift + x] = static_cast<uint8_t>(below(32));
      }
    }
  }
  return result;
}

uint8_t channel_of(uint8_t color, bool gray, int channel) {
  const Rgb rgb = kPalette[color];
  if (gray)
    return static_cast<uint8_t>((rgb.r * 9798 + rgb.g * 19235 + rgb.b * 3735 + 16384) >> 15);
  return channel == 0 ? rgb.r : channel == 1 ? rgb.g : rgb.b;
}

std::vector<uint8_t> expected(const ObserveSpec& spec, const Pictures& p, int count) {
  const int h = kHeight - spec.crop_top - spec.crop_bottom;
  const int w = kWidth - spec.crop_left - spec.crop_right;
  const int channels = spec.channels();
  std::vector<uint8_t> out(static_cast<size_t>(spec.height * spec.width * channels));
  std::vector<uint8_t> image(static_cast<size_t>(h * w));
  for (int c = 0; c < channels; ++c) {
    for (int y = 0; y < h; ++y) {
      for (int x = 0; x < w; ++x) {
        uint8_t value = 0;
        for (int n = 0; n < count && spec.crop_top + y >= spec.mask_top; ++n) {
          const uint8_t index = p.picture[n].line(spec.crop_top + y)[spec.crop_left + x];
          value = std::max(value, channel_of(p.colors[n][index], spec.gray(), c));
        }
        image[static_cast<size_t>(y * w + x)] = value;
      }
    }
    for (int y = 0; y < spec.height; ++y) {
      for (int x = 0; x < spec.width; ++x) {
        out[static_cast<size_t>((y * spec.width + x) * channels + c)] =
            spec.resize == Resize::kArea
                ? area_pixel(image, h, w, spec.height, spec.width, y, x)
                : image[static_cast<size_t>(nearest(y, h, spec.height) * w +
                                            nearest(x, w, spec.width))];
      }
    }
  }
  return out;
}

void check_agrees(const ObserveSpec& spec, const Pictures& p) {
  for (int count = 1; count <= 2; ++count) {
    const std::vector<uint8_t> want = expected(spec, p, count);
    for (const Simd level : simd_levels()) {
      const ObservePlan plan(spec, level);
      // A byte more than needed, to see that nothing is written past the end.
      std::vector<uint8_t> got(plan.size() + 1, 0xAB);
      if (count == 1) {
        observe(plan, p.picture[0], p.colors[0], got.data());
      } else {
        observe_max(plan, p.picture[0], p.colors[0], p.picture[1], p.colors[1], got.data());
      }
      CHECK_EQ(got.back(), 0xAB);
      size_t i = 0;
      while (i < want.size() && want[i] == got[i]) ++i;
      if (CHECK(i == want.size())) continue;
      std::printf(
          "  %s, %d picture(s), %dx%d gray %d crop %d %d %d %d mask %d resize %d: byte %zu\n",
          simd_name(level), count, spec.height, spec.width, spec.gray(), spec.crop_top,
          spec.crop_bottom, spec.crop_left, spec.crop_right, spec.mask_top,
          static_cast<int>(spec.resize), i);
    }
  }
}

void test_usual_specs() {
  const auto pictures = random_pictures();
  for (const int size : {84, 64, 42, 96, 128, 32}) {
    check_agrees({.height = size, .width = size}, *pictures);
    check_agrees({.height = size, .width = size, .mask_top = 32}, *pictures);
    check_agrees({.height = size, .width = size, .crop_top = 32}, *pictures);
  }
  check_agrees({.kind = ObserveKind::kRgb}, *pictures);
  check_agrees({.height = 240, .width = 256}, *pictures);
  check_agrees({.kind = ObserveKind::kRgb, .height = 240, .width = 256, .resize = Resize::kNearest},
               *pictures);
}

void test_random_specs() {
  for (int round = 0; round < 60; ++round) {
    ObserveSpec spec;
    spec.height = 1 + below(round % 4 ? 120 : 300);
    spec.width = 1 + below(round % 4 ? 120 : 300);
    if (below(4) == 0) spec.kind = ObserveKind::kRgb;
    if (below(2)) {
      spec.crop_top = below(120);
      spec.crop_bottom = below(120);
      spec.crop_left = below(128);
      spec.crop_right = below(128);
    }
    if (below(2)) spec.mask_top = below(241);
    if (below(4) == 0) spec.resize = Resize::kNearest;
    check_agrees(spec, *random_pictures());
  }
}

void test_resize_area() {
  for (int round = 0; round < 20; ++round) {
    const int h = 1 + below(240), w = 1 + below(256), oh = 1 + below(h), ow = 1 + below(w);
    std::vector<uint8_t> image(static_cast<size_t>(h * w));
    for (auto& pixel : image) pixel = below(3) ? static_cast<uint8_t>(below(256)) : uint8_t{255};
    for (const Simd level : simd_levels()) {
      std::vector<uint8_t> out(static_cast<size_t>(oh * ow));
      resize_area(image.data(), h, w, out.data(), oh, ow, level);
      int same = 0;
      while (same < oh * ow && out[static_cast<size_t>(same)] ==
                                   area_pixel(image, h, w, oh, ow, same / ow, same % ow)) {
        ++same;
      }
      if (CHECK(same == oh * ow)) continue;
      std::printf("  %s: resize_area %dx%d to %dx%d, pixel %d %d\n", simd_name(level), h, w, oh, ow,
                  same / ow, same % ow);
    }
  }
}

/// The division by multiplication against the real one, for every sum of every total it claims.
void test_division() {
  const auto divide = [](const observing::Division& d, uint64_t n) {
    return (static_cast<uint32_t>(n) >> d.before) * d.factor >> 16 >> d.after;
  };
  for (uint32_t total = 1; total <= 61440; total += total < 4096 ? 1 : 127) {
    const observing::Division d(total);
    if (!d.exact) continue;
    bool right = true;
    for (uint64_t n = total / 2; n <= 255u * total + total / 2; n += 1 + total / 64) {
      const uint64_t n2 = std::max<uint64_t>(n / total * total, 1) - 1;  // just below a step
      for (const uint64_t i : {n, n2}) {
        right = right && divide(d, i) == i / total;
      }
    }
    if (!CHECK(right)) std::printf("  divided by %u\n", total);
  }
  const observing::Division d(1280);
  uint32_t n = 0;
  while (n <= 255 * 1280 + 640 && divide(d, n) == n / 1280) ++n;
  CHECK_EQ(n, 255 * 1280 + 640 + 1);
  CHECK(d.exact);
  CHECK(observing::Division(3328).exact);
  CHECK(observing::Division(5120).exact);
}

void test_refusals() {
  const ObserveSpec bad[] = {{.height = 0},       {.width = -1},
                             {.crop_top = 240},   {.crop_left = 200, .crop_right = 56},
                             {.crop_bottom = -1}, {.mask_top = 241},
                             {.height = 1000000}};
  for (const ObserveSpec& spec : bad) CHECK_THROWS(std::invalid_argument, ObservePlan plan(spec));
}

/// Observing while drawing gives what drawing first gives.
void test_machines() {
  slow::Dice machines(5);
  const auto picture = std::make_unique<Picture>();
  for (int round = 0; round < 80; ++round) {
    const CartridgePtr cart = slow::random_cartridge(machines, round % 2 == 0);
    const Machine m = slow::random_machine(machines, round % 3 ? 1 + below(kMaxRasterWrites) : 0);
    ObserveSpec spec;
    if (round % 4) spec.height = spec.width = 12 + below(120);
    if (round % 5 > 2) spec.crop_top = below(150);
    if (round % 7 > 3) spec.mask_top = below(241);
    if (round % 6 == 0) spec.kind = ObserveKind::kRgb;
    for (const Simd level : simd_levels()) {
      const ObservePlan plan(spec, level);
      std::vector<uint8_t> want(plan.size()), got(plan.size() + 1, 0xAB);
      uint8_t colors[32];
      draw(m, *cart, *picture, level);
      palette_colors(m, colors);
      observe(plan, *picture, colors, want.data());
      observe_machine(plan, m, *cart, *picture, got.data());
      CHECK_EQ(got.back(), 0xAB);
      if (CHECK(std::equal(want.begin(), want.end(), got.begin()))) continue;
      std::printf("  %s: round %d differs\n", simd_name(level), round);
    }
  }
}

void test_screen() {
  const auto p = random_pictures();
  std::vector<uint8_t> rgb(kHeight * kWidth * 3), colors(kHeight * kWidth);
  screen_rgb(p->picture[0], p->colors[0], rgb.data());
  screen_colors(p->picture[0], p->colors[0], colors.data());
  size_t right = 0;
  for (size_t i = 0; i < colors.size(); ++i) {
    const size_t y = i / kWidth, x = i % kWidth;
    const uint8_t color = p->colors[0][p->picture[0].line(static_cast<int>(y))[x]];
    right += colors[i] == color && rgb[3 * i] == kPalette[color].r &&
             rgb[3 * i + 1] == kPalette[color].g && rgb[3 * i + 2] == kPalette[color].b;
  }
  CHECK_EQ(right, colors.size());
}

void test_kinds() {
  const struct {
    ObserveKind kind;
    std::vector<int> shape;
  } kinds[] = {{ObserveKind::kGray, {60, 80}},
               {ObserveKind::kRgb, {60, 80, 3}},
               {ObserveKind::kPlanar, {180, 80}},
               {ObserveKind::kTiles, {13, 16}},
               {ObserveKind::kRam, {1, 2048}}};
  for (const auto& [kind, shape] : kinds) {
    const ObserveSpec spec{.kind = kind, .height = 60, .width = 80};
    CHECK(spec.shape() == shape);
    size_t size = 1;
    for (const int length : shape) size *= static_cast<size_t>(length);
    CHECK_EQ(ObservePlan(spec).size(), size);
  }
  CHECK_THROWS(std::invalid_argument, ObserveSpec{.kind = ObserveKind{5}}.shape());
}

}  // namespace

int main() {
  test_usual_specs();
  test_random_specs();
  test_resize_area();
  test_division();
  test_machines();
  test_refusals();
  test_screen();
  test_kinds();
  return check::finish();
}
