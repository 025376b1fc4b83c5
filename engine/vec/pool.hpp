#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace wz {

/// A fixed set of threads that execute jobs in the order in which they were started. A thread that
/// waits for a job takes part in it: `Pool(1)` starts no thread at all, and everything happens in
/// `wait`.
///
/// Several vectors may share a pool. When one job has no more pieces to give, threads continue with
/// the next, so no thread waits at the end of one job for its last piece.
///
/// Workers wait for work by spinning for some tens of microseconds, which is shorter than waking
/// a thread, and then sleep.
class Pool {
 public:
  /// `task(thread, index)`; `thread` is 0 for the one who waits and 1.. for the workers.
  using Task = std::function<void(int thread, int index)>;
  class Job;

  explicit Pool(int num_threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  static constexpr int kMaxCount = (1 << 20) - 1;

  int num_threads() const { return static_cast<int>(threads_.size()) + 1; }

  /// Begins task(thread, 0 .. count-1), at most kMaxCount, and returns at once. Whatever the task
  /// refers to must live until the job is complete.
  std::shared_ptr<Job> start(int count, Task task);

  /// Takes part in a job until it is complete; one thread at a time. All of it is run even when
  /// some pieces throw; then the exception of the lowest index is thrown here, as
  /// std::runtime_error("lane <index>: ...").
  void wait(Job& job);

  /// The same, without the exception.
  void complete(Job& job) noexcept;
  static bool is_complete(const Job& job);

  /// Whether this is a child of the process that made the pool. The threads exist in the parent
  /// only; jobs of the child are executed by the thread that waits for them.
  bool is_forked() const;
  /// Whether there are threads that execute jobs before a caller waits for them.
  bool has_workers() const { return !threads_.empty() && !is_forked(); }

  /// Starts and waits.
  void run(int count, Task task);

 private:
  std::shared_ptr<Job> make(int count, Task task) const;
  void worker(int thread);
  std::shared_ptr<Job> next();
  void wake();
  void stop();

  std::vector<std::thread> threads_;
  pid_t owner_process_;
  bool may_spin_ = false;

  std::mutex mutex_;
  std::deque<std::shared_ptr<Job>> queue_;  ///< those that may have pieces left

  static constexpr int kCacheLine = 64;
  alignas(kCacheLine) std::atomic<uint32_t> signal_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace wz
