#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "native/program.hpp"
#include "vec/async.hpp"
#include "vec/lane_set.hpp"
#include "vec/pool.hpp"

namespace wz {

/// Lanes, and the threads that step them, which other vectors may use too. Checks everything the
/// caller gives except the sizes of his arrays. Calls from several threads are served one after the
/// other.
///
/// Throws std::invalid_argument for wrong values, std::out_of_range for lanes that do not exist,
/// std::runtime_error for calls at the wrong time and for failures inside a lane.
///
/// A forked child may go on with a vector that was idle at the fork. One that was not is of no use
/// to it: threads that only the parent has were in the middle of it, and may hold its locks for
/// ever. Such a one throws std::runtime_error, and is closed without being waited for.
class Vector {
 public:
  using Stages = std::vector<std::vector<uint8_t>>;

  Vector(const LaneConfig& config, CartridgePtr cart, std::shared_ptr<const native::Program> native,
         Simd simd, Stages stages, std::shared_ptr<Pool> pool);
  ~Vector();

  int num_lanes() const { return num_lanes_; }
  int num_threads() const { return num_threads_; }
  /// Threads for one vector or several. Throws std::invalid_argument for numbers out of range.
  static std::shared_ptr<Pool> make_pool(int num_threads);
  const LaneConfig& config() const { return config_; }

  /// None keeps a lane's stream.
  void seed(std::span<const std::optional<uint64_t>> seeds);
  /// `mask` may be null: all lanes. Every row of `obs` is written; rows of `info` only for lanes
  /// that were reset.
  void reset(const bool* mask, uint8_t* obs, int32_t* info);
  void step(const int64_t* actions, const StepRows& arrays);
  /// Begins a step of all lanes and returns at once; `finish` waits for it, and throws what went
  /// wrong. Between the two no other call may touch the lanes, and the results must stay in place.
  void start(const int64_t* actions, const StepRows& arrays);
  void finish();
  void send(std::span<const int64_t> actions, std::span<const int64_t> lanes);
  void receive(int count, const StepRows& arrays, int64_t* lanes);

  void copy_ram(std::span<const int64_t> lanes, uint8_t* out);
  /// The RAM itself, and what keeps it alive.
  std::pair<const uint8_t*, std::shared_ptr<const LaneSet>> ram(int64_t lane);
  void screen(int64_t lane, uint8_t* out);
  std::vector<uint8_t> save(int64_t lane);
  void load(int64_t lane, std::span<const uint8_t> bytes);
  void clone(int64_t source, int64_t target);
  void observe(int64_t lane, uint8_t* out);
  void copy_info(int64_t lane, int32_t* out);
  void set_stages(int64_t lane, std::vector<uint8_t> stages);
  /// Rewards of the steps from now on.
  void set_reward_weights(const RewardWeights& weights);
  /// Of the 32 stages, for all lanes' draws from now on; empty = all alike.
  void set_stage_weights(std::vector<double> weights);
  /// Masks that every episode starts with from now on; empty = none.
  void set_script(std::vector<uint8_t> masks);
  /// Masks that some lanes press from now on, whatever their actions are.
  void force(std::span<const int64_t> lanes, std::vector<uint8_t> masks);
  void add_restart(int32_t id, std::span<const uint8_t> state, std::vector<uint8_t> masks,
                   double weight);
  void weigh_restart(int32_t id, double weight);
  void remove_restart(int32_t id);
  void set_restart_share(double share);
  void set_restart_shares(std::vector<double> shares);
  int num_restarts();
  /// kShapingFields sums over all lanes since the last call.
  void take_shaping(double* out);
  size_t memory_bytes();
  void close();

 private:
  /// A call that is being served: counted, and the only one.
  class Call {
   public:
    explicit Call(Vector& vector);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Vector& vector_;
    std::unique_lock<std::mutex> lock_;
  };

  Call enter();
  bool is_parents() const;
  void abandon() noexcept;
  int checked_lane(int64_t lane) const;
  int idle_lane(int64_t lane);
  int started_lane(int64_t lane);
  void require_idle(const char* what);
  void check_action(int64_t action, int64_t lane) const;
  void check_steppable(int lane) const;
  void take_actions(const int64_t* actions);
  void refuse_under_way() const;
  void settle() noexcept;

  LaneConfig config_;
  int num_lanes_;
  int num_threads_;
  std::mutex mutex_;
  std::atomic<int> calls_{0};   ///< being served, or waiting for that
  std::atomic<pid_t> process_;  ///< whose lanes these are
  std::shared_ptr<const native::Program> native_;
  std::shared_ptr<LaneSet> lanes_;  ///< null once closed
  std::unique_ptr<AsyncSteps> async_;
  std::shared_ptr<Pool> pool_;
  std::shared_ptr<Pool::Job> step_;  ///< begun and not finished
  std::vector<int64_t> actions_;     ///< of the last step
  std::vector<std::shared_ptr<Pool::Job>> sent_;
};

}  // namespace wz
