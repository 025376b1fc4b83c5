#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/arguments.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/gil.hpp"
#include "game/rom_check.hpp"
#include "vec/vector.hpp"

namespace wz::bindings {

/// Threads that several vectors share.
class Threads {
 public:
  explicit Threads(int num_threads) : pool_(Vector::make_pool(num_threads)) {}
  int num_threads() const { return pool_->num_threads(); }
  const std::shared_ptr<Pool>& pool() const { return pool_; }

 private:
  std::shared_ptr<Pool> pool_;
};

/// `Vector` with Python's arrays, checked and kept in place.
class PyVector {
 public:
  PyVector(const nb::bytes& rom, const LaneConfig& lanes, const std::vector<Integers>& stages,
           std::shared_ptr<native::Program> native,
           const std::variant<int, const Threads*>& num_threads, const std::string& simd) {
    Vector::Stages lists;
    for (const Integers& list : stages) lists.push_back(stage_list(list));
    CartridgePtr cart = parse_rom(rom);
    require_super_mario_bros(*cart);
    const Simd level = parse_simd(simd);
    const LaneConfig config = lanes;  // the caller's may change once others run
    obs_shape_ = {config.frame_stack};
    for (const int length : config.observe.shape()) obs_shape_.push_back(length);
    const ReleasedGil release;
    auto pool = std::holds_alternative<int>(num_threads)
                    ? Vector::make_pool(std::get<int>(num_threads))
                    : std::get<const Threads*>(num_threads)->pool();
    vector_ = std::make_unique<Vector>(config, std::move(cart), std::move(native), level,
                                       std::move(lists), std::move(pool));
  }

  // Stopping threads must not wait for the GIL that this thread holds. The arrays of a step that is
  // under way go last.
  ~PyVector() {
    const ReleasedGil release;
    vector_.reset();
  }
  PyVector(const PyVector&) = delete;
  PyVector& operator=(const PyVector&) = delete;

  nb::tuple obs_shape() const {
    nb::list shape;
    for (const Py_ssize_t length : obs_shape_) shape.append(length);
    return nb::tuple(shape);
  }
  int num_lanes() const { return vector_->num_lanes(); }
  int num_threads() const { return vector_->num_threads(); }

  void seed(const std::vector<std::optional<uint64_t>>& seeds) {
    const ReleasedGil release;
    vector_->seed(seeds);
  }

  void reset(nb::handle mask, nb::handle obs, nb::handle info) {
    const auto m = Array<bool>::optional(mask, "mask", {lanes()}, Access::kRead);
    const Array<uint8_t> o(obs, "obs", rows_of(lanes()), Access::kWrite);
    const Array<int32_t> i(info, "info", {lanes(), kInfoColumns}, Access::kWrite);
    const ReleasedGil release;
    vector_->reset(m.data(), o.data(), i.data());
  }

  /// Everything a step writes, held while it does.
  struct Outputs {
    Array<uint8_t> obs;
    Array<float> reward;
    Array<bool> terminated;
    Array<bool> truncated;
    Array<int32_t> info;
    Array<uint8_t> final_obs;
    Array<int32_t> final_info;

    StepRows arrays() const {
      return {obs.data(),  reward.data(),    terminated.data(), truncated.data(),
              info.data(), final_obs.data(), final_info.data()};
    }
  };

  Outputs outputs(Py_ssize_t rows, nb::handle obs, nb::handle reward, nb::handle terminated,
                  nb::handle truncated, nb::handle info, nb::handle final_obs,
                  nb::handle final_info) const {
    return {
        {obs, "obs", rows_of(rows), Access::kWrite},
        {reward, "reward", {rows}, Access::kWrite},
        {terminated, "terminated", {rows}, Access::kWrite},
        {truncated, "truncated", {rows}, Access::kWrite},
        {info, "info", {rows, kInfoColumns}, Access::kWrite},
        Array<uint8_t>::optional(final_obs, "final_obs", rows_of(rows), Access::kWrite),
        Array<int32_t>::optional(final_info, "final_info", {rows, kInfoColumns}, Access::kWrite)};
  }

  void step(nb::handle actions, nb::handle obs, nb::handle reward, nb::handle terminated,
            nb::handle truncated, nb::handle info, nb::handle final_obs, nb::handle final_info) {
    const Array<int64_t> a(actions, "actions", {lanes()}, Access::kRead);
    const Outputs out =
        outputs(lanes(), obs, reward, terminated, truncated, info, final_obs, final_info);
    const ReleasedGil release;
    vector_->step(a.data(), out.arrays());
  }

  void start(nb::handle actions, nb::handle obs, nb::handle reward, nb::handle terminated,
             nb::handle truncated, nb::handle info, nb::handle final_obs, nb::handle final_info) {
    const Array<int64_t> a(actions, "actions", {lanes()}, Access::kRead);
    auto out = std::make_unique<Outputs>(
        outputs(lanes(), obs, reward, terminated, truncated, info, final_obs, final_info));
    const ReleasedGil release;
    const std::lock_guard<std::mutex> lock(under_way_mutex_);
    vector_->start(a.data(), out->arrays());
    under_way_ = std::move(out);  // there was none, or the step would have been refused
  }

  void finish() {
    // Held to the end of the call, whatever becomes of the step, and let go with the GIL.
    std::unique_ptr<Outputs> out;
    const ReleasedGil release;
    const std::lock_guard<std::mutex> lock(under_way_mutex_);
    out = std::move(under_way_);
    vector_->finish();
  }

  void send(nb::handle actions, nb::handle lane_ids) {
    const Array<int64_t> l(lane_ids, "lanes", {-1}, Access::kRead);
    const Array<int64_t> a(actions, "actions", {l.length()}, Access::kRead);
    const auto count = static_cast<size_t>(l.length());
    const ReleasedGil release;
    vector_->send({a.data(), count}, {l.data(), count});
  }

  void recv(nb::handle obs, nb::handle reward, nb::handle terminated, nb::handle truncated,
            nb::handle info, nb::handle lane_ids, nb::handle final_obs, nb::handle final_info) {
    const Array<int64_t> l(lane_ids, "lanes", {-1}, Access::kWrite);
    const Py_ssize_t count = l.length();
    if (count < 1 || count > lanes()) {
      throw std::invalid_argument("a batch must hold 1.." + std::to_string(lanes()) +
                                  " lanes, and holds " + std::to_string(count));
    }
    const Outputs out =
        outputs(count, obs, reward, terminated, truncated, info, final_obs, final_info);
    const ReleasedGil release;
    vector_->receive(static_cast<int>(count), out.arrays(), l.data());
  }

  nb::object ram(const Integers& lane_ids) {
    void* out;
    nb::object result =
        new_array({static_cast<Py_ssize_t>(lane_ids.size()), 2048}, Dtype::kUint8, &out);
    const ReleasedGil release;
    vector_->copy_ram(lane_ids, static_cast<uint8_t*>(out));
    return result;
  }

  nb::object ram_view(int64_t lane) {
    using Owner = std::shared_ptr<const LaneSet>;
    auto [bytes, lane_set] = [&] {
      const ReleasedGil release;
      return vector_->ram(lane);
    }();
    nb::capsule owner(new Owner(std::move(lane_set)),
                      [](void* p) noexcept { delete static_cast<Owner*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>>(bytes, {2048}, owner));
  }

  nb::object screen(int64_t lane) {
    void* out;
    nb::object result = new_array({kHeight, kWidth, 3}, Dtype::kUint8, &out);
    const ReleasedGil release;
    vector_->screen(lane, static_cast<uint8_t*>(out));
    return result;
  }

  nb::bytes save(int64_t lane) {
    const std::vector<uint8_t> bytes = [&] {
      const ReleasedGil release;
      return vector_->save(lane);
    }();
    return nb::bytes(bytes.data(), bytes.size());
  }

  void load(int64_t lane, const nb::bytes& state) {
    const std::span<const uint8_t> bytes(static_cast<const uint8_t*>(state.data()), state.size());
    const ReleasedGil release;
    vector_->load(lane, bytes);
  }

  void clone(int64_t source, int64_t target) {
    const ReleasedGil release;
    vector_->clone(source, target);
  }

  void observe(int64_t lane, nb::handle obs) {
    const Array<uint8_t> o(obs, "obs", obs_shape_, Access::kWrite);
    const ReleasedGil release;
    vector_->observe(lane, o.data());
  }

  nb::object info(int64_t lane) {
    void* out;
    nb::object result = new_array({kInfoColumns}, Dtype::kInt32, &out);
    const ReleasedGil release;
    vector_->copy_info(lane, static_cast<int32_t*>(out));
    return result;
  }

  void set_stages(int64_t lane, const Integers& stages) {
    const ReleasedGil release;
    vector_->set_stages(lane, stage_list(stages));
  }

  void set_reward_weights(const RewardWeights& weights) {
    const RewardWeights copy = weights;  // the caller's may change once others run
    const ReleasedGil release;
    vector_->set_reward_weights(copy);
  }

  void set_stage_weights(const std::vector<double>& weights) {
    const ReleasedGil release;
    vector_->set_stage_weights(weights);
  }

  void set_script(const nb::bytes& masks) {
    auto copy = masks_of(masks);
    const ReleasedGil release;
    vector_->set_script(std::move(copy));
  }

  void force(const Integers& lane_ids, const nb::bytes& masks) {
    auto copy = masks_of(masks);
    const ReleasedGil release;
    vector_->force(lane_ids, std::move(copy));
  }

  void add_restart(int32_t id, const nb::bytes& state, const nb::bytes& masks, double weight) {
    const std::span<const uint8_t> bytes(static_cast<const uint8_t*>(state.data()), state.size());
    auto copy = masks_of(masks);
    const ReleasedGil release;
    vector_->add_restart(id, bytes, std::move(copy), weight);
  }

  void weigh_restart(int32_t id, double weight) {
    const ReleasedGil release;
    vector_->weigh_restart(id, weight);
  }

  void remove_restart(int32_t id) {
    const ReleasedGil release;
    vector_->remove_restart(id);
  }

  void set_restart_share(double share) {
    const ReleasedGil release;
    vector_->set_restart_share(share);
  }

  void set_restart_shares(std::vector<double> shares) {
    const ReleasedGil release;
    vector_->set_restart_shares(std::move(shares));
  }

  int num_restarts() {
    const ReleasedGil release;
    return vector_->num_restarts();
  }

  std::vector<double> take_shaping() {
    std::vector<double> sums(kShapingFields);
    const ReleasedGil release;
    vector_->take_shaping(sums.data());
    return sums;
  }

  size_t memory_bytes() {
    const ReleasedGil release;
    return vector_->memory_bytes();
  }

  void close() {
    std::unique_ptr<Outputs> out;
    const ReleasedGil release;
    const std::lock_guard<std::mutex> lock(under_way_mutex_);
    vector_->close();
    out = std::move(under_way_);
  }

 private:
  Py_ssize_t lanes() const { return vector_->num_lanes(); }
  Shape rows_of(Py_ssize_t rows) const {
    Shape shape{rows};
    shape.insert(shape.end(), obs_shape_.begin(), obs_shape_.end());
    return shape;
  }

  /// What a step writes to while the caller does something else: there exactly as long as the step
  /// is, for which the mutex is held around both. No thread waits for the GIL while it holds the
  /// mutex.
  std::unique_ptr<Outputs> under_way_;
  std::mutex under_way_mutex_;
  std::unique_ptr<Vector> vector_;
  Shape obs_shape_;
};

}  // namespace wz::bindings
