#pragma once

#include <memory>
#include <string>

#include "nes/console.hpp"

namespace wz::native {

/// Translated code in a shared library. The code may be used while the object lives.
///
/// Loading runs whatever the file contains: the caller must know where it came from.
class Library {
 public:
  /// Throws std::runtime_error with one sentence when the file cannot be loaded, is not translated
  /// code, or was made for an engine with another `abi()`.
  explicit Library(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const NativeCode& code() const { return code_; }

  /// Throws std::invalid_argument when the code is of another program than this one.
  void require(const Cartridge& cart) const;

 private:
  void* handle_ = nullptr;
  NativeCode code_;
  uint64_t program_ = 0;
};

}  // namespace wz::native
