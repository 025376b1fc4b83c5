#pragma once

#include <string>

#include "native/program.hpp"

namespace wz::native {

/// Translated code in a shared library.
///
/// Loading runs whatever the file contains: the caller must know where it came from.
class Library : public Program {
 public:
  /// Throws std::runtime_error with one sentence when the file cannot be loaded, is not translated
  /// code, or was made for an engine with another `abi()`.
  explicit Library(const std::string& path);
  ~Library() override;

  const char* how() const override { return "compiled"; }

 private:
  void* handle_ = nullptr;
};

}  // namespace wz::native
