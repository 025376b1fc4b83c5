#include <algorithm>

#include "check.hpp"
#include "rig.hpp"

using namespace wz;

namespace {

void test_config() {
  const auto refused = [](auto change) {
    LaneConfig config = small_config();
    change(config);
    CHECK_THROWS(std::invalid_argument, check_config(config));
  };
  check_config(small_config());
  refused([](LaneConfig& c) { c.buttons.clear(); });
  refused([](LaneConfig& c) { c.frame_skip = 0; });
  refused([](LaneConfig& c) { c.frame_stack = 65; });
  refused([](LaneConfig& c) { c.time_limit = -1; });
  refused([](LaneConfig& c) { c.delay_low = 5; });
  refused([](LaneConfig& c) { c.sticky = 1; });
  refused([](LaneConfig& c) { c.sticky = -0.1; });
  refused([](LaneConfig& c) { c.rules.weights.clip = -1; });
  CHECK_THROWS(std::invalid_argument, check_stages({32}));
  check_stages({});
}

void test_random_stream() {
  Rng rng{7};
  int counts[5] = {};
  int heads = 0;
  for (int i = 0; i < 10000; ++i) {
    ++counts[rng.below(5)];
    heads += rng.chance(0.25);
  }
  for (const int count : counts) CHECK(count > 1800 && count < 2200);
  CHECK(heads > 2300 && heads < 2700);
}

LaneConfig varied_config() {
  LaneConfig config = small_config();
  config.delay_high = 20;
  config.sticky = 0.25;
  config.time_limit = 40;
  return config;
}

/// Everything a run produces, step by step.
std::vector<uint8_t> trace(const CartridgePtr& cart, int threads, int steps) {
  Rig rig(varied_config(), cart, {{0}, {1, 2}, {}, {13}, {31}, {4, 5, 6}, {20}}, threads);
  rig.seed();
  rig.reset();
  std::vector<uint8_t> all = rig.obs;
  const auto append = [&](const void* data, size_t size) {
    const auto* bytes = static_cast<const uint8_t*>(data);
    all.insert(all.end(), bytes, bytes + size);
  };
  for (int t = 0; t < steps; ++t) {
    std::vector<int64_t> actions;
    for (int lane = 0; lane < rig.lanes; ++lane) actions.push_back(scripted_action(t, lane));
    rig.step(actions);
    append(rig.obs.data(), rig.obs.size());
    append(rig.reward.data(), rig.rows() * sizeof(float));
    append(rig.terminated.get(), rig.rows());
    append(rig.truncated.get(), rig.rows());
    append(rig.info.data(), rig.info.size() * sizeof(int32_t));
  }
  return all;
}

void test_thread_counts(const CartridgePtr& cart) {
  const std::vector<uint8_t> one = trace(cart, 1, 60);
  CHECK(one == trace(cart, 1, 60));
  CHECK(one == trace(cart, 2, 60));
  CHECK(one == trace(cart, 3, 60));
  CHECK(one == trace(cart, 9, 60));
}

void test_stack_and_skip(const CartridgePtr& cart) {
  LaneConfig config = small_config();
  config.rules.reward = RewardKind::kGym;
  Rig four(config, cart, {{0}});
  config.frame_skip = 1;
  config.frame_stack = 1;
  Rig one(config, cart, {{0}});
  config.frame_skip = 4;
  config.max_last_two = true;
  config.observe = {.height = 240, .width = 256, .resize = Resize::kNearest};
  Rig brighter(config, cart, {{0}});
  config.frame_skip = 1;
  config.max_last_two = false;
  Rig full(config, cart, {{0}});
  for (Rig* rig : {&four, &one, &brighter, &full}) rig->reset();

  std::vector<uint8_t> before = four.obs;
  const size_t frame = 20 * 20;
  for (size_t i = 1; i < 4; ++i) {
    CHECK(std::equal(before.begin(), before.begin() + frame,
                     before.begin() + static_cast<ptrdiff_t>(i * frame)));
  }
  for (int t = 0; t < 40 && !four.ended(0); ++t) {
    four.step(scripted_action(t, 0));
    brighter.step(scripted_action(t, 0));
    float sum = 0;
    std::vector<uint8_t> previous;
    for (int i = 0; i < 4 && !one.ended(0); ++i) {
      previous = full.obs;
      one.step(scripted_action(t, 0));
      full.step(scripted_action(t, 0));
      sum += one.reward[0];
    }
    CHECK_EQ(four.reward[0], sum);
    CHECK(four.ram_of(0) == one.ram_of(0));
    CHECK(std::equal(before.begin() + frame, before.end(), four.obs.begin()));
    CHECK(std::equal(one.obs.begin(), one.obs.end(), four.obs.begin() + 3 * frame));
    for (size_t i = 0; i < previous.size(); ++i) previous[i] = std::max(previous[i], full.obs[i]);
    CHECK(brighter.obs == previous);
    before = four.obs;
  }
}

/// Steps until the lane's episode ends; false when it does not.
bool play_to_end(Rig& rig, int64_t action, int most = 300) {
  for (int t = 0; t < most; ++t) {
    rig.step(action);
    if (rig.ended(0)) return true;
  }
  return false;
}

void test_autoreset(const CartridgePtr& cart) {
  LaneConfig config = small_config();
  Rig next(config, cart, {{0}});
  config.autoreset = Autoreset::kSameStep;
  Rig same(config, cart, {{0}});
  config.autoreset = Autoreset::kDisabled;
  Rig disabled(config, cart, {{0}, {2}});
  for (Rig* rig : {&next, &same, &disabled}) rig->reset();
  const std::vector<uint8_t> first = next.obs;

  CHECK(play_to_end(next, 1));
  CHECK(play_to_end(same, 1));
  while (!disabled.ended(0)) disabled.step({1, 0});  // the other lane stands still
  CHECK(!disabled.ended(1));
  for (const Rig* rig : {&next, &same, &disabled}) {
    CHECK(rig->terminated[0] && !rig->truncated[0]);
    CHECK_EQ(rig->reward[0], next.reward[0]);
  }
  CHECK(next.reward[0] < -4);
  CHECK(same.final_obs == next.obs);
  CHECK(same.final_info == next.info);
  CHECK(disabled.obs_of(0) == next.obs);
  CHECK(same.obs == first);
  CHECK_EQ(same.info_of(0, column::kSteps), 0);
  CHECK(same.final_info[column::kDying] == 1);

  next.step(1);
  CHECK(next.obs == first);
  CHECK(next.info == same.info);
  CHECK(!next.terminated[0] && !next.truncated[0] && next.reward[0] == 0);
  next.step(2);
  same.step(2);
  CHECK(next.obs == same.obs && next.info == same.info && next.reward == same.reward);

  CHECK_THROWS(std::runtime_error, disabled.step(1));
  const std::vector<uint8_t> other = disabled.obs_of(1);
  const std::vector<uint8_t> other_ram = disabled.ram_of(1);
  const bool mask[2] = {true, false};
  std::fill(disabled.obs.begin(), disabled.obs.end(), uint8_t{99});
  disabled.reset(mask);
  CHECK(disabled.obs_of(0) == first);
  CHECK(disabled.obs_of(1) == other);
  CHECK(disabled.ram_of(1) == other_ram);
  disabled.step(1);
}

void test_limits(const CartridgePtr& cart) {
  LaneConfig config = small_config();
  config.time_limit = 5;
  Rig rig(config, cart, {{0}});
  rig.reset();
  CHECK(play_to_end(rig, 0));
  CHECK(rig.truncated[0] && !rig.terminated[0]);
  CHECK_EQ(rig.info_of(0, column::kSteps), 5);

  config.time_limit = 0;
  config.stagnation_limit = 7;
  Rig idle(config, cart, {{0}});
  idle.reset();
  for (int t = 0; t < 10; ++t) idle.step(1);
  CHECK(!idle.ended(0));
  CHECK(play_to_end(idle, 0, 60));
  CHECK(idle.truncated[0] && !idle.terminated[0]);
  CHECK(idle.info_of(0, column::kSteps) > 10);
}

/// A death in the very step of a limit is a death: nothing was cut short, and nothing follows.
void test_end_at_limit(const CartridgePtr& cart) {
  LaneConfig config = small_config();
  Rig free(config, cart, {{0}});
  free.reset();
  CHECK(play_to_end(free, 1));
  CHECK(free.terminated[0] && !free.truncated[0]);
  const int steps = free.info_of(0, column::kSteps);
  const auto ends = [&](int time_limit, int stagnation_limit) {
    LaneConfig limited = config;
    limited.time_limit = time_limit;
    limited.stagnation_limit = stagnation_limit;
    Rig rig(limited, cart, {{0}});
    rig.reset();
    CHECK(play_to_end(rig, 1));
    CHECK(rig.terminated[0] != rig.truncated[0]);
    return std::pair<int, bool>(rig.info_of(0, column::kSteps), rig.terminated[0]);
  };
  CHECK(ends(steps, 0) == std::pair(steps, true));
  CHECK(ends(steps - 1, 0) == std::pair(steps - 1, false));
  // Whatever the stagnation limit, an episode ends in one way only.
  for (int limit = 1; limit < 8; ++limit) CHECK(ends(0, limit).first <= steps);
}

void test_start_delay(const CartridgePtr& cart) {
  LaneConfig config = small_config();
  config.delay_low = 3;
  config.delay_high = 9;
  Rig rig(config, cart, {{0}});
  rig.seed(5);
  std::vector<bool> seen(10);
  const auto starts = shared_start_states<VblankConsole>(cart);
  for (int i = 0; i < 40; ++i) {
    rig.reset();
    const int delay = rig.info_of(0, column::kStartDelay);
    CHECK(delay >= 3 && delay <= 9);
    if (delay < 3 || delay > 9 || seen[static_cast<size_t>(delay)]) continue;
    seen[static_cast<size_t>(delay)] = true;
    Machine m = starts->get(0, nullptr);
    VblankConsole console{m, *cart, nullptr};
    for (int frame = 0; frame < delay; ++frame) console.advance(0);
    CHECK(std::equal(m.ram, m.ram + 2048, rig.ram_of(0).begin()));
  }
  CHECK(std::count(seen.begin(), seen.end(), true) >= 6);
  // Mario does not survive this long without moving, so the delay is given up.
  config.delay_low = config.delay_high = 30000;
  Rig late(config, cart, {{0}});
  late.reset();
  CHECK_EQ(late.info_of(0, column::kStartDelay), 0);
}

void test_game_over(const CartridgePtr& cart) {
  LaneConfig config = small_config();
  config.rules.end_on_life = false;
  Rig rig(config, cart, {{}});
  rig.reset();
  int deaths = 0;
  int lives = rig.info_of(0, column::kLife);
  for (int t = 0; t < 1000 && !rig.ended(0); ++t) {
    rig.step(1);
    const int now = rig.info_of(0, column::kLife);
    deaths += now != lives;
    lives = now;
  }
  CHECK(rig.terminated[0]);
  CHECK_EQ(deaths, 3);
  CHECK_EQ(lives, 255);
}

void test_twins(const CartridgePtr& cart) {
  Rig rig(varied_config(), cart, {{0}, {1, 2}, {5}});
  rig.seed();
  rig.reset();
  for (int t = 0; t < 10; ++t) rig.step(scripted_action(t, 0));
  rig.vector.clone(1, 2);
  std::vector<uint8_t> twin(rig.row);
  rig.vector.observe(2, twin.data());
  CHECK(twin == rig.obs_of(1));
  for (int t = 0; t < 90; ++t) {
    rig.step(scripted_action(t, 1));
    CHECK(rig.obs_of(1) == rig.obs_of(2));
    CHECK(rig.reward[1] == rig.reward[2]);
  }
  CHECK(rig.ram_of(1) == rig.ram_of(2));
  CHECK(rig.ram_of(0) != rig.ram_of(2));
}

void test_refusals(const CartridgePtr& cart) {
  CHECK_THROWS(std::invalid_argument, Rig(small_config(), cart, {}));
  CHECK_THROWS(std::invalid_argument, Rig(small_config(), cart, {{40}}));
  CHECK_THROWS(std::invalid_argument, Rig(small_config(), cart, {{0}}, 0));
  Rig rig(small_config(), cart, {{0}, {0}});
  CHECK_THROWS(std::runtime_error, rig.step(0));
  CHECK_THROWS(std::runtime_error, rig.vector.save(0));
  const bool half[2] = {true, false};
  CHECK_THROWS(std::runtime_error, rig.reset(half));
  rig.reset();
  CHECK_THROWS(std::invalid_argument, rig.step({0, 6}));
  CHECK_THROWS(std::invalid_argument, rig.step({-1, 0}));
  CHECK_THROWS(std::out_of_range, rig.vector.save(2));
  CHECK_THROWS(std::out_of_range, rig.vector.clone(-1, 0));
  CHECK_THROWS(std::invalid_argument, rig.vector.seed({}));
  CHECK_THROWS(std::invalid_argument, rig.vector.set_stages(0, {32}));
  rig.vector.close();
  rig.vector.close();
  CHECK_THROWS(std::runtime_error, rig.step(0));
  CHECK_THROWS(std::runtime_error, rig.reset());
}

void test_memory(const CartridgePtr& cart) {
  LaneConfig config = small_config();
  config.observe.height = config.observe.width = 84;
  const Rig rig(config, cart, Vector::Stages(1024, {0}));
  CHECK(const_cast<Rig&>(rig).vector.memory_bytes() < 64u << 20);
}

}  // namespace

int main() {
  test_config();
  test_random_stream();
  const std::vector<uint8_t> file = ::check::rom();
  if (!file.empty()) {
    const CartridgePtr cart = parse_ines(file);
    test_thread_counts(cart);
    test_stack_and_skip(cart);
    test_autoreset(cart);
    test_limits(cart);
    test_end_at_limit(cart);
    test_start_delay(cart);
    test_game_over(cart);
    test_twins(cart);
    test_refusals(cart);
    test_memory(cart);
  }
  return check::finish();
}
