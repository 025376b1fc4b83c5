#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "nes/cartridge.hpp"

namespace wz::native {

/// What a static walk through a program finds.
///
/// The walk may take data for code (a jump table read too far): such instructions are translated
/// and never reached. It may also miss code: the interpreter runs that. Neither changes a result.
struct Flow {
  /// Instruction starts in $8000-$FFFF.
  std::set<uint16_t> code;
  /// Addresses that only a run-time value leads to: return sites, jump tables, vectors.
  std::set<uint16_t> entries;
};

Flow discover(const Cartridge& cart);

/// An instruction with its operand resolved.
struct Instruction {
  uint16_t pc = 0;
  uint8_t opcode = 0;
  uint16_t operand = 0;  ///< immediate, address, or branch target
  uint16_t next = 0;
};

Instruction decode(const Cartridge& cart, uint16_t pc);

}  // namespace wz::native
