#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

namespace wz::bindings {

/// Lets other Python threads run while it lives.
///
/// When the interpreter has ended meanwhile, CPython up to 3.13 unwinds the thread that wants the
/// GIL back. No C++ frame survives that, so the thread stays here until the process is gone.
class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ~ReleasedGil() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      while (true) pause();
    }
  }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace wz::bindings
