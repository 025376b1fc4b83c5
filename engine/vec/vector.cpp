#include "vec/vector.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace wz {
namespace {

constexpr size_t kMaxLanes = 65536;
constexpr int kMaxThreads = 1024;

}  // namespace

Vector::Vector(const LaneConfig& config, CartridgePtr cart,
               std::shared_ptr<const native::Program> native, Simd simd, Stages stages,
               std::shared_ptr<Pool> pool)
    : config_(config),
      num_lanes_(static_cast<int>(std::min(stages.size(), kMaxLanes))),
      num_threads_(pool->num_threads()),
      process_(getpid()),
      native_(std::move(native)),
      pool_(std::move(pool)) {
  if (stages.empty() || stages.size() > kMaxLanes) {
    throw std::invalid_argument("num_lanes must be in 1.." + std::to_string(kMaxLanes) +
                                ", and is " + std::to_string(stages.size()));
  }
  if (native_) native_->require(*cart);
  lanes_ = LaneSet::make(config, std::move(cart), native_ ? native_->code() : NativeCode{}, simd,
                         std::move(stages), num_threads_);
  async_ = std::make_unique<AsyncSteps>(*lanes_, num_threads_);
}

Vector::~Vector() {
  if (is_parents()) {
    abandon();
  } else {
    settle();
  }
}

std::shared_ptr<Pool> Vector::make_pool(int num_threads) {
  if (num_threads < 1 || num_threads > kMaxThreads) {
    throw std::invalid_argument("num_threads must be in 1.." + std::to_string(kMaxThreads) +
                                ", and is " + std::to_string(num_threads));
  }
  return std::make_shared<Pool>(num_threads);
}

/// No thread of the pool touches the lanes afterwards.
void Vector::settle() noexcept {
  if (!pool_ || pool_->is_forked()) return;
  if (async_) async_->cancel();
  for (const auto& job : sent_) pool_->complete(*job);
  if (step_) pool_->complete(*step_);
  sent_.clear();
  step_.reset();
}

int Vector::checked_lane(int64_t lane) const {
  if (lane < 0 || lane >= num_lanes_) {
    throw std::out_of_range("lane " + std::to_string(lane) + " is outside 0.." +
                            std::to_string(num_lanes_ - 1));
  }
  return static_cast<int>(lane);
}

void Vector::refuse_under_way() const {
  if (step_) throw std::runtime_error("a step is under way; finish it first");
}

int Vector::idle_lane(int64_t lane) {
  refuse_under_way();
  const int checked = checked_lane(lane);
  if (async_->is_under_way(checked)) {
    throw std::runtime_error("lane " + std::to_string(lane) + " is under way; receive it first");
  }
  return checked;
}

int Vector::started_lane(int64_t lane) {
  const int idle = idle_lane(lane);
  if (lanes_->status(idle) == LaneStatus::kNew) {
    throw std::runtime_error("lane " + std::to_string(lane) + " was never reset");
  }
  return idle;
}

void Vector::require_idle(const char* what) {
  refuse_under_way();
  async_->throw_pending_error();
  if (const int count = async_->under_way()) {
    throw std::runtime_error(std::string(what) + " needs all lanes, but " + std::to_string(count) +
                             " are under way; receive them first");
  }
}

void Vector::check_action(int64_t action, int64_t lane) const {
  const auto count = static_cast<int64_t>(config_.buttons.size());
  if (action < 0 || action >= count) {
    throw std::invalid_argument("the action of lane " + std::to_string(lane) + " must be in 0.." +
                                std::to_string(count - 1) + ", and is " + std::to_string(action));
  }
}

void Vector::check_steppable(int lane) const {
  const LaneStatus status = lanes_->status(lane);
  if (status == LaneStatus::kRunning) return;
  if (status == LaneStatus::kNew) {
    throw std::runtime_error("lane " + std::to_string(lane) +
                             " must be reset before it is stepped");
  }
  if (config_.autoreset == Autoreset::kDisabled) {
    throw std::runtime_error("the episode of lane " + std::to_string(lane) +
                             " has ended; reset it before stepping on");
  }
}

void Vector::seed(std::span<const std::optional<uint64_t>> seeds) {
  const auto lock = enter();
  require_idle("seed");
  if (seeds.size() != static_cast<size_t>(num_lanes_)) {
    throw std::invalid_argument("seed needs " + std::to_string(num_lanes_) + " seeds, and got " +
                                std::to_string(seeds.size()));
  }
  for (int lane = 0; lane < num_lanes_; ++lane) {
    const auto& seed = seeds[static_cast<size_t>(lane)];
    if (seed) lanes_->seed(lane, *seed);
  }
}

void Vector::reset(const bool* mask, uint8_t* obs, int32_t* info) {
  const auto lock = enter();
  require_idle("reset");
  for (int lane = 0; mask && lane < num_lanes_; ++lane) {
    if (!mask[lane] && lanes_->status(lane) == LaneStatus::kNew) {
      throw std::runtime_error("the first reset must be of all lanes; lane " +
                               std::to_string(lane) + " is left out");
    }
  }
  const size_t size = lanes_->stack_bytes();
  pool_->run(num_lanes_, [&](int thread, int lane) {
    const auto row = static_cast<size_t>(lane);
    if (!mask || mask[lane]) {
      lanes_->reset(thread, lane);
      std::memcpy(info + row * kInfoColumns, lanes_->info(lane), kInfoColumns * sizeof(int32_t));
    }
    lanes_->write_stack(lane, obs + row * size);
  });
}

/// Copies and checks them. What was checked must not change, whatever becomes of the caller's
/// array.
void Vector::take_actions(const int64_t* actions) {
  require_idle("step");
  actions_.assign(actions, actions + num_lanes_);
  for (int lane = 0; lane < num_lanes_; ++lane) {
    check_action(actions_[static_cast<size_t>(lane)], lane);
    check_steppable(lane);
  }
}

void Vector::step(const int64_t* actions, const StepRows& arrays) {
  const auto lock = enter();
  take_actions(actions);
  const size_t size = lanes_->stack_bytes();
  pool_->run(num_lanes_, [&](int thread, int lane) {
    const int64_t action = actions_[static_cast<size_t>(lane)];
    lanes_->step(thread, lane, static_cast<int>(action), arrays.at(lane, size));
  });
}

void Vector::start(const int64_t* actions, const StepRows& arrays) {
  const auto lock = enter();
  take_actions(actions);
  const size_t size = lanes_->stack_bytes();
  step_ = pool_->start(num_lanes_, [this, arrays, size](int thread, int lane) {
    const int64_t action = actions_[static_cast<size_t>(lane)];
    lanes_->step(thread, lane, static_cast<int>(action), arrays.at(lane, size));
  });
}

void Vector::finish() {
  const auto lock = enter();
  if (!step_) throw std::runtime_error("no step is under way");
  const std::shared_ptr<Pool::Job> job = std::exchange(step_, nullptr);
  pool_->wait(*job);
}

void Vector::send(std::span<const int64_t> given_actions, std::span<const int64_t> given_lanes) {
  const auto lock = enter();
  if (given_actions.size() != given_lanes.size()) {
    throw std::invalid_argument("send needs an action for each lane, and got " +
                                std::to_string(given_actions.size()) + " for " +
                                std::to_string(given_lanes.size()));
  }
  // What is checked must not change, whatever becomes of the caller's arrays.
  const std::vector<int64_t> actions(given_actions.begin(), given_actions.end());
  const std::vector<int64_t> lanes(given_lanes.begin(), given_lanes.end());
  std::vector<bool> seen(static_cast<size_t>(num_lanes_));
  for (size_t i = 0; i < lanes.size(); ++i) {
    const int lane = idle_lane(lanes[i]);
    if (seen[static_cast<size_t>(lane)]) {
      throw std::invalid_argument("lane " + std::to_string(lane) + " is named twice");
    }
    seen[static_cast<size_t>(lane)] = true;
    check_action(actions[i], lane);
    check_steppable(lane);
  }
  async_->send(actions, lanes);
  if (!pool_->has_workers()) return;  // `receive` plays them all
  // As many turns as steps: a turn that finds the queue empty has been forestalled by `receive`.
  sent_.push_back(pool_->start(static_cast<int>(lanes.size()),
                               [this](int thread, int) { async_->work(thread); }));
}

void Vector::receive(int count, const StepRows& arrays, int64_t* lanes) {
  const auto lock = enter();
  refuse_under_way();
  async_->receive(count, arrays, lanes);
  std::erase_if(sent_, [](const auto& job) { return Pool::is_complete(*job); });
}

void Vector::copy_ram(std::span<const int64_t> lanes, uint8_t* out) {
  const auto lock = enter();
  for (size_t i = 0; i < lanes.size(); ++i) {
    std::memcpy(out + i * 2048, lanes_->ram(idle_lane(lanes[i])), 2048);
  }
}

std::pair<const uint8_t*, std::shared_ptr<const LaneSet>> Vector::ram(int64_t lane) {
  const auto lock = enter();
  return {lanes_->ram(checked_lane(lane)), lanes_};
}

void Vector::screen(int64_t lane, uint8_t* out) {
  const auto lock = enter();
  lanes_->screen(started_lane(lane), out);
}

std::vector<uint8_t> Vector::save(int64_t lane) {
  const auto lock = enter();
  return lanes_->save(started_lane(lane));
}

void Vector::load(int64_t lane, std::span<const uint8_t> bytes) {
  const auto lock = enter();
  lanes_->load(idle_lane(lane), bytes);
}

void Vector::clone(int64_t source, int64_t target) {
  const auto lock = enter();
  const int from = started_lane(source);
  lanes_->clone(from, idle_lane(target));
}

void Vector::observe(int64_t lane, uint8_t* out) {
  const auto lock = enter();
  lanes_->write_stack(started_lane(lane), out);
}

void Vector::copy_info(int64_t lane, int32_t* out) {
  const auto lock = enter();
  std::memcpy(out, lanes_->info(started_lane(lane)), kInfoColumns * sizeof(int32_t));
}

void Vector::set_stages(int64_t lane, std::vector<uint8_t> stages) {
  const auto lock = enter();
  lanes_->set_stages(idle_lane(lane), std::move(stages));
}

void Vector::set_reward_weights(const RewardWeights& weights) {
  const auto lock = enter();
  require_idle("set_reward_weights");
  lanes_->set_weights(weights);
}

void Vector::set_stage_weights(std::vector<double> weights) {
  const auto lock = enter();
  require_idle("set_stage_weights");
  lanes_->set_stage_weights(std::move(weights));
}

void Vector::set_script(std::vector<uint8_t> masks) {
  const auto lock = enter();
  require_idle("set_script");
  lanes_->set_script(make_script(std::move(masks)));
}

void Vector::force(std::span<const int64_t> lanes, std::vector<uint8_t> masks) {
  const auto lock = enter();
  const Script script = make_script(std::move(masks));
  std::vector<int> chosen;
  for (const int64_t lane : lanes) chosen.push_back(started_lane(lane));
  for (const int lane : chosen) lanes_->force(lane, script);
}

void Vector::add_restart(int32_t id, std::span<const uint8_t> state, std::vector<uint8_t> masks,
                         double weight) {
  const auto lock = enter();
  require_idle("add_restart");
  lanes_->add_restart(id, state, make_script(std::move(masks)), weight);
}

void Vector::weigh_restart(int32_t id, double weight) {
  const auto lock = enter();
  require_idle("weigh_restart");
  if (!lanes_->weigh_restart(id, weight)) {
    throw std::invalid_argument("there is no restart point " + std::to_string(id));
  }
}

void Vector::remove_restart(int32_t id) {
  const auto lock = enter();
  require_idle("remove_restart");
  if (!lanes_->remove_restart(id)) {
    throw std::invalid_argument("there is no restart point " + std::to_string(id));
  }
}

void Vector::set_restart_share(double share) {
  const auto lock = enter();
  require_idle("set_restart_share");
  lanes_->set_restart_share(share);
}

void Vector::set_restart_shares(std::vector<double> shares) {
  const auto lock = enter();
  require_idle("set_restart_shares");
  lanes_->set_restart_shares(std::move(shares));
}

int Vector::num_restarts() {
  const auto lock = enter();
  refuse_under_way();
  return lanes_->num_restarts();
}

void Vector::take_shaping(double* out) {
  const auto lock = enter();
  require_idle("take_shaping");
  lanes_->take_shaping(out);
}

size_t Vector::memory_bytes() {
  const auto lock = enter();
  return lanes_->memory_bytes() + async_->memory_bytes() + sent_.capacity() * sizeof sent_[0];
}

void Vector::close() {
  if (is_parents()) {
    abandon();
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  settle();
  pool_.reset();
  async_.reset();
  lanes_.reset();
}

}  // namespace wz
