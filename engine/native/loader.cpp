#include "native/loader.hpp"

#include <dlfcn.h>

#include <cstring>
#include <memory>
#include <stdexcept>

#include "native/translate.hpp"

namespace wz::native {
namespace {

struct Close {
  void operator()(void* handle) const { dlclose(handle); }
};

const void* find(void* handle, const char* name, const std::string& path) {
  const void* symbol = dlsym(handle, name);
  if (!symbol) throw std::runtime_error(path + " is not translated code: it has no " + name);
  return symbol;
}

}  // namespace

Library::Library(const std::string& path) {
  // Without a slash the dynamic linker would search its own folders.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  std::unique_ptr<void, Close> handle(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!handle) {
    const char* reason = dlerror();
    throw std::runtime_error("cannot load translated code: " +
                             std::string(reason ? reason : "unknown reason"));
  }
  const std::string expected = abi();
  const char* found = static_cast<const char*>(find(handle.get(), "wz_abi", path));
  if (std::strncmp(found, expected.c_str(), expected.size() + 1) != 0) {
    throw std::runtime_error(path + " was translated for another version of the engine");
  }
  const void* run = find(handle.get(), "wz_run", path);
  // POSIX promises that a function pointer survives this; C++ has no cast that says so.
  static_assert(sizeof code_.run == sizeof run);
  std::memcpy(&code_.run, &run, sizeof run);
  code_.entry = static_cast<const uint8_t*>(find(handle.get(), "wz_entry", path));
  std::memcpy(&code_.slack, find(handle.get(), "wz_slack", path), sizeof code_.slack);
  std::memcpy(&program_, find(handle.get(), "wz_program", path), sizeof program_);
  handle_ = handle.release();
}

Library::~Library() {
  if (handle_) dlclose(handle_);
}

}  // namespace wz::native
