#pragma once

#include <cstdint>

#include "vec/observe.hpp"

/// Pictures that were drawn elsewhere, observed as the engine observes its own.
namespace wz {

/// Gray, or RGB with the channels last. A screen may be smaller than the NES': what a spec crops
/// and masks is then smaller in proportion.
struct Screen {
  const uint8_t* pixels;
  int height;
  int width;
  int channels;  ///< 1 or 3
};

/// Writes the observation of a screen, or of the brighter of two of the same size (`previous` may
/// be null). Throws std::invalid_argument where the spec is not about pictures or makes no sense.
void observe_screen(const ObservePlan& plan, const Screen& screen, const Screen* previous,
                    uint8_t* out);

/// Resizes one gray image as the plan says.
void resize_plane(const ObservePlan& plan, const uint8_t* image, int height, int width,
                  uint8_t* out);

}  // namespace wz
