#include "vec/lane_set.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "vec/savestate.hpp"

namespace wz {
namespace {

void draw_screen(const Machine& m, const Cartridge& cart, VblankScratch& scratch, uint8_t* out) {
  screen_of(m, cart, scratch.picture, out);
}

void draw_screen(const nespy::Machine& m, const Cartridge&, NesPyScratch&, uint8_t* out) {
  screen_of(m, out);
}

void check_weight(double weight) {
  if (!std::isfinite(weight) || weight < 0) {
    throw std::invalid_argument("a restart point's weight must be finite and not negative");
  }
}

template <Console C>
class LanesOn final : public LaneSet {
 public:
  using Scratch = typename Lane<C>::Scratch;

  LanesOn(const LaneConfig& config, CartridgePtr cart, const NativeCode& native, Simd simd,
          std::vector<std::vector<uint8_t>> stages, int num_threads)
      : LaneSet(static_cast<int>(stages.size()), config), lanes_(stages.size()) {
    context_.config = config;
    context_.cart = std::move(cart);
    if (C::kTiming == Timing::kVblank) context_.native = native;
    context_.starts = shared_start_states<C>(context_.cart);
    for (const auto& list : stages) require_stages(list);
    context_.config.rules.last_world = context_.starts->table().last_world();
    context_.fingerprint = fingerprint(config, *context_.cart);
    context_.beginnings.script = make_script(config.script);
    context_.plan = std::make_unique<ObservePlan>(config.observe, simd);
    stack_bytes_ = context_.stack_bytes();
    history_.resize(lanes_.size() * stack_bytes_);
    for (size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i].stages = std::move(stages[i]);
      lanes_[i].history = history_.data() + i * stack_bytes_;
      lanes_[i].rng.state = i;
    }
    for (int i = 0; i < num_threads; ++i) scratch_.push_back(std::make_unique<Scratch>());
  }

  void reset(int thread, int lane) override { at(lane).reset(context_, scratch(thread)); }
  void step(int thread, int lane, int action, const StepRows& rows) override {
    at(lane).step(context_, scratch(thread), action, rows);
  }

  LaneStatus status(int lane) const override { return at(lane).status; }
  void write_stack(int lane, uint8_t* out) const override { at(lane).write_stack(context_, out); }
  const int32_t* info(int lane) const override { return at(lane).info; }
  const uint8_t* ram(int lane) const override { return at(lane).state.ram; }
  void screen(int lane, uint8_t* out) override {
    draw_screen(at(lane).state, *context_.cart, scratch(0), out);
  }

  void seed(int lane, uint64_t seed) override { at(lane).rng.state = seed; }
  void set_weights(const RewardWeights& weights) override {
    check_weights(weights);
    context_.config.rules.weights = weights;
  }
  void set_stage_weights(std::vector<double> weights) override {
    if (!weights.empty()) check_stage_weights(weights);
    context_.beginnings.stage_weights = std::move(weights);
  }
  void set_script(Script script) override { context_.beginnings.script = std::move(script); }
  void force(int lane, Script script) override { at(lane).force(std::move(script)); }

  void add_restart(int32_t id, std::span<const uint8_t> bytes, Script script,
                   double weight) override {
    if (id < 1) throw std::invalid_argument("a restart point's id must be at least 1");
    if (id == kHalfwayRestart) {
      throw std::invalid_argument("the restart point " + std::to_string(id) +
                                  " is that of episodes that begin halfway");
    }
    check_weight(weight);
    if (context_.beginnings.points.size() >= kMaxRestarts) {
      throw std::invalid_argument("there are at most " + std::to_string(kMaxRestarts) +
                                  " restart points");
    }
    auto point = std::make_unique<RestartPoint<C>>();
    point->id = id;
    point->history.resize(stack_bytes_);
    point->script = std::move(script);
    Lane<C> lane;
    lane.history = point->history.data();
    load_lane(lane, context_, bytes);
    if (lane.status != LaneStatus::kRunning) {
      throw std::invalid_argument("a restart point must be a running episode, not an ended one");
    }
    point->state = lane.state;
    point->episode = lane.episode;
    remove_restart(id);
    // In the order of ids: what is drawn must not depend on the order in which they came.
    const int32_t stage = point->episode.start_stage;
    context_.beginnings.points.insert(context_.beginnings.find(id),
                                      {id, stage, weight, std::move(point)});
  }
  bool weigh_restart(int32_t id, double weight) override {
    check_weight(weight);
    const auto found = context_.beginnings.find(id);
    if (found == context_.beginnings.points.end() || found->id != id) return false;
    found->weight = weight;
    return true;
  }
  bool remove_restart(int32_t id) override {
    const auto found = context_.beginnings.find(id);
    if (found == context_.beginnings.points.end() || found->id != id) return false;
    context_.beginnings.points.erase(found);
    return true;
  }
  void set_restart_share(double share) override {
    if (!(share >= 0 && share <= 1)) {
      throw std::invalid_argument("the share of restarts must be in 0..1");
    }
    context_.beginnings.share = share;
    context_.beginnings.stage_shares.clear();
  }
  void set_restart_shares(std::vector<double> shares) override {
    check_stage_shares(shares);
    context_.beginnings.stage_shares = std::move(shares);
  }
  int num_restarts() const override { return static_cast<int>(context_.beginnings.points.size()); }

  void take_shaping(double* out) override {
    std::fill(out, out + kShapingFields, 0.0);
    for (Lane<C>& lane : lanes_) lane.shaping.take(out);
  }
  void set_stages(int lane, std::vector<uint8_t> stages) override {
    check_stages(stages);
    require_stages(stages);
    at(lane).stages = std::move(stages);
  }
  std::vector<uint8_t> save(int lane) const override { return save_lane(at(lane), context_); }
  void load(int lane, std::span<const uint8_t> bytes) override {
    load_lane(at(lane), context_, bytes);
  }
  void clone(int source, int target) override {
    if (source == target) return;
    uint8_t* history = at(target).history;
    at(target) = at(source);
    at(target).history = history;
    std::memcpy(history, at(source).history, stack_bytes_);
  }
  size_t memory_bytes() const override {
    size_t bytes = lanes_.capacity() * sizeof(Lane<C>) + history_.capacity() +
                   scratch_.size() * sizeof(Scratch);
    for (const Lane<C>& lane : lanes_) bytes += lane.stages.capacity();
    for (const auto& one : context_.beginnings.points) {
      bytes += sizeof one + sizeof *one.point + one.point->history.capacity();
    }
    return bytes;
  }

 private:
  Lane<C>& at(int lane) { return lanes_[static_cast<size_t>(lane)]; }
  const Lane<C>& at(int lane) const { return lanes_[static_cast<size_t>(lane)]; }
  void require_stages(const std::vector<uint8_t>& stages) const {
    for (uint8_t stage : stages) context_.starts->table().require(stage);
  }
  Scratch& scratch(int thread) { return *scratch_[static_cast<size_t>(thread)]; }

  LaneContext<C> context_;
  std::vector<Lane<C>> lanes_;
  std::vector<uint8_t> history_;
  std::vector<std::unique_ptr<Scratch>> scratch_;
};

}  // namespace

std::unique_ptr<LaneSet> LaneSet::make(const LaneConfig& config, CartridgePtr cart,
                                       const NativeCode& native, Simd simd,
                                       std::vector<std::vector<uint8_t>> stages, int num_threads) {
  check_config(config);
  if (stages.empty()) throw std::invalid_argument("a vector needs at least one lane");
  for (const auto& list : stages) check_stages(list);
  if (config.timing == Timing::kVblank) {
    return std::make_unique<LanesOn<VblankConsole>>(config, std::move(cart), native, simd,
                                                    std::move(stages), num_threads);
  }
  return std::make_unique<LanesOn<NesPyConsole>>(config, std::move(cart), native, simd,
                                                 std::move(stages), num_threads);
}

}  // namespace wz
