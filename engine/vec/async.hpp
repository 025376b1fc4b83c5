#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "vec/lane_set.hpp"

namespace wz {

/// Steps that are under way without the caller: queued, running, or finished and not yet received.
///
/// A lane is under way from `send` until `receive` has written it. Its observation stays in the
/// lane's own history until then, so only the small results are kept here.
class AsyncSteps {
 public:
  AsyncSteps(LaneSet& lanes, int num_threads);

  /// Queues steps. All lanes must be idle.
  void send(std::span<const int64_t> actions, std::span<const int64_t> lanes);

  /// Takes part in the work until `count` lanes have been written, in the order in which they
  /// finished. Throws when fewer are under way, and when a lane failed; what had finished by then
  /// is kept for the next call.
  void receive(int count, const StepRows& arrays, int64_t* lanes);

  /// One queued step, if there is any. Called by the pool's threads.
  void work(int thread);

  /// Steps that were not started are not played.
  void cancel();

  bool is_under_way(int lane);
  int under_way();
  size_t memory_bytes() const {
    return results_.capacity() * (sizeof(Result) + 2 * kInfoColumns * sizeof(int32_t));
  }

  /// Throws what failed since the last call, if anything.
  void throw_pending_error();

 private:
  struct Result {
    float reward;
    bool terminated;
    bool truncated;
    bool under_way = false;
    std::vector<int32_t> info;
    std::vector<int32_t> final_info;
    std::vector<uint8_t> final_obs;  ///< only between the end of an episode and its delivery
  };
  struct Job {
    int lane;
    int action;
  };
  struct Receiver {
    const StepRows* arrays;
    int count;
    std::vector<int> taken;  ///< lanes by row
    int written = 0;
    bool open() const { return static_cast<int>(taken.size()) < count; }
  };

  void run(std::unique_lock<std::mutex>& lock, int thread);
  void deliver(std::unique_lock<std::mutex>& lock, int lane);
  void write(int lane, int row, const StepRows& arrays);
  std::optional<std::string> step(int thread, const Job& job);
  Result& at(int lane) { return results_[static_cast<size_t>(lane)]; }

  LaneSet& lanes_;
  std::vector<std::vector<uint8_t>> final_scratch_;  ///< by thread
  std::vector<Result> results_;                      ///< by lane

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> queue_;
  std::deque<int> finished_;
  Receiver* receiver_ = nullptr;
  std::string error_;
  int under_way_ = 0;
};

}  // namespace wz
