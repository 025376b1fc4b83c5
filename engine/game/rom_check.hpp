#pragma once

#include "nes/cartridge.hpp"

namespace wz {

/// Throws std::invalid_argument with one sentence when the cartridge is not Super Mario Bros.
/// Looks at code that all revisions share, so that none has to be listed.
void require_super_mario_bros(const Cartridge& cart);

}  // namespace wz
