#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "nes/cartridge.hpp"
#include "nes/console.hpp"
#include "nes/machine.hpp"

namespace wz {

/// The program left the official instruction set.
class IllegalOpcode : public std::runtime_error {
 public:
  IllegalOpcode(uint16_t at, uint8_t code);
  uint16_t address;
  uint8_t opcode;
};

namespace cpu {

/// Runs whole instructions until `m.now >= deadline`. Interrupts are taken between instructions.
void run(Machine& m, const Cartridge& cart, const NativeCode* native, int32_t deadline);

}  // namespace cpu
}  // namespace wz
