#include "vec/accounts.hpp"

namespace wz {

int LaneAccounts::draw_delay(const LaneConfig& config) {
  const int span = config.delay_high - config.delay_low + 1;
  return config.delay_low + static_cast<int>(rng.below(static_cast<uint32_t>(span)));
}

Entrance LaneAccounts::draw_entrance(const LaneConfig& config, bool halfway) {
  Entrance entrance;
  entrance.power = config.start_power == StartPower::kAny ? static_cast<Power>(rng.below(kPowers))
                                                          : static_cast<Power>(config.start_power);
  if (config.start_halfway > 0 && rng.chance(config.start_halfway) && halfway) {
    entrance = {Power::kSmall, true};
  }
  return entrance;
}

void LaneAccounts::show_start(const uint8_t* ram) {
  write_signals(ram, info);
  write_counters(info, false);
}

void LaneAccounts::write_counters(int32_t* row, bool forced) const {
  wz::write_counters(episode, row);
  row[column::kForced] = forced;
  row[column::kButtons] = held;
}

uint8_t LaneAccounts::press(const LaneConfig& config, uint8_t wanted) {
  if (script) {
    // A script that ends inside a step holds its last buttons to the end of it.
    if (script_at < script->size()) held = (*script)[script_at++];
  } else if (config.sticky == 0 || !rng.chance(config.sticky)) {
    held = wanted;
  }
  return held;
}

bool LaneAccounts::account(const LaneConfig& config, const uint8_t* ram, bool last,
                           StepTotals& totals) {
  account_frame(config.rules, episode, ram, totals);
  // The info is that of the moment before a scene is skipped, as in gym-super-mario-bros.
  if (totals.done || last) {
    write_signals(ram, info);
    account_score(episode, ram, totals);
  }
  return totals.done;
}

LaneAccounts::Outcome LaneAccounts::finish(const LaneConfig& config, StepTotals& totals) {
  const float reward = finish_step(config.rules, episode, totals);
  shaping.add(totals, config.rules.weights.scale);
  write_counters(info, script != nullptr);
  if (script && script_at >= script->size()) script.reset();
  const bool out_of_time = config.time_limit > 0 && episode.steps >= config.time_limit;
  const bool stuck = config.stagnation_limit > 0 && episode.stagnant >= config.stagnation_limit;
  return {reward, totals.done, !totals.done && (out_of_time || stuck)};
}

}  // namespace wz
