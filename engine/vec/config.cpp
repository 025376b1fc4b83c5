#include "vec/config.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include "vec/hash.hpp"

namespace wz {
namespace {

void require(bool condition, const std::string& sentence) {
  if (!condition) throw std::invalid_argument(sentence);
}

void require_range(const char* name, int value, int low, int high) {
  require(value >= low && value <= high, std::string(name) + " must be in " + std::to_string(low) +
                                             ".." + std::to_string(high) + ", and is " +
                                             std::to_string(value));
}

void add(Hash& hash, int value) { hash.number(static_cast<uint64_t>(static_cast<int64_t>(value))); }
void add(Hash& hash, float value) { hash.real(static_cast<double>(value)); }

/// Reward terms that every saved lane depends on.
constexpr int kFirstTerms = 9;

/// Kinds of observation as saved lanes have always named them. A kind that is no picture has a
/// number of its own in `other`.
struct KindNumbers {
  int gray, other, planar;
};

KindNumbers numbers_of(ObserveKind kind) {
  switch (kind) {
    case ObserveKind::kGray:
      return {1, 0, 0};
    case ObserveKind::kRgb:
      return {0, 0, 0};
    case ObserveKind::kPlanar:
      return {0, 0, 1};
    default:
      return {1, 1 + static_cast<int>(kind) - static_cast<int>(ObserveKind::kTiles), 0};
  }
}

}  // namespace

void check_config(const LaneConfig& c) {
  require(!c.buttons.empty() && c.buttons.size() <= 256,
          "buttons must hold 1 to 256 actions, and holds " + std::to_string(c.buttons.size()));
  require_range("frame_skip", c.frame_skip, 1, kMaxFrameSkip);
  require_range("frame_stack", c.frame_stack, 1, kMaxFrameStack);
  require_range("time_limit", c.time_limit, 0, INT32_MAX);
  require_range("stagnation_limit", c.stagnation_limit, 0, INT32_MAX);
  require_range("start_delay", c.delay_low, 0, kMaxStartDelay);
  require_range("start_delay", c.delay_high, c.delay_low, kMaxStartDelay);
  require(c.start_halfway >= 0 && c.start_halfway <= 1, "start_halfway must be a share in 0..1");
  require(c.sticky >= 0 && c.sticky < 1, "sticky must be a chance in [0, 1)");
  check_weights(c.rules.weights);
}

void check_weights(const RewardWeights& w) {
  const auto named = [](const char* name) { return "the reward weight " + std::string(name); };
  for_each_weight(w, [&](const char* name, auto weight) {
    require(std::isfinite(static_cast<double>(weight)), named(name) + " must be a finite number");
  });
  require(w.clip >= 0, named("clip") + " must not be negative");
  require(w.milestone_interval >= 0 && w.milestone_interval <= kMaxMilestoneInterval,
          named("milestone_interval") + " must be in 0.." + std::to_string(kMaxMilestoneInterval) +
              " pixels");
}

void check_stages(const std::vector<uint8_t>& stages) {
  require(stages.size() <= static_cast<size_t>(kMaxStageList),
          "a lane's stages must be at most " + std::to_string(kMaxStageList));
  for (uint8_t stage : stages) {
    require(stage < kStages, "a stage must be in 0..31, and is " + std::to_string(stage));
  }
}

uint64_t fingerprint(const LaneConfig& c, const Cartridge& cart) {
  Hash hash;
  hash.bytes(cart.prg.data(), cart.prg.size());
  hash.bytes(cart.chr.data(), cart.chr.size());
  hash.number(cart.vertical_mirroring);
  hash.bytes(c.buttons.data(), c.buttons.size());
  const ObserveSpec& o = c.observe;
  const KindNumbers kind = numbers_of(o.kind);
  const std::vector<int> shape = o.shape();
  for (int value : {c.frame_skip,
                    c.frame_stack,
                    o.is_picture() ? o.height : shape[0],
                    o.is_picture() ? o.width : shape[1],
                    kind.gray,
                    o.crop_top,
                    o.crop_bottom,
                    o.crop_left,
                    o.crop_right,
                    o.mask_top,
                    static_cast<int>(o.resize),
                    kind.other,
                    kind.planar,
                    int{c.max_last_two},
                    static_cast<int>(c.rules.reward),
                    int{c.rules.end_on_life},
                    int{c.rules.skip_scenes},
                    c.time_limit,
                    c.stagnation_limit,
                    c.delay_low,
                    c.delay_high,
                    static_cast<int>(c.timing),
                    static_cast<int>(c.autoreset)}) {
    add(hash, value);
  }
  int terms = 0;
  for_each_weight(c.rules.weights, [&](const char*, auto weight) {
    if (++terms <= kFirstTerms) add(hash, weight);
  });
  hash.bytes(c.script.data(), c.script.size());
  hash.real(c.sticky);
  // Terms that came later count only where they are used, so that older saved lanes are known.
  terms = 0;
  for_each_weight(c.rules.weights, [&](const char*, auto weight) {
    if (++terms <= kFirstTerms || weight == 0) return;
    add(hash, terms);
    add(hash, weight);
  });
  // As what and where later episodes begin is left out, as restart points are: a lane goes on from
  // where it was saved.
  // Only where it is chosen: lanes saved before there was a choice are still known.
  if (c.rules.end_on_setback) hash.number(1);
  return hash.value();
}

}  // namespace wz
