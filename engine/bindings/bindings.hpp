#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "game/consoles.hpp"

namespace wz::bindings {

namespace nb = nanobind;

void bind_config(nb::module_& m);
void bind_game(nb::module_& m);
void bind_console(nb::module_& m);
void bind_vector(nb::module_& m);

/// Throws std::invalid_argument, which Python sees as ValueError.
CartridgePtr parse_rom(const nb::bytes& rom);
Timing parse_timing(const std::string& name);

}  // namespace wz::bindings
