#pragma once

#include "nes/machine.hpp"
#include "nespy/nespy.hpp"
#include "vec/bytes.hpp"

/// Machines as bytes, field by field: the same on every computer, and nothing of unknown origin
/// reaches a machine before it has been checked.
namespace wz {

void save_machine(Writer& writer, const Machine& m);
void save_machine(Writer& writer, const nespy::Machine& m);

/// Throw std::invalid_argument when the bytes end early or hold a value that the machine could
/// not have; `m` is then unspecified.
void load_machine(Reader& reader, Machine& m);
void load_machine(Reader& reader, nespy::Machine& m);

}  // namespace wz
