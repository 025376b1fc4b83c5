#include "vec/screen.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "nes/palette.hpp"

namespace wz {
namespace {

constexpr int kMaxScreen = 4096;

struct Window {
  int top, left, height, width;
  int black;  ///< lines of it that are masked
};

Window window_of(const ObserveSpec& spec, const Screen& screen) {
  const auto rows = [&](int lines) { return lines * screen.height / kHeight; };
  const auto columns = [&](int pixels) { return pixels * screen.width / kWidth; };
  const int top = rows(spec.crop_top), left = columns(spec.crop_left);
  return {top, left, screen.height - top - rows(spec.crop_bottom),
          screen.width - left - columns(spec.crop_right), std::max(0, rows(spec.mask_top) - top)};
}

/// One channel of a pixel, or its brightness; a gray screen has the same in all channels.
uint8_t value_of(const uint8_t* pixel, int channels, bool gray_wanted, int channel) {
  if (channels == 1) return pixel[0];
  return gray_wanted ? gray({pixel[0], pixel[1], pixel[2]}) : pixel[channel];
}

void cut_out(const ObserveSpec& spec, const Screen& screen, const Window& window, int channel,
             bool brighten, uint8_t* out) {
  for (int y = 0; y < window.height; ++y) {
    const uint8_t* pixel =
        screen.pixels +
        (static_cast<ptrdiff_t>(window.top + y) * screen.width + window.left) * screen.channels;
    for (int x = 0; x < window.width; ++x, ++out, pixel += screen.channels) {
      const uint8_t value =
          y < window.black ? uint8_t{0} : value_of(pixel, screen.channels, spec.gray(), channel);
      *out = brighten ? std::max(*out, value) : value;
    }
  }
}

}  // namespace

void resize_plane(const ObservePlan& plan, const uint8_t* image, int height, int width,
                  uint8_t* out) {
  const ObserveSpec& spec = plan.spec();
  if (height == spec.height && width == spec.width) {
    std::memcpy(out, image, static_cast<size_t>(height) * static_cast<size_t>(width));
  } else if (spec.resize == Resize::kArea) {
    resize_area(image, height, width, out, spec.height, spec.width, plan.level());
  } else {
    for (int y = 0; y < spec.height; ++y) {
      const uint8_t* row =
          image + static_cast<ptrdiff_t>(nearest_pixel(y, height, spec.height)) * width;
      for (int x = 0; x < spec.width; ++x) *out++ = row[nearest_pixel(x, width, spec.width)];
    }
  }
}

void observe_screen(const ObservePlan& plan, const Screen& screen, const Screen* previous,
                    uint8_t* out) {
  const ObserveSpec& spec = plan.spec();
  if (!spec.is_picture()) throw std::invalid_argument("a screen is observed as a picture");
  const auto fits = [](int length) { return length >= 1 && length <= kMaxScreen; };
  if (!fits(screen.height) || !fits(screen.width)) {
    throw std::invalid_argument("the screen is " + std::to_string(screen.height) + " x " +
                                std::to_string(screen.width) + "; expected 1 to " +
                                std::to_string(kMaxScreen) + " each way");
  }
  const Window window = window_of(spec, screen);
  const size_t size = static_cast<size_t>(spec.height) * static_cast<size_t>(spec.width);
  std::vector<uint8_t> image(static_cast<size_t>(window.height) *
                             static_cast<size_t>(window.width));
  std::vector<uint8_t> plane(size);
  const auto channels = static_cast<size_t>(plan.channels());
  for (size_t c = 0; c < channels; ++c) {
    cut_out(spec, screen, window, static_cast<int>(c), false, image.data());
    if (previous) cut_out(spec, *previous, window, static_cast<int>(c), true, image.data());
    resize_plane(plan, image.data(), window.height, window.width, plane.data());
    const bool apart = spec.kind == ObserveKind::kPlanar;
    for (size_t i = 0; i < size; ++i) out[apart ? c * size + i : i * channels + c] = plane[i];
  }
}

}  // namespace wz
