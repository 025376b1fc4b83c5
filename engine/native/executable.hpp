#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "native/program.hpp"

namespace wz::native {

/// Translated code that was emitted into this process's own memory. No file is read or written, and
/// the memory is never writable and executable at once.
class Executable : public Program {
 public:
  /// Throws std::runtime_error with one sentence where there is no emitter for the CPU, or the
  /// system refuses memory that can be executed.
  explicit Executable(const Cartridge& cart);
  ~Executable() override;

  const char* how() const override { return "emitted"; }

 private:
  std::vector<uint8_t> entry_;
  void* memory_ = nullptr;
  size_t size_ = 0;
};

}  // namespace wz::native
