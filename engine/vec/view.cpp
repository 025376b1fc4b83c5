#include "vec/view.hpp"

#include <algorithm>
#include <cstring>

#include "vec/screen.hpp"
#include "vec/tiles.hpp"

namespace wz {
namespace {

struct Window {
  int top, left, height, width;
};

Window window_of(const ObserveSpec& spec) {
  return {spec.crop_top, spec.crop_left, nespy::kScreenHeight - spec.crop_top - spec.crop_bottom,
          nespy::kScreenWidth - spec.crop_left - spec.crop_right};
}

/// What the crop leaves of the screen, masked, as interleaved channels; `brighten` keeps the
/// larger of the new value and the one that is there.
void cut_out(const ObserveSpec& spec, const nespy::Machine& m, std::vector<uint8_t>& image,
             bool brighten) {
  const Window window = window_of(spec);
  const int channels = spec.channels();
  image.resize(static_cast<size_t>(window.height) * static_cast<size_t>(window.width) *
               static_cast<size_t>(channels));
  uint8_t* out = image.data();
  for (int y = 0; y < window.height; ++y) {
    const bool masked = window.top + y < spec.mask_top;
    const uint8_t* row = m.screen + (window.top + y) * nespy::kScreenWidth + window.left;
    for (int x = 0; x < window.width; ++x) {
      const size_t color = masked ? kBlack : row[x] & 0x3F;
      const auto [red, green, blue] = kPalette[color];
      const uint8_t values[3] = {spec.gray() ? kGrayPalette[color] : red, green, blue};
      for (int c = 0; c < channels; ++c, ++out) {
        *out = brighten ? std::max(*out, values[c]) : values[c];
      }
    }
  }
}

void resize_image(const ObservePlan& plan, NesPyScratch& scratch, uint8_t* out) {
  const ObserveSpec& spec = plan.spec();
  const Window window = window_of(spec);
  const size_t channels = static_cast<size_t>(plan.channels());
  const size_t pixels = static_cast<size_t>(window.height) * static_cast<size_t>(window.width);
  const size_t size = static_cast<size_t>(spec.height) * static_cast<size_t>(spec.width);
  scratch.plane.resize(pixels);
  scratch.resized.resize(size);
  for (size_t c = 0; c < channels; ++c) {
    for (size_t i = 0; i < pixels; ++i) scratch.plane[i] = scratch.image[i * channels + c];
    resize_plane(plan, scratch.plane.data(), window.height, window.width, scratch.resized.data());
    for (size_t i = 0; i < size; ++i) out[i * channels + c] = scratch.resized[i];
  }
}

void observe_picture(const ObservePlan& plan, const Machine& m, const Cartridge& cart,
                     VblankScratch& scratch, uint8_t* out) {
  observe_machine(plan, m, cart, scratch.picture, out);
}

void observe_brighter(const ObservePlan& plan, const Machine& m, const Cartridge& cart,
                      VblankScratch& scratch, uint8_t* out) {
  uint8_t colors[32];
  uint8_t previous_colors[32];
  draw(scratch.previous, cart, scratch.previous_picture);
  palette_colors(scratch.previous, previous_colors);
  draw(m, cart, scratch.picture);
  palette_colors(m, colors);
  observe_max(plan, scratch.previous_picture, previous_colors, scratch.picture, colors, out);
}

void observe_picture(const ObservePlan& plan, const nespy::Machine& m, const Cartridge&,
                     NesPyScratch& scratch, uint8_t* out) {
  cut_out(plan.spec(), m, scratch.image, false);
  resize_image(plan, scratch, out);
}

void observe_brighter(const ObservePlan& plan, const nespy::Machine& m, const Cartridge&,
                      NesPyScratch& scratch, uint8_t* out) {
  cut_out(plan.spec(), scratch.previous, scratch.image, false);
  cut_out(plan.spec(), m, scratch.image, true);
  resize_image(plan, scratch, out);
}

/// Any kind of observation, by what the spec asks for.
template <class M, class Scratch>
void observe_any(const ObservePlan& plan, const M& m, const Cartridge& cart, Scratch& scratch,
                 bool brighter, uint8_t* out) {
  const ObserveSpec& spec = plan.spec();
  if (spec.kind == ObserveKind::kTiles) return observe_tiles(m.ram, out);
  if (spec.kind == ObserveKind::kRam) {
    std::memcpy(out, m.ram, sizeof m.ram);
    return;
  }
  uint8_t* target = out;
  const bool split = spec.kind == ObserveKind::kPlanar;
  if (split) {
    scratch.interleaved.resize(plan.size());
    target = scratch.interleaved.data();
  }
  if (brighter) {
    observe_brighter(plan, m, cart, scratch, target);
  } else {
    observe_picture(plan, m, cart, scratch, target);
  }
  if (!split) return;
  const size_t pixels = plan.size() / 3;
  for (size_t i = 0; i < pixels; ++i) {
    for (size_t c = 0; c < 3; ++c) out[c * pixels + i] = target[3 * i + c];
  }
}

}  // namespace

void observe_state(const ObservePlan& plan, const Machine& m, const Cartridge& cart,
                   VblankScratch& scratch, uint8_t* out) {
  observe_any(plan, m, cart, scratch, false, out);
}

void observe_state_max(const ObservePlan& plan, const Machine& m, const Cartridge& cart,
                       VblankScratch& scratch, uint8_t* out) {
  observe_any(plan, m, cart, scratch, true, out);
}

void observe_state(const ObservePlan& plan, const nespy::Machine& m, const Cartridge& cart,
                   NesPyScratch& scratch, uint8_t* out) {
  observe_any(plan, m, cart, scratch, false, out);
}

void observe_state_max(const ObservePlan& plan, const nespy::Machine& m, const Cartridge& cart,
                       NesPyScratch& scratch, uint8_t* out) {
  observe_any(plan, m, cart, scratch, true, out);
}

void screen_of(const Machine& m, const Cartridge& cart, Picture& picture, uint8_t* out) {
  uint8_t colors[32];
  draw(m, cart, picture);
  palette_colors(m, colors);
  screen_rgb(picture, colors, out);
}

void screen_of(const nespy::Machine& m, uint8_t* out) {
  for (const uint8_t color : m.screen) {
    const auto [red, green, blue] = kPalette[color & 0x3F];
    *out++ = red;
    *out++ = green;
    *out++ = blue;
  }
}

}  // namespace wz
