#pragma once

#include <cstdint>

#include "native/flow.hpp"
#include "nes/opcodes.hpp"

/// What the translator to C and the emitter of machine code both ask about a program. They answer
/// to the same dispatcher (`NativeCode`), so they stop, check the time and may be entered at the
/// same places.
namespace wz::native {

bool is_store(opcodes::Op op);
/// Reads a byte, changes it and writes it back.
bool is_modify(opcodes::Op op);
/// Takes a branch or goes on.
bool is_branch(opcodes::Op op);

/// What is known about the address of an operand before the program runs.
struct Access {
  bool reads = false;
  bool writes = false;
  bool indexed = false;    ///< a fixed address plus X or Y
  bool zero_page = false;  ///< in $00-$FF, indexed or not
  bool in_ram = false;     ///< surely in $0000-$1FFF
  bool in_rom = false;     ///< surely in $8000-$FFFF
  /// The highest address of a fixed or indexed operand.
  unsigned last = 0;
  /// The write may raise an interrupt or take the time of a DMA: control may have to be given back.
  bool leaves = false;
};
Access access(const Instruction& i);

/// Waiting for an interrupt (a jump to itself), or failing, is the interpreter's work.
bool stops(const Instruction& i);

/// True for the branch that closes `loop: LDA $2002; AND #n; BEQ/BNE loop`, the wait for the PPU.
bool polls(const Cartridge& cart, const Instruction& i);

/// Whether the dispatcher may enter at this address.
bool may_enter(const Cartridge& cart, const Flow& flow, uint16_t pc);

/// The longest time in dots that can pass between two checks.
int32_t slack(const Cartridge& cart, const Flow& flow);

}  // namespace wz::native
