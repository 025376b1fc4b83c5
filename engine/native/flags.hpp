#pragma once

#include <cstdint>
#include <vector>

#include "native/flow.hpp"
#include "nes/opcodes.hpp"

namespace wz::native {

/// Sets of flags, as far as the emitter tells them apart: N and Z always change together, I and D
/// are kept as they are.
using FlagSet = uint8_t;
inline constexpr FlagSet kFlagNz = 1, kFlagC = 2, kFlagV = 4, kAllFlags = 7;

/// The flag that a branch asks for; empty for everything else.
FlagSet asked(opcodes::Op op);

enum class Carry : uint8_t { kUnknown, kClear, kSet };

/// Which flags are still asked for, and where the carry is known: most results of most instructions
/// are never looked at.
class Flags {
 public:
  Flags(const Cartridge& cart, const Flow& flow);

  /// True where control can come from elsewhere than the instruction before.
  bool joins(uint16_t pc) const { return joins_[pc]; }
  /// The flags that are asked for before they are written, from here on. Wherever control may be
  /// given back all are.
  FlagSet before(uint16_t pc) const { return live_[pc]; }
  /// The same behind an instruction, whichever way it goes.
  FlagSet after(const Instruction& i) const;
  /// The same for a branch that is taken or a jump.
  FlagSet taken(const Instruction& i) const;
  /// The carry before an instruction.
  Carry carry(uint16_t pc) const { return carry_[pc]; }

 private:
  const Flow& flow_;
  std::vector<bool> joins_;
  std::vector<FlagSet> live_;
  std::vector<Carry> carry_;
};

}  // namespace wz::native
