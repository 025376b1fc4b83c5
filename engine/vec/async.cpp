#include "vec/async.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace wz {

AsyncSteps::AsyncSteps(LaneSet& lanes, int num_threads)
    : lanes_(lanes),
      final_scratch_(static_cast<size_t>(num_threads)),
      results_(static_cast<size_t>(lanes.size())) {}

void AsyncSteps::send(std::span<const int64_t> actions, std::span<const int64_t> lanes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < lanes.size(); ++i) {
    const Job job{static_cast<int>(lanes[i]), static_cast<int>(actions[i])};
    Result& result = at(job.lane);
    result.under_way = true;
    result.info.resize(kInfoColumns);
    queue_.push_back(job);
  }
  under_way_ += static_cast<int>(lanes.size());
}

bool AsyncSteps::is_under_way(int lane) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return at(lane).under_way;
}

int AsyncSteps::under_way() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return under_way_;
}

void AsyncSteps::throw_pending_error() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!error_.empty()) throw std::runtime_error(std::exchange(error_, {}));
}

/// Plays the step into the lane's result. Returns what went wrong.
std::optional<std::string> AsyncSteps::step(int thread, const Job& job) {
  Result& result = at(job.lane);
  StepRows rows;
  rows.reward = &result.reward;
  rows.terminated = &result.terminated;
  rows.truncated = &result.truncated;
  rows.info = result.info.data();
  std::vector<uint8_t>& scratch = final_scratch_[static_cast<size_t>(thread)];
  try {
    if (lanes_.config().autoreset == Autoreset::kSameStep) {
      scratch.resize(lanes_.stack_bytes());
      result.final_info.resize(kInfoColumns);
      rows.final_obs = scratch.data();
      rows.final_info = result.final_info.data();
    }
    lanes_.step(thread, job.lane, job.action, rows);
    if (rows.final_obs && (result.terminated || result.truncated)) result.final_obs = scratch;
  } catch (const std::exception& e) {
    return "lane " + std::to_string(job.lane) + ": " + e.what();
  }
  return std::nullopt;
}

void AsyncSteps::write(int lane, int row, const StepRows& arrays) {
  const Result& result = at(lane);
  const StepRows rows = arrays.at(row, lanes_.stack_bytes());
  lanes_.write_stack(lane, rows.obs);
  *rows.reward = result.reward;
  *rows.terminated = result.terminated;
  *rows.truncated = result.truncated;
  std::memcpy(rows.info, result.info.data(), kInfoColumns * sizeof(int32_t));
  if (!result.final_obs.empty()) {
    if (rows.final_obs) {
      std::memcpy(rows.final_obs, result.final_obs.data(), result.final_obs.size());
    }
    if (rows.final_info) {
      std::memcpy(rows.final_info, result.final_info.data(), kInfoColumns * sizeof(int32_t));
    }
  }
}

/// Gives a finished lane the next row of the waiting batch.
void AsyncSteps::deliver(std::unique_lock<std::mutex>& lock, int lane) {
  Receiver& receiver = *receiver_;
  const int row = static_cast<int>(receiver.taken.size());
  receiver.taken.push_back(lane);
  lock.unlock();
  write(lane, row, *receiver.arrays);
  lock.lock();
  ++receiver.written;
  changed_.notify_all();
}

/// Takes one job off the queue and sees it through.
void AsyncSteps::run(std::unique_lock<std::mutex>& lock, int thread) {
  const Job job = queue_.front();
  queue_.pop_front();
  lock.unlock();
  std::optional<std::string> error = step(thread, job);
  lock.lock();
  if (error) {
    if (error_.empty()) error_ = std::move(*error);
    at(job.lane).under_way = false;
    --under_way_;
    changed_.notify_all();
  } else if (receiver_ && receiver_->open() && error_.empty()) {
    deliver(lock, job.lane);
  } else {
    finished_.push_back(job.lane);
  }
}

void AsyncSteps::work(int thread) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!queue_.empty()) run(lock, thread);
}

void AsyncSteps::cancel() {
  const std::lock_guard<std::mutex> lock(mutex_);
  queue_.clear();
}

void AsyncSteps::receive(int count, const StepRows& arrays, int64_t* lanes) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (error_.empty() && count > under_way_) {
    throw std::runtime_error("recv was asked for " + std::to_string(count) + " lanes, but " +
                             std::to_string(under_way_) + " are under way");
  }
  Receiver receiver{&arrays, count, {}, 0};
  receiver.taken.reserve(static_cast<size_t>(count));
  receiver_ = &receiver;
  while (error_.empty() && receiver.written < count) {
    if (receiver.open() && !finished_.empty()) {
      const int lane = finished_.front();
      finished_.pop_front();
      deliver(lock, lane);
    } else if (receiver.open() && !queue_.empty()) {
      run(lock, 0);
    } else {
      changed_.wait(lock);
    }
  }
  // Workers may still be writing into the caller's arrays.
  changed_.wait(lock, [&] { return receiver.written == static_cast<int>(receiver.taken.size()); });
  receiver_ = nullptr;
  if (!error_.empty()) {
    finished_.insert(finished_.begin(), receiver.taken.begin(), receiver.taken.end());
    throw std::runtime_error(std::exchange(error_, {}));
  }
  for (size_t i = 0; i < receiver.taken.size(); ++i) {
    Result& result = at(receiver.taken[i]);
    lanes[i] = receiver.taken[i];
    result.under_way = false;
    result.final_obs = {};
  }
  under_way_ -= count;
}

}  // namespace wz
