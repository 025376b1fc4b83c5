#pragma once

#include <cstdint>

#include "nes/console.hpp"

namespace wz::native {

/// Translated code of one program, however it was made. The code may be used while the object
/// lives.
class Program {
 public:
  virtual ~Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const NativeCode& code() const { return code_; }

  /// How the code was made: "compiled" or "emitted".
  virtual const char* how() const = 0;

  /// Throws std::invalid_argument when the code is of another program than this one.
  void require(const Cartridge& cart) const;

 protected:
  Program() = default;

  NativeCode code_;
  uint64_t program_ = 0;
};

}  // namespace wz::native
