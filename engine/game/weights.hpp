#pragma once

#include <cstdint>
#include <tuple>

/// What a step's reward is made of. A new term is a field here, a row of `kRewardTerms` and its
/// place in `finish_step` (game/episode.cpp).
namespace wz {

/// Each weight is added, so penalties are negative. Distance, points, steps and the gym reward are
/// multiplied by `scale`; flag, death and milestones are not.
struct RewardWeights {
  float pixel = 0;  ///< for each pixel of new ground
  float step = 0;   ///< for each step
  float flag = 0;   ///< for the flag or the axe
  float death = 0;  ///< for a lost life
  float clip = 0;   ///< a step's reward is clipped to [-clip, clip]; 0 = not at all
  float score = 0;  ///< for each point
  float scale = 1;
  float milestone = 0;             ///< for each `milestone_interval` pixels of new ground
  int32_t milestone_interval = 0;  ///< 0 = no milestones
};

/// A member of a structure and its name.
template <class S, class T>
struct Field {
  const char* name;
  T S::* member;
};

/// All weights in the order of their declaration. Checks, saved lanes and Python go through this
/// list; saved lanes depend on the order, so new terms stand at the end.
inline constexpr std::tuple kRewardTerms = {
    Field{"pixel", &RewardWeights::pixel},
    Field{"step", &RewardWeights::step},
    Field{"flag", &RewardWeights::flag},
    Field{"death", &RewardWeights::death},
    Field{"clip", &RewardWeights::clip},
    Field{"score", &RewardWeights::score},
    Field{"scale", &RewardWeights::scale},
    Field{"milestone", &RewardWeights::milestone},
    Field{"milestone_interval", &RewardWeights::milestone_interval},
};

static_assert(sizeof(RewardWeights) ==
                  sizeof(float) * std::tuple_size_v<std::remove_const_t<decltype(kRewardTerms)>>,
              "every weight has a row in kRewardTerms");

/// Calls `visit(name, value)` for each weight.
template <class Visit>
void for_each_weight(const RewardWeights& weights, const Visit& visit) {
  std::apply([&](const auto&... term) { (visit(term.name, weights.*term.member), ...); },
             kRewardTerms);
}

}  // namespace wz
