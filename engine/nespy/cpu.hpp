#pragma once

#include "nespy/bus.hpp"

namespace wz::nespy {

/// Executes the instruction at `pc` at once and sets how long the CPU waits after it.
void execute(Bus& bus);

/// Enters the NMI handler.
void interrupt(Bus& bus);

}  // namespace wz::nespy
