#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nes/cartridge.hpp"

namespace wz::native {

/// A program as machine code for x86-64. It holds no addresses, so it runs wherever it lies.
struct MachineCode {
  std::vector<uint8_t> bytes;
  /// Where `NativeCode::run` begins.
  size_t run = 0;
  /// As in `NativeCode`.
  std::vector<uint8_t> entry;
  int32_t slack = 0;
};

MachineCode emit(const Cartridge& cart);

}  // namespace wz::native
