#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace wz {

/// A fixed set of threads. The caller is one of them: `Pool(1)` starts no thread at all and runs
/// everything in place.
///
/// Workers wait for work by spinning for some tens of microseconds, which is shorter than waking
/// a thread, and then sleep.
class Pool {
 public:
  /// `task(thread, index)`; `thread` is 0 for the caller and 1.. for the workers.
  using Task = std::function<void(int thread, int index)>;
  /// Does one piece of queued work; returns false when there was none.
  using Background = std::function<bool(int thread)>;

  /// `background` is what workers do between calls of `run`, after `wake`. It must not throw.
  explicit Pool(int num_threads, Background background = {});
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  static constexpr int kMaxCount = (1 << 20) - 1;

  int num_threads() const { return static_cast<int>(threads_.size()) + 1; }

  /// Runs task(thread, 0 .. count-1) on all threads and returns when all are done. All are run
  /// even when some throw; then the exception of the lowest index is thrown here, as
  /// std::runtime_error("lane <index>: ..."). At most kMaxCount.
  void run(int count, const Task& task);

  /// Tells sleeping workers that there is queued work.
  void wake();

 private:
  void worker(int thread);
  void work(int thread);
  void guarded(int thread, int index);
  [[noreturn]] void rethrow();
  void stop();

  static constexpr int kCacheLine = 64;

  Background background_;
  std::vector<std::thread> threads_;
  int owner_process_;
  bool may_spin_ = false;

  // The job that is running. `ticket_` holds its number, its count and the next index in one
  // word, so that a late worker can never take a piece of another job by mistake.
  const Task* task_ = nullptr;
  std::mutex error_mutex_;
  std::exception_ptr error_;
  int error_index_ = 0;

  alignas(kCacheLine) std::atomic<uint64_t> ticket_{0};
  alignas(kCacheLine) std::atomic<uint32_t> done_{0};
  alignas(kCacheLine) std::atomic<uint32_t> signal_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace wz
