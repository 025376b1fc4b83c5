#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "nes/cartridge.hpp"
#include "nes/machine.hpp"
#include "nes/render.hpp"
#include "nes/simd.hpp"

namespace wz {

/// What an observation holds, and how it is laid out.
enum class ObserveKind : uint8_t {
  kGray,    ///< the picture in shades of gray, [height, width]
  kRgb,     ///< the picture in colours, [height, width, 3]
  kPlanar,  ///< its red, green and blue pictures, one below the other: [3 * height, width]
  kTiles,   ///< the tile grid around Mario (vec/tiles.hpp), [kTileRows, kTileColumns]
  kRam,     ///< the machine's RAM as it is, [1, 2048]
};

enum class Resize : uint8_t { kArea, kNearest };

/// What an observation looks like. All but `kind` is about pictures. Cropping removes pixels of the
/// 256x240 screen; `mask_top` lines of the screen (counted before cropping) are painted black; what
/// is left is resized.
///
/// Area resize is exact: every output pixel is the mean of the screen area it covers, computed with
/// integer weights and rounded half up. Where the output is as large as the source or larger, the
/// same rule holds: an output pixel inside one source pixel copies it.
/// Nearest takes the source pixel that OpenCV's INTER_NEAREST takes.
struct ObserveSpec {
  ObserveKind kind = ObserveKind::kGray;
  int height = 84;
  int width = 84;
  int crop_top = 0;
  int crop_bottom = 0;
  int crop_left = 0;
  int crop_right = 0;
  int mask_top = 0;
  Resize resize = Resize::kArea;

  bool is_picture() const { return kind <= ObserveKind::kPlanar; }
  bool gray() const { return kind == ObserveKind::kGray; }
  /// Values of a pixel.
  int channels() const { return gray() ? 1 : 3; }
  /// Of one observation, frames not yet stacked.
  std::vector<int> shape() const;
};

/// Everything about a spec that can be computed before the first picture. Immutable, shared by any
/// number of threads.
class ObservePlan {
 public:
  /// Throws std::invalid_argument with one sentence when the spec makes no sense.
  explicit ObservePlan(const ObserveSpec& spec, Simd level = best_simd());
  ~ObservePlan();
  ObservePlan(const ObservePlan&) = delete;
  ObservePlan& operator=(const ObservePlan&) = delete;

  const ObserveSpec& spec() const { return spec_; }
  Simd level() const { return level_; }
  int channels() const { return spec_.channels(); }
  /// Bytes of one observation.
  size_t size() const { return size_; }

  struct Tables;
  const Tables& tables() const { return *tables_; }

 private:
  ObserveSpec spec_;
  Simd level_;
  size_t size_;
  std::unique_ptr<const Tables> tables_;
};

/// Writes the observation of one picture; `colors` comes from `palette_colors`.
void observe(const ObservePlan& plan, const Picture& picture, const uint8_t colors[32],
             uint8_t* out);

/// The same after taking the brighter of two pictures, pixel by pixel and channel by channel.
void observe_max(const ObservePlan& plan, const Picture& first, const uint8_t first_colors[32],
                 const Picture& second, const uint8_t second_colors[32], uint8_t* out);

/// Draws the frame the machine has just run and observes it, which is faster in one go. `scratch`
/// is used where that is not possible; what it holds afterwards means nothing.
void observe_machine(const ObservePlan& plan, const Machine& m, const Cartridge& cart,
                     Picture& scratch, uint8_t* out);

/// The whole screen, 240 x 256 x 3 RGB.
void screen_rgb(const Picture& picture, const uint8_t colors[32], uint8_t* out);

/// The whole screen as NES colours 0..63, 240 x 256.
void screen_colors(const Picture& picture, const uint8_t colors[32], uint8_t* out);

/// The source pixel behind output pixel `out` of a nearest resize in one direction.
int nearest_pixel(int out, int source, int output);

/// Area resize of any gray image, at most 256 wide and 240 high, by the rule of observations.
/// Throws std::invalid_argument for other sizes.
void resize_area(const uint8_t* image, int source_height, int source_width, uint8_t* out,
                 int height, int width, Simd level);

}  // namespace wz
