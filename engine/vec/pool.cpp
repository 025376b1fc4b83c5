#include "vec/pool.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

namespace wz {
namespace {

// Longer than a caller needs between two steps when he only reads the results, shorter than
// anything a network does: then waking up costs nothing, and no thread busy-waits while others
// compute.
constexpr auto kSpinTime = std::chrono::microseconds(150);
constexpr int kPausesPerLook = 16;

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Looks at `ready` for a short while. Returns whether it came true.
template <class Ready>
bool spin(bool allowed, Ready ready) {
  if (ready()) return true;
  if (!allowed) return false;
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      pause_cpu();
      if (ready()) return true;
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

/// Small pieces keep the threads evenly busy to the end of the job: a piece of 16 lanes at the end
/// of 256 cost a tenth of the time of two threads.
int piece_size(int count, int num_threads) { return std::clamp(count / (num_threads * 64), 1, 8); }

}  // namespace

class Pool::Job {
 public:
  Job(int count, int piece, Task task)
      : task_(std::move(task)), count_(count), piece_(piece), process_(getpid()) {}

  bool given_away() const { return next_.load(std::memory_order_acquire) >= count_; }
  bool is_complete() const { return done_.load(std::memory_order_acquire) == count_; }
  bool of_this_process() const { return process_ == getpid(); }
  pid_t process() const { return process_; }

  /// Runs pieces until none is left to give.
  void work(int thread) {
    while (!given_away()) {
      const int first = next_.fetch_add(piece_, std::memory_order_acq_rel);
      if (first >= count_) return;
      const int last = std::min(first + piece_, count_);
      for (int index = first; index < last; ++index) guarded(thread, index);
      if (done_.fetch_add(last - first, std::memory_order_acq_rel) + last - first == count_) {
        done_.notify_all();
      }
    }
  }

  void wait_for_others(bool may_spin) const {
    if (spin(may_spin, [this] { return is_complete(); })) return;
    for (int now; (now = done_.load(std::memory_order_acquire)) != count_;) {
      done_.wait(now, std::memory_order_acquire);
    }
  }

  void rethrow() {
    const std::exception_ptr error = std::exchange(error_, nullptr);
    if (!error) return;
    const std::string lane = "lane " + std::to_string(error_index_) + ": ";
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      throw std::runtime_error(lane + e.what());
    } catch (...) {
      throw std::runtime_error(lane + "unknown error");
    }
  }

 private:
  void guarded(int thread, int index) {
    try {
      task_(thread, index);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(error_mutex_);
      if (!error_ || index < error_index_) {
        error_ = std::current_exception();
        error_index_ = index;
      }
    }
  }

  const Task task_;
  const int count_;
  const int piece_;
  const pid_t process_;
  std::mutex error_mutex_;
  std::exception_ptr error_;
  int error_index_ = 0;
  alignas(kCacheLine) std::atomic<int> next_{0};
  alignas(kCacheLine) std::atomic<int> done_{0};
};

Pool::Pool(int num_threads) : owner_process_(getpid()) {
  if (num_threads < 1) throw std::invalid_argument("a pool needs at least one thread");
  // With more threads than cores, spinning takes the time of the one who has work.
  may_spin_ = static_cast<unsigned>(num_threads) <= std::thread::hardware_concurrency();
  threads_.reserve(static_cast<size_t>(num_threads) - 1);
  try {
    for (int i = 1; i < num_threads; ++i) threads_.emplace_back([this, i] { worker(i); });
  } catch (...) {
    stop();
    throw;
  }
}

Pool::~Pool() { stop(); }

void Pool::stop() {
  if (is_forked()) {
    // The threads do not exist in this process, and must be neither joined nor detached: the system
    // may have given their ids to threads started since. So they are never destroyed.
    static_cast<void>(new std::vector<std::thread>(std::move(threads_)));
    return;
  }
  stop_.store(true, std::memory_order_release);
  wake();
  for (std::thread& thread : threads_) thread.join();
}

void Pool::wake() {
  signal_.fetch_add(1, std::memory_order_release);
  signal_.notify_all();
}

void Pool::worker(int thread) {
  uint32_t seen = 0;
  while (true) {
    const auto signalled = [&] { return signal_.load(std::memory_order_acquire) != seen; };
    if (!spin(may_spin_, signalled)) signal_.wait(seen, std::memory_order_acquire);
    seen = signal_.load(std::memory_order_acquire);
    while (!stop_.load(std::memory_order_acquire)) {
      const std::shared_ptr<Job> job = next();
      if (!job) break;
      job->work(thread);
    }
    if (stop_.load(std::memory_order_acquire)) return;
  }
}

std::shared_ptr<Pool::Job> Pool::next() {
  const std::lock_guard<std::mutex> lock(mutex_);
  while (!queue_.empty() && queue_.front()->given_away()) queue_.pop_front();
  return queue_.empty() ? nullptr : queue_.front();
}

std::shared_ptr<Pool::Job> Pool::make(int count, Task task) const {
  if (count < 0 || count > kMaxCount) {
    throw std::invalid_argument("a pool was given too much work at once");
  }
  return std::make_shared<Job>(count, piece_size(count, num_threads()), std::move(task));
}

std::shared_ptr<Pool::Job> Pool::start(int count, Task task) {
  auto job = make(count, std::move(task));
  // In a forked child no thread would take it off the queue, whose lock may be held for ever.
  if (threads_.empty() || count == 0 || job->process() != owner_process_) return job;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(job);
  }
  wake();
  return job;
}

void Pool::complete(Job& job) noexcept {
  job.work(0);
  job.wait_for_others(may_spin_);
}

bool Pool::is_complete(const Job& job) { return job.is_complete(); }

bool Pool::is_forked() const { return owner_process_ != getpid(); }

void Pool::wait(Job& job) {
  if (!job.of_this_process()) throw std::runtime_error("what is under way is the parent's");
  complete(job);
  job.rethrow();
}

void Pool::run(int count, Task task) {
  // A single piece takes less time than waking a thread.
  wait(count == 1 ? *make(count, std::move(task)) : *start(count, std::move(task)));
}

}  // namespace wz
