#include "game/episode.hpp"

namespace wz {
namespace {

/// Mario runs at 3 pixels per frame at most; platforms and springs add a little.
constexpr int32_t kFastestMove = 16;
constexpr int32_t kScreenWidth = 256;
constexpr int32_t kMaxX = 0xFFFF;
constexpr int32_t kMaxScore = 999999;
/// Far more than any stage has; keeps sums inside their type.
constexpr int32_t kMaxPixels = 1 << 30;
/// The same for counters.
constexpr int32_t kMaxSteps = 1 << 30;

uint16_t area_key(const uint8_t* ram) {
  return static_cast<uint16_t>(ram[ram::kAreaType] << 8 | ram[ram::kAreaIndex]);
}

/// Mario's x, as far as it is ground. A maze's loop can set him back past the start of its map,
/// where x wraps around.
int32_t ground_x(const uint8_t* ram) {
  const int32_t x = x_position(ram);
  return x > kMaxX / 2 ? 0 : x;
}

/// Makes the map Mario is in the current one. Returns whether it is new in this stage.
bool enter_area(Ground& ground, const uint8_t* ram) {
  if (ground.world != ram[ram::kWorld] || ground.stage != ram[ram::kStage]) {
    ground.world = ram[ram::kWorld];
    ground.stage = ram[ram::kStage];
    ground.count = 0;
  }
  const uint16_t key = area_key(ram);
  for (uint8_t i = 0; i < ground.count; ++i) {
    if (ground.area[i] == key) {
      ground.current = i;
      return false;
    }
  }
  // No stage has this many maps; should one, the last place is shared.
  if (ground.count < kRememberedAreas) ++ground.count;
  ground.current = static_cast<uint8_t>(ground.count - 1);
  ground.area[ground.current] = key;
  ground.furthest[ground.current] = ground_x(ram);
  return true;
}

bool at_current_area(const Ground& ground, const uint8_t* ram) {
  return ground.count != 0 && ground.world == ram[ram::kWorld] &&
         ground.stage == ram[ram::kStage] && ground.area[ground.current] == area_key(ram);
}

}  // namespace

Episode begin_episode(const uint8_t* ram, int start_stage, int start_delay) {
  Episode episode{};
  episode.x_last = x_position(ram);
  episode.time_last = game_time(ram);
  episode.start_stage = start_stage;
  episode.start_delay = start_delay;
  episode.score_last = std::max(0, game_score(ram));
  enter_area(episode.ground, ram);
  return episode;
}

bool is_set_back(const Ground& ground, const uint8_t* ram) {
  return ram[ram::kLoopsPassed] > ram[ram::kLoopsCorrect] ||
         ground.furthest[ground.current] - ground_x(ram) > kScreenWidth;
}

void explore(Ground& ground, const uint8_t* ram, StepTotals& totals) {
  if (!at_current_area(ground, ram) && enter_area(ground, ram)) {
    totals.new_ground = true;
    return;
  }
  totals.setback |= is_set_back(ground, ram);
  int32_t& furthest = ground.furthest[ground.current];
  const int32_t gained = ground_x(ram) - furthest;
  if (gained <= 0) return;
  furthest += gained;
  totals.new_ground = true;
  if (gained <= kFastestMove) totals.pixels += gained;
}

void account_score(Episode& episode, const uint8_t* ram, StepTotals& totals) {
  const int32_t score = game_score(ram);
  totals.score_unread = score < 0;
  if (totals.score_unread) return;
  // A new game starts from nothing, and that is no loss.
  totals.points = std::max(0, score - episode.score_last);
  episode.score_last = score;
}

float finish_step(const Rules& rules, Episode& episode, StepTotals& totals) {
  ++episode.steps;
  episode.stagnant = totals.new_ground ? 0 : episode.stagnant + 1;
  const RewardWeights& w = rules.weights;
  const int32_t before = episode.pixels;
  episode.pixels = std::min(before, kMaxPixels) + totals.pixels;
  if (rules.reward == RewardKind::kGym) return totals.gym_reward;
  totals.shaping =
      w.pixel * static_cast<float>(totals.pixels) + w.score * static_cast<float>(totals.points);
  float reward = totals.shaping + w.step;
  if (rules.reward == RewardKind::kShaped) reward += totals.gym_reward;
  const bool failed = totals.death || (rules.end_on_setback && totals.setback);
  reward = reward * w.scale + (totals.flag ? w.flag : 0) + (failed ? w.death : 0);
  if (w.milestone_interval > 0) {
    const int32_t passed = episode.pixels / w.milestone_interval - before / w.milestone_interval;
    reward += w.milestone * static_cast<float>(passed);
  }
  return w.clip > 0 ? std::clamp(reward, -w.clip, w.clip) : reward;
}

void write_counters(const Episode& episode, int32_t* info) {
  info[column::kFurthestX] = episode.furthest_x();
  info[column::kSteps] = episode.steps;
  info[column::kStartDelay] = episode.start_delay;
  info[column::kStartStage] = episode.start_stage;
  info[column::kRestart] = episode.restart;
}

bool is_valid(const Episode& e) {
  const Ground& g = e.ground;
  if (g.count < 1 || g.count > kRememberedAreas || g.current >= g.count) return false;
  for (int32_t x : g.furthest) {
    if (x < 0 || x > kMaxX) return false;
  }
  return e.x_last >= 0 && e.x_last <= kMaxX && e.time_last >= 0 && e.time_last <= 255255255 &&
         e.steps >= 0 && e.steps <= kMaxSteps && e.stagnant >= 0 && e.stagnant <= e.steps &&
         e.start_delay >= 0 && e.start_stage >= kWholeGame && e.start_stage < kStages &&
         e.score_last >= 0 && e.score_last <= kMaxScore && e.pixels >= 0 &&
         e.pixels <= kMaxPixels + kMaxX && e.restart >= 0;
}

}  // namespace wz
