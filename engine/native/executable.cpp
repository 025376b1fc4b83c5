#include "native/executable.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "native/emit.hpp"
#include "native/translate.hpp"

namespace wz::native {
namespace {

#ifdef __x86_64__
constexpr bool kCanRun = true;
#else
constexpr bool kCanRun = false;
#endif

[[noreturn]] void refused() {
  throw std::runtime_error("this system refuses memory for code (" +
                           std::string(std::strerror(errno)) + ")");
}

}  // namespace

Executable::Executable(const Cartridge& cart) {
  if (!kCanRun) throw std::runtime_error("machine code is emitted for x86-64 CPUs only");
  MachineCode made = emit(cart);
  size_ = made.bytes.size();
  memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory_ == MAP_FAILED) refused();
  std::memcpy(memory_, made.bytes.data(), size_);
  if (mprotect(memory_, size_, PROT_READ | PROT_EXEC) != 0) {
    const int reason = errno;
    munmap(memory_, size_);
    errno = reason;
    refused();
  }
  entry_ = std::move(made.entry);
  const uint8_t* run = static_cast<const uint8_t*>(memory_) + made.run;
  // POSIX promises that a function pointer survives this; C++ has no cast that says so.
  static_assert(sizeof code_.run == sizeof run);
  std::memcpy(&code_.run, &run, sizeof run);
  code_.entry = entry_.data();
  code_.slack = made.slack;
  program_ = program_id(cart);
}

Executable::~Executable() { munmap(memory_, size_); }

}  // namespace wz::native
