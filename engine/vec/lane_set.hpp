#pragma once

#include <memory>
#include <span>
#include <vector>

#include "vec/lane.hpp"

namespace wz {

/// All lanes of a vector, whichever machine they run on. Different threads may use different lanes
/// at the same time, each with its own `thread` number.
class LaneSet {
 public:
  virtual ~LaneSet() = default;

  /// `stages` has one list for each lane. Throws std::invalid_argument for what makes no sense.
  static std::unique_ptr<LaneSet> make(const LaneConfig& config, CartridgePtr cart,
                                       const NativeCode& native, Simd simd,
                                       std::vector<std::vector<uint8_t>> stages, int num_threads);

  int size() const { return size_; }
  const LaneConfig& config() const { return config_; }
  size_t stack_bytes() const { return stack_bytes_; }

  virtual void reset(int thread, int lane) = 0;
  virtual void step(int thread, int lane, int action, const StepRows& rows) = 0;

  virtual LaneStatus status(int lane) const = 0;
  virtual void write_stack(int lane, uint8_t* out) const = 0;
  virtual const int32_t* info(int lane) const = 0;
  virtual const uint8_t* ram(int lane) const = 0;
  /// 240 x 256 x 3 RGB of the last frame.
  virtual void screen(int lane, uint8_t* out) = 0;

  virtual void seed(int lane, uint64_t seed) = 0;
  virtual void set_weights(const RewardWeights& weights) = 0;
  virtual void set_stage_weights(std::vector<double> weights) = 0;
  /// What every episode starts with from now on; null is nothing.
  virtual void set_script(Script script) = 0;
  virtual void force(int lane, Script script) = 0;
  virtual void add_restart(int32_t id, std::span<const uint8_t> bytes, Script script,
                           double weight) = 0;
  /// False when there is no such point; the same for removing one.
  virtual bool weigh_restart(int32_t id, double weight) = 0;
  virtual bool remove_restart(int32_t id) = 0;
  virtual void set_restart_share(double share) = 0;
  virtual void set_restart_shares(std::vector<double> shares) = 0;
  virtual int num_restarts() const = 0;
  /// kShapingFields numbers, then resets the counters.
  virtual void take_shaping(double* out) = 0;
  virtual void set_stages(int lane, std::vector<uint8_t> stages) = 0;
  virtual std::vector<uint8_t> save(int lane) const = 0;
  virtual void load(int lane, std::span<const uint8_t> bytes) = 0;
  virtual void clone(int source, int target) = 0;
  virtual size_t memory_bytes() const = 0;

 protected:
  LaneSet(int size, const LaneConfig& config) : size_(size), config_(config) {}
  size_t stack_bytes_ = 0;

 private:
  int size_;
  LaneConfig config_;
};

}  // namespace wz
