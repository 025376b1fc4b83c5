#include "vec/beginnings.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

namespace wz {
namespace {

/// The place at which running sums of `weight(i)` pass a random share of their total; `count` when
/// all are zero. Draws one number in any case.
template <class Weight>
size_t draw_weighted(size_t count, const Weight& weight, Rng& rng) {
  double total = 0;
  for (size_t i = 0; i < count; ++i) total += weight(i);
  double left = static_cast<double>(rng.next() >> 11) * 0x1.0p-53 * total;
  size_t last = count;
  for (size_t i = 0; i < count; ++i) {
    if (weight(i) <= 0) continue;
    last = i;
    left -= weight(i);
    if (left < 0) break;
  }
  return last;
}

}  // namespace

int draw_stage(const std::vector<uint8_t>& stages, const std::vector<double>& weights, Rng& rng) {
  if (stages.empty()) return kWholeGame;
  const auto count = static_cast<uint32_t>(stages.size());
  if (weights.empty()) return stages[rng.below(count)];
  const auto weight = [&](size_t i) { return weights[stages[i]]; };
  const Rng before = rng;
  const size_t drawn = draw_weighted(stages.size(), weight, rng);
  if (drawn < stages.size()) return stages[drawn];
  // None of the lane's stages has a weight: it draws as if there were none at all.
  rng = before;
  return stages[rng.below(count)];
}

template <Console C>
const RestartPoint<C>* Beginnings<C>::draw_point(int stage, Rng& rng) const {
  const bool own = stage >= 0 && !stage_shares.empty();
  const double wanted = own ? stage_shares[static_cast<size_t>(stage)] : share;
  if (wanted <= 0 || points.empty() || !rng.chance(wanted)) return nullptr;
  const auto weight = [&](size_t i) { return points[i].stage == stage ? points[i].weight : 0.0; };
  const size_t drawn = draw_weighted(points.size(), weight, rng);
  return drawn < points.size() ? points[drawn].point.get() : nullptr;
}

void check_stage_shares(const std::vector<double>& shares) {
  if (!shares.empty() && shares.size() != static_cast<size_t>(kStages)) {
    throw std::invalid_argument("shares of restarts must be " + std::to_string(kStages) +
                                ", one for each stage, and are " + std::to_string(shares.size()));
  }
  for (const double share : shares) {
    if (!(share >= 0 && share <= 1)) {
      throw std::invalid_argument("a share of restarts must be in 0..1");
    }
  }
}

void check_stage_weights(const std::vector<double>& weights) {
  if (weights.size() != static_cast<size_t>(kStages)) {
    throw std::invalid_argument("stage weights must be " + std::to_string(kStages) +
                                ", one for each stage, and are " + std::to_string(weights.size()));
  }
  for (const double weight : weights) {
    if (!std::isfinite(weight) || weight < 0) {
      throw std::invalid_argument("stage weights must be finite and not negative");
    }
  }
}

Script make_script(std::vector<uint8_t> masks) {
  if (masks.size() > kMaxScriptFrames) {
    throw std::invalid_argument("a script has at most " + std::to_string(kMaxScriptFrames) +
                                " frames, not " + std::to_string(masks.size()));
  }
  if (masks.empty()) return nullptr;
  return std::make_shared<const std::vector<uint8_t>>(std::move(masks));
}

template struct Beginnings<VblankConsole>;
template struct Beginnings<NesPyConsole>;

}  // namespace wz
