#pragma once

#include <cstdint>
#include <string>

#include "nes/cartridge.hpp"

namespace wz::native {

/// C source of a shared library that runs this program as `NativeCode` describes. It exports
/// `wz_run`, `wz_entry`, `wz_slack`, `wz_program` and `wz_abi`.
std::string translate(const Cartridge& cart);

/// Tells programs apart: translated code of one must not run another.
uint64_t program_id(const Cartridge& cart);

/// Names the layout of `Machine` and the calling convention that translated code relies on. Code
/// with another `wz_abi` must not be loaded.
std::string abi();

}  // namespace wz::native
