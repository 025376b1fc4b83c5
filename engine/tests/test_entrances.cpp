// As what Mario begins an episode and where: draws, saved lanes, threads, what a stage allows.
#include "check.hpp"
#include "rig.hpp"

using namespace wz;

namespace {

constexpr uint16_t kPlayerSize = 0x0754, kHalfwayPage = 0x075B, kXPage = 0x006D;

LaneConfig entering(StartPower power, double halfway = 0) {
  LaneConfig config = restless_config();
  config.delay_high = 30;
  config.start_power = power;
  config.start_halfway = halfway;
  return config;
}

void test_draws() {
  LaneAccounts lane;
  lane.rng.state = 5;
  // What is not left to chance leaves the random stream alone.
  for (const StartPower power : {StartPower::kSmall, StartPower::kBig, StartPower::kFire}) {
    const Entrance entrance = lane.draw_entrance(entering(power), true);
    CHECK_EQ(static_cast<int>(entrance.power), static_cast<int>(power));
    CHECK(!entrance.halfway);
    CHECK(lane.rng.state == 5);
  }
  int powers[kPowers] = {}, halfway = 0;
  for (int i = 0; i < 3000; ++i) {
    ++powers[static_cast<int>(lane.draw_entrance(entering(StartPower::kAny), true).power)];
    const Entrance entrance = lane.draw_entrance(entering(StartPower::kFire, 0.25), true);
    halfway += entrance.halfway;
    CHECK_EQ(static_cast<int>(entrance.power), entrance.halfway ? 0 : 2);
  }
  for (const int count : powers) CHECK(count > 900 && count < 1100);
  CHECK(halfway > 650 && halfway < 850);
  // A stage without a halfway page is entered by the door, and draws as much.
  LaneAccounts same = lane;
  CHECK(!lane.draw_entrance(entering(StartPower::kBig, 1), false).halfway);
  CHECK(same.draw_entrance(entering(StartPower::kBig, 1), true).halfway);
  CHECK(lane.rng.state == same.rng.state);
}

void test_every_stage(const CartridgePtr& cart) {
  const StageTable table(*cart);
  Vector::Stages stages;
  for (int stage = 0; stage < kStages; ++stage) {
    if (table.has(stage)) stages.push_back({static_cast<uint8_t>(stage)});
  }
  stages.push_back({});
  for (const int power : {0, 1, 2}) {
    Rig rig(entering(static_cast<StartPower>(power)), cart, stages);
    rig.reset();
    for (int lane = 0; lane < rig.lanes; ++lane) {
      const std::vector<uint8_t> ram = rig.ram_of(lane);
      CHECK_EQ(int{ram[ram::kPower]}, power);
      CHECK_EQ(int{ram[kPlayerSize]}, power == 0);
      CHECK_EQ(rig.info_of(lane, column::kPower), power);
      CHECK_EQ(rig.info_of(lane, column::kRestart), 0);
    }
  }
  Rig rig(entering(StartPower::kBig, 1), cart, stages);
  rig.reset();
  int halfway = 0;
  for (int lane = 0; lane < rig.lanes; ++lane) {
    const auto& own = stages[static_cast<size_t>(lane)];
    const int page = own.empty() ? 0 : table.halfway_page(own[0]);
    const std::vector<uint8_t> ram = rig.ram_of(lane);
    CHECK_EQ(int{ram[kXPage]}, page);
    CHECK_EQ(int{ram[kHalfwayPage]}, 0);  // the game has used it up
    CHECK_EQ(int{ram[ram::kPower]}, page == 0);
    CHECK_EQ(rig.info_of(lane, column::kRestart), page ? kHalfwayRestart : 0);
    halfway += page != 0;
  }
  CHECK(halfway > 15);
  CHECK_EQ(StageTable().halfway_page(0), 0);
}

/// Small Mario at the door is what it was before there was a choice.
void test_default(const CartridgePtr& cart) {
  const Vector::Stages stages(6, {0, 1, 12});
  LaneConfig config = entering(StartPower::kSmall);
  Rig plain(config, cart, stages), any(entering(StartPower::kAny), cart, stages);
  plain.seed();
  any.seed();
  plain.reset();
  any.reset();
  for (int lane = 0; lane < 6; ++lane) {
    // Drawn in the order of before: the power comes after stage and delay.
    for (const int column : {column::kStartStage, column::kStartDelay}) {
      CHECK_EQ(plain.info_of(lane, column), any.info_of(lane, column));
    }
    CHECK_EQ(plain.info_of(lane, column::kPower), 0);
  }
  CHECK(fingerprint(config, *cart) == fingerprint(entering(StartPower::kAny, 0.5), *cart));
}

void test_threads_and_saved_lanes(const CartridgePtr& cart) {
  const LaneConfig config = entering(StartPower::kAny, 0.3);
  const Vector::Stages stages(7, {0, 1, 2, 3, 28});
  Rig one(config, cart, stages, 1), four(config, cart, stages, 4), loaded(config, cart, stages);
  for (Rig* rig : {&one, &four}) {
    rig->seed(9);
    rig->reset();
  }
  loaded.reset();
  int seen[kPowers] = {}, halfway = 0;
  for (int step = 0; step < 90; ++step) {
    if (step == 30) {
      for (int lane = 0; lane < 7; ++lane) loaded.vector.load(lane, one.vector.save(lane));
    }
    std::vector<int64_t> actions;
    for (int lane = 0; lane < 7; ++lane) actions.push_back(scripted_action(step, lane));
    for (Rig* rig : {&one, &four}) rig->step(actions);
    CHECK(one.obs == four.obs && one.info == four.info);
    if (step >= 30) {
      loaded.step(actions);
      CHECK(one.obs == loaded.obs && one.info == loaded.info);
    }
    for (int lane = 0; lane < 7; ++lane) {
      if (one.info_of(lane, column::kSteps) != 0) continue;
      ++seen[one.info_of(lane, column::kPower)];
      halfway += one.info_of(lane, column::kRestart) == kHalfwayRestart;
    }
  }
  CHECK(seen[0] > 3 && seen[1] > 3 && seen[2] > 3 && halfway > 3);
}

/// Restart points are what they were saved as, and no number is that of a halfway page.
void test_restarts(const CartridgePtr& cart) {
  Rig fire(entering(StartPower::kFire), cart, {{0}}), any(entering(StartPower::kAny), cart, {{0}});
  fire.reset();
  any.reset();
  any.vector.add_restart(3, fire.vector.save(0), {}, 1);
  any.vector.set_restart_share(1);
  for (int i = 0; i < 20; ++i) {
    any.reset();
    CHECK_EQ(any.info_of(0, column::kRestart), 3);
    CHECK_EQ(any.info_of(0, column::kPower), 2);
  }
  CHECK_THROWS(std::invalid_argument,
               any.vector.add_restart(kHalfwayRestart, fire.vector.save(0), {}, 1));
}

void test_refusals(const CartridgePtr& cart) {
  for (const double share : {-0.1, 1.1}) {
    CHECK_THROWS(std::invalid_argument, Rig(entering(StartPower::kSmall, share), cart, {{0}}));
  }
}

/// The slow machine, whose steps end elsewhere in a frame, gets there too.
void test_nes_py(const CartridgePtr& cart) {
  LaneConfig config = entering(StartPower::kFire);
  config.timing = Timing::kNesPy;
  config.delay_high = 0;
  Rig fire(config, cart, {{0}});
  fire.reset();
  CHECK_EQ(fire.info_of(0, column::kPower), 2);
  CHECK_EQ(int{fire.ram_of(0)[kPlayerSize]}, 0);
  config.start_halfway = 1;
  Rig halfway(config, cart, {{0}});
  halfway.reset();
  CHECK_EQ(int{halfway.ram_of(0)[kXPage]}, int{StageTable(*cart).halfway_page(0)});
}

}  // namespace

int main() {
  test_draws();
  const std::vector<uint8_t> file = ::check::rom();
  if (!file.empty()) {
    const CartridgePtr cart = parse_ines(file);
    test_every_stage(cart);
    test_default(cart);
    test_threads_and_saved_lanes(cart);
    test_restarts(cart);
    test_refusals(cart);
    test_nes_py(cart);
  }
  return check::finish();
}
