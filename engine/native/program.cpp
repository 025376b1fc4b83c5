#include "native/program.hpp"

#include <stdexcept>

#include "native/translate.hpp"

namespace wz::native {

void Program::require(const Cartridge& cart) const {
  if (program_id(cart) != program_) {
    throw std::invalid_argument("the translated code was made from another ROM");
  }
}

}  // namespace wz::native
