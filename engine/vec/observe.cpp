#include "vec/observe.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "game/ram_map.hpp"
#include "nes/palette.hpp"
#include "nes/render_painter.hpp"
#include "vec/observe_tables.hpp"
#include "vec/tiles.hpp"

namespace wz {

using observing::AreaPlan;
using observing::Lines;
using observing::Source;
using observing::Target;

/// Either an area plan or the source pixel of every output pixel; neither where no picture is seen.
struct ObservePlan::Tables {
  std::optional<AreaPlan> area;
  std::vector<int> nearest_rows;
  std::vector<int> nearest_columns;
};

namespace {

constexpr int kMaxSize = 1024;

void check(const ObserveSpec& spec) {
  if (!spec.is_picture()) return;
  if (spec.height < 1 || spec.width < 1 || spec.height > kMaxSize || spec.width > kMaxSize) {
    throw std::invalid_argument("observation size is " + std::to_string(spec.height) + " x " +
                                std::to_string(spec.width) + "; expected 1 to 1024 each way");
  }
  if (spec.crop_top < 0 || spec.crop_bottom < 0 || spec.crop_left < 0 || spec.crop_right < 0) {
    throw std::invalid_argument("crop must not be negative");
  }
  if (spec.crop_top >= kHeight || spec.crop_bottom >= kHeight - spec.crop_top ||
      spec.crop_left >= kWidth || spec.crop_right >= kWidth - spec.crop_left) {
    throw std::invalid_argument("crop leaves nothing of the 256 x 240 screen");
  }
  if (spec.mask_top < 0 || spec.mask_top > kHeight) {
    throw std::invalid_argument("mask_top is " + std::to_string(spec.mask_top) +
                                "; expected 0 to 240 lines");
  }
}

std::vector<int> nearest(int source, int output) {
  std::vector<int> from(static_cast<size_t>(output));
  for (int i = 0; i < output; ++i) from[static_cast<size_t>(i)] = nearest_pixel(i, source, output);
  return from;
}

void resize(const AreaPlan& plan, const Source& source, const Target& target) {
#if defined(__x86_64__)
  if (!plan.picks512.empty()) return area_avx512(plan, source, target);
  if (!plan.picks256.empty()) return area_avx2(plan, source, target);
#elif defined(__aarch64__)
  if (!plan.picks256.empty()) return area_neon(plan, source, target);
#endif
  area_portable(plan, source, target);
}

Lines lines_of(const Picture& picture) { return {picture.rows[0], picture.shift, 0}; }

/// Brightness of each palette-RAM index in one channel; entries past 31 are never looked up.
struct Lut {
  alignas(64) uint8_t entries[64];

  Lut(const uint8_t colors[32], bool gray, int channel) {
    for (int i = 0; i < 32; ++i) {
      const size_t color = colors[i] & 0x3F;
      const Rgb rgb = kPalette[color];
      entries[i] = gray ? kGrayPalette[color] : channel == 0 ? rgb.r : channel == 1 ? rgb.g : rgb.b;
    }
    std::memset(entries + 32, 0, 32);
  }
};

struct Frame {
  const Picture* picture;
  const uint8_t* colors;
};

void observe_area(const ObservePlan& plan, const Frame* frames, int count, uint8_t* out) {
  const AreaPlan& area = *plan.tables().area;
  const size_t size = plan.size() / static_cast<size_t>(plan.channels());
  std::vector<uint8_t> planes(plan.spec().gray() ? 0 : plan.size());
  for (int channel = 0; channel < plan.channels(); ++channel) {
    const Lut first(frames[0].colors, plan.spec().gray(), channel);
    const Lut second(frames[count - 1].colors, plan.spec().gray(), channel);
    Source source{.lines = {lines_of(*frames[0].picture), {}}, .lut = {first.entries, nullptr}};
    if (count == 2) {
      source.lines[1] = lines_of(*frames[1].picture);
      source.lut[1] = second.entries;
    }
    uint8_t* const plane = planes.data() + static_cast<size_t>(channel) * size;
    resize(area, source, {0, plan.spec().height, planes.empty() ? out : plane});
  }
  for (size_t i = 0; i < size && !planes.empty(); ++i, out += 3) {
    for (size_t channel = 0; channel < 3; ++channel) out[channel] = planes[channel * size + i];
  }
}

/// Lines drawn at a time where a picture is observed while it is drawn: few enough to stay in the
/// fastest cache.
constexpr int kStripLines = 80;
constexpr int kMostTapsInStrip = 60;

void observe_strips(const AreaPlan& area, const Machine& m, const Cartridge& cart, Simd level,
                    const Lut& lut, uint8_t* out) {
  PictureLines<kStripLines> strip;
  render::Painter painter(m, cart, level);
  const observing::Axis& rows = area.rows;
  const int bottom = area.top + rows.source;
  int first = area.top + std::min(area.black_rows, rows.source);  // the line in the first row
  int next = first;                                               // the first line not drawn
  painter.skip_to(first);
  for (int done = 0; done < rows.output;) {
    // Ending between rows of tiles spares drawing a row of tiles twice.
    next = first + kStripLines >= bottom ? bottom : (first + kStripLines) / 8 * 8;
    painter.draw_to(next, {strip.rows[0], strip.shift, first});
    const auto complete = [&](int i) {
      return area.top + rows.first[static_cast<size_t>(i)] + rows.count[static_cast<size_t>(i)] <=
             next;
    };
    int ready = done;
    while (ready < rows.output && complete(ready)) ++ready;
    resize(area,
           {.lines = {{strip.rows[0], strip.shift, first}, {}}, .lut = {lut.entries, nullptr}},
           {done, ready, out});
    done = ready;
    if (done == rows.output) break;
    // Lines that the next output row still needs move to the top.
    const int keep = std::max(area.top + rows.first[static_cast<size_t>(done)], first);
    const size_t kept = static_cast<size_t>(next - keep);
    std::memmove(strip.rows[0], strip.rows[keep - first], kept * sizeof strip.rows[0]);
    std::memmove(strip.shift, strip.shift + (keep - first), kept);
    first = keep;
  }
}

void observe_nearest(const ObservePlan& plan, const Frame* frames, int count, uint8_t* out) {
  const ObserveSpec& spec = plan.spec();
  const ObservePlan::Tables& tables = plan.tables();
  for (int channel = 0; channel < plan.channels(); ++channel) {
    const Lut first(frames[0].colors, spec.gray(), channel);
    const Lut second(frames[count - 1].colors, spec.gray(), channel);
    uint8_t* to = out + channel;
    for (const int y : tables.nearest_rows) {
      const uint8_t* a = frames[0].picture->line(spec.crop_top + y) + spec.crop_left;
      const uint8_t* b = frames[count - 1].picture->line(spec.crop_top + y) + spec.crop_left;
      const bool black = spec.crop_top + y < spec.mask_top;
      for (const int x : tables.nearest_columns) {
        *to = black ? uint8_t{0} : std::max(first.entries[a[x]], second.entries[b[x]]);
        to += plan.channels();
      }
    }
  }
}

void observe_frames(const ObservePlan& plan, const Frame* frames, int count, uint8_t* out) {
  if (plan.tables().area) {
    observe_area(plan, frames, count, out);
  } else {
    observe_nearest(plan, frames, count, out);
  }
}

}  // namespace

std::vector<int> ObserveSpec::shape() const {
  switch (kind) {
    case ObserveKind::kGray:
      return {height, width};
    case ObserveKind::kRgb:
      return {height, width, 3};
    case ObserveKind::kPlanar:
      return {3 * height, width};
    case ObserveKind::kTiles:
      return {kTileRows, kTileColumns};
    case ObserveKind::kRam:
      return {1, ram::kSize};
  }
  throw std::invalid_argument("the kind of observation is unknown");
}

ObservePlan::ObservePlan(const ObserveSpec& spec, Simd level)
    : spec_(spec), level_(level), size_(1) {
  check(spec);
  for (const int length : spec.shape()) size_ *= static_cast<size_t>(length);
  const AreaPlan::Box box{.top = spec.crop_top,
                          .left = spec.crop_left,
                          .height = kHeight - spec.crop_top - spec.crop_bottom,
                          .width = kWidth - spec.crop_left - spec.crop_right};
  auto tables = std::make_unique<Tables>();
  if (!spec.is_picture()) {
    // What is seen is read from RAM.
  } else if (spec.resize == Resize::kArea) {
    tables->area.emplace(box, spec.mask_top - spec.crop_top, spec.height, spec.width, level);
  } else {
    tables->nearest_rows = nearest(box.height, spec.height);
    tables->nearest_columns = nearest(box.width, spec.width);
  }
  tables_ = std::move(tables);
}

ObservePlan::~ObservePlan() = default;

void observe(const ObservePlan& plan, const Picture& picture, const uint8_t colors[32],
             uint8_t* out) {
  const Frame frame{&picture, colors};
  observe_frames(plan, &frame, 1, out);
}

void observe_max(const ObservePlan& plan, const Picture& first, const uint8_t first_colors[32],
                 const Picture& second, const uint8_t second_colors[32], uint8_t* out) {
  const Frame frames[2] = {{&first, first_colors}, {&second, second_colors}};
  observe_frames(plan, frames, 2, out);
}

void observe_machine(const ObservePlan& plan, const Machine& m, const Cartridge& cart,
                     Picture& scratch, uint8_t* out) {
  uint8_t colors[32];
  palette_colors(m, colors);
  const std::optional<AreaPlan>& area = plan.tables().area;
  if (area && area->vectorised() && area->rows.taps <= kMostTapsInStrip && plan.spec().gray()) {
    observe_strips(*area, m, cart, plan.level(), Lut(colors, true, 0), out);
  } else {
    draw(m, cart, scratch, plan.level());
    observe(plan, scratch, colors, out);
  }
}

void screen_rgb(const Picture& picture, const uint8_t colors[32], uint8_t* out) {
  Rgb rgb[32];
  for (int i = 0; i < 32; ++i) rgb[i] = kPalette[colors[i] & 0x3F];
  for (int y = 0; y < kHeight; ++y) {
    const uint8_t* line = picture.line(y);
    for (int x = 0; x < kWidth; ++x, out += 3) std::memcpy(out, &rgb[line[x]], 3);
  }
}

void screen_colors(const Picture& picture, const uint8_t colors[32], uint8_t* out) {
  for (int y = 0; y < kHeight; ++y) {
    const uint8_t* line = picture.line(y);
    for (int x = 0; x < kWidth; ++x) *out++ = colors[line[x]] & 0x3F;
  }
}

int nearest_pixel(int out, int source, int output) {
  // In floating point like OpenCV, whose result is one pixel short of the quotient at times.
  const double scale = 1.0 / (static_cast<double>(output) / source);
  return std::min(static_cast<int>(out * scale), source - 1);
}

void resize_area(const uint8_t* image, int source_height, int source_width, uint8_t* out,
                 int height, int width, Simd level) {
  if (source_height < 1 || source_height > kHeight || source_width < 1 || source_width > kWidth) {
    throw std::invalid_argument("image is " + std::to_string(source_height) + " x " +
                                std::to_string(source_width) +
                                "; expected at least 1 x 1 and at most 240 x 256");
  }
  if (height < 1 || width < 1 || height > kMaxSize || width > kMaxSize) {
    throw std::invalid_argument("size is " + std::to_string(height) + " x " +
                                std::to_string(width) + "; expected 1 to 1024 each way");
  }
  const AreaPlan plan({0, 0, source_height, source_width}, 0, height, width, level);
  // Rows as wide as a picture's, so that reading past the image stays inside them.
  const auto picture = std::make_unique<Picture>();
  for (int y = 0; y < source_height; ++y) {
    std::memcpy(picture->rows[y], image + y * source_width, static_cast<size_t>(source_width));
  }
  resize(plan, {.lines = {lines_of(*picture), {}}, .lut = {nullptr, nullptr}}, {0, height, out});
}

}  // namespace wz
