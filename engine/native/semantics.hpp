#pragma once

#include "nes/opcodes.hpp"

/// What instructions do, as C text over the variables of the generated function: a x y s
/// (registers), n z c v rest (flags) and value (the operand).
namespace wz::native {

/// The expression that is true when a branch is taken; null for anything but a branch.
const char* condition(opcodes::Op op);

/// What an instruction does with the value it has read, or with the registers alone. For a store it
/// is the register that is stored.
const char* effect(opcodes::Op op);

}  // namespace wz::native
