#pragma once

#include <cstdint>
#include <vector>

#include "nespy/nespy.hpp"
#include "vec/observe.hpp"

/// Pictures of either kind of machine. A NES machine is drawn on demand; nes-py's has
/// its screen already, in nes-py's colours.
namespace wz {

/// Working memory for one thread, used by whichever lane it is busy with.
struct VblankScratch {
  Machine previous;  ///< one frame ago, for max_last_two
  Picture picture;
  Picture previous_picture;
  std::vector<uint8_t> interleaved;
};

struct NesPyScratch {
  nespy::Machine previous;
  std::vector<uint8_t> image;  ///< gray or RGB, cut out of the screen
  std::vector<uint8_t> plane;
  std::vector<uint8_t> resized;
  std::vector<uint8_t> interleaved;
};

void observe_state(const ObservePlan& plan, const Machine& m, const Cartridge& cart,
                   VblankScratch& scratch, uint8_t* out);
void observe_state(const ObservePlan& plan, const nespy::Machine& m, const Cartridge& cart,
                   NesPyScratch& scratch, uint8_t* out);

/// The brighter pixels of `m` and `scratch.previous`.
void observe_state_max(const ObservePlan& plan, const Machine& m, const Cartridge& cart,
                       VblankScratch& scratch, uint8_t* out);
void observe_state_max(const ObservePlan& plan, const nespy::Machine& m, const Cartridge& cart,
                       NesPyScratch& scratch, uint8_t* out);

/// 240 x 256 x 3 RGB.
void screen_of(const Machine& m, const Cartridge& cart, Picture& picture, uint8_t* out);
void screen_of(const nespy::Machine& m, uint8_t* out);

}  // namespace wz
