// How episodes begin: weighted stages, scripts, restart points; and what they are paid.
#include <algorithm>
#include <cmath>

#include "check.hpp"
#include "rig.hpp"
#include "vec/tiles.hpp"

using namespace wz;

namespace {

constexpr uint8_t kRightB = 0x82;

void test_stage_draws() {
  Beginnings<VblankConsole> begin;
  Rng rng{3};
  Rng same{3};
  const std::vector<uint8_t> stages{4, 7, 9};
  for (int i = 0; i < 100; ++i) CHECK_EQ(begin.draw_stage(stages, rng), stages[same.below(3)]);
  CHECK_EQ(begin.draw_stage({}, rng), kWholeGame);
  CHECK(rng.state == same.state);

  begin.stage_weights.assign(kStages, 0);
  begin.stage_weights[4] = 1;
  begin.stage_weights[9] = 3;
  int counts[kStages] = {};
  for (int i = 0; i < 4000; ++i) ++counts[begin.draw_stage(stages, rng)];
  CHECK_EQ(counts[7], 0);
  CHECK(counts[4] > 850 && counts[4] < 1150);
  CHECK_EQ(counts[4] + counts[9], 4000);
  // A lane none of whose stages has a weight draws them alike.
  int other[kStages] = {};
  for (int i = 0; i < 300; ++i) ++other[begin.draw_stage({1, 2}, rng)];
  CHECK(other[1] > 100 && other[2] > 100);

  CHECK_THROWS(std::invalid_argument, check_stage_weights({1, 2}));
  std::vector<double> bad(kStages, 1.0);
  bad[3] = -1;
  CHECK_THROWS(std::invalid_argument, check_stage_weights(bad));
  bad[3] = NAN;
  CHECK_THROWS(std::invalid_argument, check_stage_weights(bad));
}

void test_weighted_stages(const CartridgePtr& cart) {
  Rig rig(small_config(), cart, Vector::Stages(8, {0, 1, 2, 3}));
  rig.seed();
  std::vector<double> weights(kStages, 0);
  weights[2] = 1;
  rig.vector.set_stage_weights(weights);
  rig.reset();
  for (int lane = 0; lane < 8; ++lane) CHECK_EQ(rig.info_of(lane, column::kStartStage), 2);
  rig.vector.set_stage_weights({});
  rig.seed();
  rig.reset();
  int different = 0;
  for (int lane = 0; lane < 8; ++lane) different += rig.info_of(lane, column::kStartStage) != 2;
  CHECK(different > 2);
}

void test_script(const CartridgePtr& cart) {
  LaneConfig config = small_config();
  Rig plain(config, cart, {{0}});
  config.script.assign(18, kRightB);  // four steps and a half
  Rig scripted(config, cart, {{0}});
  plain.reset();
  scripted.reset();
  CHECK_EQ(scripted.info_of(0, column::kForced), 0);
  for (int t = 0; t < 5; ++t) {
    plain.step(3);
    scripted.step(0);  // ignored
    CHECK_EQ(scripted.info_of(0, column::kForced), 1);
    CHECK_EQ(scripted.info_of(0, column::kButtons), kRightB);
    CHECK_EQ(plain.info_of(0, column::kForced), 0);
    CHECK(plain.ram_of(0) == scripted.ram_of(0));
    CHECK_EQ(plain.reward[0], scripted.reward[0]);
  }
  scripted.step(1);
  CHECK_EQ(scripted.info_of(0, column::kForced), 0);
  CHECK_EQ(scripted.info_of(0, column::kButtons), 0x80);

  // A script goes on in a twin and in a copy of the lane.
  const int64_t lane = 0;
  scripted.vector.force({&lane, 1}, std::vector<uint8_t>(40, kRightB));
  scripted.step(0);
  const std::vector<uint8_t> saved = scripted.vector.save(0);
  Rig copy(config, cart, {{0}});
  copy.reset();
  copy.vector.load(0, saved);
  for (int t = 0; t < 12; ++t) {
    scripted.step(5);
    copy.step(5);
    CHECK_EQ(copy.info_of(0, column::kForced), t < 9);
    CHECK(copy.info == scripted.info && copy.obs == scripted.obs);
  }
  scripted.vector.set_script({});
  scripted.reset();
  scripted.step(0);
  CHECK_EQ(scripted.info_of(0, column::kForced), 0);
  CHECK_THROWS(std::invalid_argument,
               scripted.vector.set_script(std::vector<uint8_t>(kMaxScriptFrames + 1)));
}

void test_restarts(const CartridgePtr& cart) {
  LaneConfig config = small_config();
  config.autoreset = Autoreset::kSameStep;
  Rig rig(config, cart, {{0}, {0}, {1}}, 3);
  rig.seed();
  rig.reset();
  for (int t = 0; t < 20; ++t) rig.step(3);
  const std::vector<uint8_t> saved = rig.vector.save(0);
  const std::vector<uint8_t> stack = rig.obs_of(0);
  const std::vector<uint8_t> ram = rig.ram_of(0);
  const int32_t furthest = rig.info_of(0, column::kFurthestX);

  rig.vector.add_restart(7, saved, {0x80, 0x80, 0x80, 0x80}, 1);
  rig.reset();
  CHECK_EQ(rig.info_of(0, column::kRestart), 0);  // no share yet
  rig.vector.set_restart_share(1);
  rig.reset();
  for (int lane = 0; lane < 2; ++lane) {
    CHECK_EQ(rig.info_of(lane, column::kRestart), 7);
    CHECK_EQ(rig.info_of(lane, column::kSteps), 0);
    CHECK_EQ(rig.info_of(lane, column::kFurthestX), furthest);
    CHECK(rig.obs_of(lane) == stack);  // the history is the one that was seen
    CHECK(rig.ram_of(lane) == ram);
  }
  CHECK_EQ(rig.info_of(2, column::kRestart), 0);  // another stage has no restart point
  rig.step(0);
  CHECK_EQ(rig.info_of(0, column::kForced), 1);
  CHECK_EQ(rig.info_of(2, column::kForced), 0);
  rig.step(0);
  CHECK_EQ(rig.info_of(0, column::kForced), 0);

  // What is drawn does not depend on the order in which points came.
  Rig other(config, cart, {{0}, {0}, {1}});
  other.reset();
  rig.vector.add_restart(2, saved, {}, 1);
  other.vector.add_restart(2, saved, {}, 1);
  other.vector.add_restart(7, saved, {0x80, 0x80, 0x80, 0x80}, 1);
  other.vector.set_restart_share(0.5);
  rig.vector.set_restart_share(0.5);
  int seen[8] = {};
  rig.seed(11);
  other.seed(11);
  for (int i = 0; i < 60; ++i) {
    rig.reset();
    other.reset();
    CHECK(rig.info == other.info && rig.obs == other.obs);
    ++seen[rig.info_of(0, column::kRestart)];
  }
  CHECK(seen[0] > 15 && seen[2] > 5 && seen[7] > 5);
  rig.vector.weigh_restart(7, 0);
  rig.vector.set_restart_share(1);
  for (int i = 0; i < 20; ++i) {
    rig.reset();
    CHECK_EQ(rig.info_of(0, column::kRestart), 2);
  }
  rig.vector.remove_restart(2);
  rig.vector.remove_restart(7);
  CHECK_EQ(rig.vector.num_restarts(), 0);
  rig.reset();
  CHECK_EQ(rig.info_of(0, column::kRestart), 0);

  CHECK_THROWS(std::invalid_argument, rig.vector.remove_restart(2));
  CHECK_THROWS(std::invalid_argument, rig.vector.weigh_restart(2, 1));
  CHECK_THROWS(std::invalid_argument, rig.vector.add_restart(0, saved, {}, 1));
  CHECK_THROWS(std::invalid_argument, rig.vector.add_restart(1, saved, {}, -1));
  CHECK_THROWS(std::invalid_argument, rig.vector.add_restart(1, {}, {}, 1));
  CHECK_THROWS(std::invalid_argument, rig.vector.set_restart_share(1.5));
}

void test_restart_shares(const CartridgePtr& cart) {
  Rig rig(small_config(), cart, {{0}, {1}});
  rig.reset();
  rig.vector.add_restart(1, rig.vector.save(0), {}, 1);
  rig.vector.add_restart(2, rig.vector.save(1), {}, 1);
  std::vector<double> shares(kStages, 0.0);
  shares[1] = 1;
  rig.vector.set_restart_shares(shares);
  for (int i = 0; i < 20; ++i) {
    rig.reset();
    CHECK_EQ(rig.info_of(0, column::kRestart), 0);
    CHECK_EQ(rig.info_of(1, column::kRestart), 2);
  }
  rig.vector.set_restart_share(1);  // one for all again
  rig.reset();
  CHECK_EQ(rig.info_of(0, column::kRestart), 1);
  CHECK_THROWS(std::invalid_argument, rig.vector.set_restart_shares({0.5}));
  shares[3] = 1.5;
  CHECK_THROWS(std::invalid_argument, rig.vector.set_restart_shares(shares));
}

void test_weights_while_playing(const CartridgePtr& cart) {
  Rig rig(small_config(), cart, {{0}, {0}});
  rig.reset();
  double sums[kShapingFields];
  rig.vector.take_shaping(sums);
  const std::vector<uint8_t> before = rig.vector.save(0);
  RewardWeights weights;
  weights.pixel = 2;
  weights.scale = 0.25f;
  rig.vector.set_reward_weights(weights);
  float rewards = 0;
  const int32_t start = rig.info_of(0, column::kFurthestX);
  for (int t = 0; t < 10; ++t) {
    rig.step({3, 0});
    rewards += rig.reward[0];
  }
  const auto pixels = static_cast<float>(rig.info_of(0, column::kFurthestX) - start);
  CHECK(pixels > 20);
  CHECK_EQ(rewards, pixels * 0.5f);
  rig.vector.take_shaping(sums);
  CHECK_EQ(sums[0], pixels);
  CHECK_EQ(sums[1], pixels * 2);
  CHECK_EQ(sums[2], pixels * 0.5);
  CHECK_EQ(sums[3], 0);
  CHECK_EQ(sums[4], 20);
  CHECK(sums[5] > 0 && sums[6] == sums[5] * 2 && sums[7] == sums[5] * 0.5);
  rig.vector.take_shaping(sums);
  CHECK_EQ(sums[0], 0);
  CHECK(sums[5] > 0);
  rig.vector.load(0, before);  // saved lanes do not depend on the weights of the moment
  weights.clip = -1;
  CHECK_THROWS(std::invalid_argument, rig.vector.set_reward_weights(weights));
}

void test_tiles(const CartridgePtr& cart) {
  LaneConfig config = small_config();
  config.observe.kind = ObserveKind::kTiles;
  config.frame_stack = 1;
  Rig rig(config, cart, {{0}});
  rig.reset();
  const auto cell = [&](int row, int column) {
    return rig.obs[static_cast<size_t>(row * kTileColumns + column)];
  };
  CHECK_EQ(cell(10, kTilesBehind), kMarioTile);
  for (int i = kTilesBehind; i < kTileColumns; ++i) {
    CHECK_EQ(cell(11, i), kSolidTile);
    CHECK_EQ(cell(12, i), kSolidTile);
  }
  CHECK_EQ(cell(5, kTilesBehind), kEmptyTile);
  bool enemy = false;
  for (int t = 0; t < 40 && !rig.ended(0); ++t) {
    rig.step(1);
    enemy |= std::count(rig.obs.begin(), rig.obs.end(), kEnemyTile) > 0;
    CHECK(rig.ended(0) || std::count(rig.obs.begin(), rig.obs.end(), kMarioTile) == 1);
  }
  CHECK(enemy);
}

void test_ram(const CartridgePtr& cart) {
  for (const Timing timing : {Timing::kVblank, Timing::kNesPy}) {
    LaneConfig config = small_config();
    config.observe.kind = ObserveKind::kRam;
    config.frame_stack = 2;
    config.timing = timing;
    Rig rig(config, cart, {{0}});
    rig.reset();
    const std::vector<uint8_t> first = rig.ram_of(0);
    rig.step(1);
    const std::vector<uint8_t> second = rig.ram_of(0);
    CHECK(first != second);
    CHECK_EQ(rig.obs.size(), first.size() + second.size());
    CHECK(std::equal(first.begin(), first.end(), rig.obs.begin()));
    CHECK(std::equal(second.begin(), second.end(), rig.obs.begin() + ram::kSize));
  }
}

void test_planar(const CartridgePtr& cart) {
  LaneConfig config = small_config();
  config.observe.kind = ObserveKind::kRgb;
  config.frame_stack = 1;
  Rig rgb(config, cart, {{0}});
  config.observe.kind = ObserveKind::kPlanar;
  Rig planar(config, cart, {{0}});
  for (Rig* rig : {&rgb, &planar}) {
    rig->reset();
    for (int t = 0; t < 5; ++t) rig->step(1);
  }
  const size_t pixels = rgb.row / 3;
  bool same = true;
  for (size_t i = 0; i < pixels; ++i) {
    for (size_t c = 0; c < 3; ++c) same &= rgb.obs[3 * i + c] == planar.obs[c * pixels + i];
  }
  CHECK(same);
}

}  // namespace

int main() {
  test_stage_draws();
  const std::vector<uint8_t> file = ::check::rom();
  if (!file.empty()) {
    const CartridgePtr cart = parse_ines(file);
    test_weighted_stages(cart);
    test_script(cart);
    test_restarts(cart);
    test_restart_shares(cart);
    test_weights_while_playing(cart);
    test_tiles(cart);
    test_planar(cart);
    test_ram(cart);
  }
  return check::finish();
}
