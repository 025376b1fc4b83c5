#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "vec/vector.hpp"

/// A vector with arrays of its own, for tests.
struct Rig {
  explicit Rig(const wz::LaneConfig& config, const wz::CartridgePtr& cart,
               wz::Vector::Stages stages, int threads = 1)
      : Rig(config, cart, std::move(stages), wz::Vector::make_pool(threads)) {}
  Rig(const wz::LaneConfig& config, const wz::CartridgePtr& cart, wz::Vector::Stages stages,
      std::shared_ptr<wz::Pool> pool)
      : lanes(static_cast<int>(stages.size())),
        vector(config, cart, nullptr, wz::best_simd(), std::move(stages), std::move(pool)),
        row(wz::ObservePlan(config.observe).size() * static_cast<size_t>(config.frame_stack)),
        obs(rows() * row),
        reward(rows()),
        terminated(new bool[rows()]()),
        truncated(new bool[rows()]()),
        info(rows() * wz::kInfoColumns),
        final_obs(rows() * row),
        final_info(rows() * wz::kInfoColumns) {}

  size_t rows() const { return static_cast<size_t>(lanes); }
  void seed(uint64_t first = 1) {
    std::vector<std::optional<uint64_t>> seeds;
    for (int i = 0; i < lanes; ++i) seeds.push_back(first + static_cast<uint64_t>(i));
    vector.seed(seeds);
  }
  void reset(const bool* mask = nullptr) { vector.reset(mask, obs.data(), info.data()); }
  wz::StepRows arrays() {
    return {obs.data(),  reward.data(),    terminated.get(), truncated.get(),
            info.data(), final_obs.data(), final_info.data()};
  }
  void step(const std::vector<int64_t>& actions) { vector.step(actions.data(), arrays()); }
  void step(int64_t action) { step(std::vector<int64_t>(rows(), action)); }
  int32_t info_of(int lane, int column) const {
    return info[static_cast<size_t>(lane) * wz::kInfoColumns + static_cast<size_t>(column)];
  }
  std::vector<uint8_t> obs_of(int lane) const { return cut(obs, lane); }
  std::vector<uint8_t> final_obs_of(int lane) const { return cut(final_obs, lane); }
  std::vector<uint8_t> ram_of(int64_t lane) {
    std::vector<uint8_t> ram(2048);
    vector.copy_ram({&lane, 1}, ram.data());
    return ram;
  }
  bool ended(int lane) const {
    const auto i = static_cast<size_t>(lane);
    return terminated[i] || truncated[i];
  }

  int lanes;
  wz::Vector vector;
  size_t row;
  std::vector<uint8_t> obs;
  std::vector<float> reward;
  std::unique_ptr<bool[]> terminated;
  std::unique_ptr<bool[]> truncated;
  std::vector<int32_t> info;
  std::vector<uint8_t> final_obs;
  std::vector<int32_t> final_info;

 private:
  std::vector<uint8_t> cut(const std::vector<uint8_t>& from, int lane) const {
    const uint8_t* begin = from.data() + static_cast<size_t>(lane) * row;
    return {begin, begin + row};
  }
};

/// Right-biased play on small observations.
inline wz::LaneConfig small_config() {
  wz::LaneConfig config;
  config.buttons = {0x00, 0x80, 0x81, 0x82, 0x83, 0x40};
  config.observe.height = config.observe.width = 20;
  config.rules.weights = {0.1f, -0.01f, 5, -5, 15};
  return config;
}

/// Lanes whose episodes end often and start anew in the same step.
inline wz::LaneConfig restless_config() {
  wz::LaneConfig config = small_config();
  config.autoreset = wz::Autoreset::kSameStep;
  config.time_limit = 11;
  config.sticky = 0.3;
  return config;
}

/// The same actions for every rig that asks with the same numbers.
inline int64_t scripted_action(int step, int lane) {
  const auto mixed = static_cast<uint32_t>(step / 3 * 7919 + lane * 104729) * 2654435761u >> 16;
  return static_cast<int64_t>(mixed % 6);
}
