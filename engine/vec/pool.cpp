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
// anything a network does: then waking up costs nothing, and nobody spins while others compute.
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

/// A job's number (24 bits), how many pieces it has (20) and which is next (20).
struct Ticket {
  uint64_t word;

  static Ticket make(uint64_t job, int count) {
    return {job << 40 | static_cast<uint64_t>(count) << 20};
  }
  uint64_t job() const { return word >> 40; }
  int count() const { return static_cast<int>(word >> 20 & Pool::kMaxCount); }
  int next() const { return static_cast<int>(word & Pool::kMaxCount); }
};

}  // namespace

Pool::Pool(int num_threads, Background background)
    : background_(std::move(background)), owner_process_(static_cast<int>(getpid())) {
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
  if (owner_process_ != static_cast<int>(getpid())) {
    // After a fork the threads exist in the parent only; there is nobody to wait for.
    for (std::thread& thread : threads_) thread.detach();
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
    if (stop_.load(std::memory_order_acquire)) return;
    work(thread);
    if (background_) {
      while (!stop_.load(std::memory_order_relaxed) && background_(thread)) {
      }
    }
  }
}

void Pool::work(int thread) {
  uint64_t word = ticket_.load(std::memory_order_acquire);
  while (true) {
    const Ticket ticket{word};
    const int first = ticket.next();
    const int count = ticket.count();
    if (first >= count) return;
    // Small pieces keep the threads evenly busy to the end of the job: a piece of 16 lanes at the
    // end of 256 cost a tenth of the time of two threads.
    const int last = std::min(first + std::clamp(count / (num_threads() * 64), 1, 8), count);
    const int size = last - first;
    if (!ticket_.compare_exchange_weak(word, word + static_cast<uint64_t>(size),
                                       std::memory_order_acq_rel, std::memory_order_acquire)) {
      continue;
    }
    for (int index = first; index < last; ++index) guarded(thread, index);
    const auto finished = static_cast<uint32_t>(size);
    if (done_.fetch_add(finished, std::memory_order_acq_rel) + finished ==
        static_cast<uint32_t>(count)) {
      done_.notify_all();
    }
    word = ticket_.load(std::memory_order_acquire);
  }
}

void Pool::guarded(int thread, int index) {
  try {
    (*task_)(thread, index);
  } catch (...) {
    const std::lock_guard<std::mutex> lock(error_mutex_);
    if (!error_ || index < error_index_) {
      error_ = std::current_exception();
      error_index_ = index;
    }
  }
}

void Pool::run(int count, const Task& task) {
  if (count <= 0) return;
  if (count > kMaxCount) throw std::invalid_argument("a pool was given too much work at once");
  task_ = &task;
  error_ = nullptr;
  if (threads_.empty() || count == 1) {
    for (int index = 0; index < count; ++index) guarded(0, index);
  } else {
    done_.store(0, std::memory_order_relaxed);
    const Ticket old{ticket_.load(std::memory_order_relaxed)};
    ticket_.store(Ticket::make(old.job() + 1, count).word, std::memory_order_release);
    wake();
    work(0);
    const auto target = static_cast<uint32_t>(count);
    const auto complete = [&] { return done_.load(std::memory_order_acquire) == target; };
    if (!spin(may_spin_, complete)) {
      for (uint32_t now; (now = done_.load(std::memory_order_acquire)) != target;) {
        done_.wait(now, std::memory_order_acquire);
      }
    }
  }
  task_ = nullptr;
  if (error_) rethrow();
}

void Pool::rethrow() {
  const std::exception_ptr error = std::exchange(error_, nullptr);
  const std::string lane = "lane " + std::to_string(error_index_) + ": ";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    throw std::runtime_error(lane + e.what());
  } catch (...) {
    throw std::runtime_error(lane + "unknown error");
  }
}

}  // namespace wz
