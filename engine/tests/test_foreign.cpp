#include <cstring>

#include "check.hpp"
#include "game/scenes.hpp"
#include "nes/palette.hpp"
#include "rig.hpp"
#include "vec/accounts.hpp"
#include "vec/screen.hpp"

// What the engine knows about the game, asked about machines and pictures that are not its own.

using namespace wz;

namespace {

/// The engine's machine behind the interface of another emulator.
class Elsewhere final : public ForeignMachine {
 public:
  explicit Elsewhere(const CartridgePtr& cart) : cart_(cart), machine_(power_on(*cart)) {}

  void advance(uint8_t buttons) override {
    ++frames;
    VblankConsole{machine_, *cart_, nullptr}.advance(buttons);
  }
  void read_ram(uint8_t* out) override { std::memcpy(out, machine_.ram, ram::kSize); }
  void poke(uint16_t address, uint8_t value) override { machine_.ram[address] = value; }

  const uint8_t* ram() const { return machine_.ram; }
  int frames = 0;

 private:
  CartridgePtr cart_;
  Machine machine_;
};

/// What is written reaches the machine before its next frame, and only what has changed.
void test_pokes() {
  struct Recorder final : ForeignMachine {
    std::vector<int> calls;
    void advance(uint8_t buttons) override { calls.push_back(-1 - buttons); }
    void read_ram(uint8_t* out) override { std::memset(out, 7, ram::kSize); }
    void poke(uint16_t address, uint8_t value) override { calls.push_back(address * 256 + value); }
  } machine;
  ForeignConsole console(machine);
  console.ram()[3] = 9;
  console.ram()[4] = 7;
  console.advance(2);
  CHECK_EQ(console.ram()[3], 7);
  console.ram()[5] = 1;
  console.flush();
  console.flush();
  CHECK(machine.calls == std::vector<int>({3 * 256 + 9, -3, 5 * 256 + 1}));
}

void test_starts(const CartridgePtr& cart) {
  for (const int stage : {0, 5, 31, kWholeGame}) {
    Elsewhere machine(cart);
    ForeignConsole console(machine);
    reach_start(console, stage);
    console.flush();
    const Machine& ours = shared_start_states<VblankConsole>(cart)->get(stage, nullptr);
    CHECK(std::memcmp(machine.ram(), ours.ram, ram::kSize) == 0);
  }
}

/// A lane's life from the RAM of its frames alone: rewards, ends, draws and infos are those of the
/// engine's own lane.
void test_accounts(const CartridgePtr& cart) {
  LaneConfig config = small_config();
  config.rules.reward = RewardKind::kShaped;
  config.rules.weights = {0.07f, -0.01f, 5, -5, 15, 0.01f, 0.3f, 2, 90};
  config.sticky = 0.3;
  config.time_limit = 60;
  config.delay_high = 20;
  config.script = std::vector<uint8_t>(10, 0x82);
  Rig rig(config, cart, {{0, 4}});
  rig.seed(5);
  rig.reset();

  LaneAccounts accounts;
  accounts.rng.state = 5;
  Elsewhere machine(cart);
  ForeignConsole console(machine);
  const int stage = draw_stage({0, 4}, {}, accounts.rng);
  const int delay = accounts.draw_delay(config);
  reach_start(console, stage);
  for (int i = 0; i < delay; ++i) {
    console.advance(0);
    skip_scenes(console, true);
  }
  accounts.episode = begin_episode(console.ram(), stage, delay);
  accounts.force(make_script(config.script));
  accounts.show_start(console.ram());
  const auto same_info = [&] {
    return std::equal(accounts.info, accounts.info + kInfoColumns, rig.info.begin());
  };
  CHECK(same_info());
  bool ended = false;
  for (int step = 0; step < 60 && !ended; ++step) {
    const auto action = static_cast<size_t>(scripted_action(step, 0));
    rig.step(static_cast<int64_t>(action));
    StepTotals totals;
    for (int frame = 0; frame < config.frame_skip; ++frame) {
      console.advance(accounts.press(config, config.buttons[action]));
      if (accounts.account(config, console.ram(), frame + 1 == config.frame_skip, totals)) break;
      skip_scenes(console, true);
    }
    const LaneAccounts::Outcome outcome = accounts.finish(config, totals);
    CHECK_EQ(outcome.reward, rig.reward[0]);
    CHECK_EQ(outcome.terminated, rig.terminated[0]);
    CHECK_EQ(outcome.truncated, rig.truncated[0]);
    CHECK(same_info());
    ended = outcome.terminated || outcome.truncated;
  }
  CHECK(ended);
}

void test_screens() {
  const std::vector<uint8_t> rgb = {200, 100, 50, 10, 20, 30};
  const auto observe = [&](ObserveKind kind, const Screen& screen, const Screen* previous) {
    const ObservePlan plan({.kind = kind, .height = 1, .width = 2});
    std::vector<uint8_t> out(plan.size());
    observe_screen(plan, screen, previous, out.data());
    return out;
  };
  const Screen color{rgb.data(), 1, 2, 3};
  using Bytes = std::vector<uint8_t>;
  CHECK(observe(ObserveKind::kGray, color, nullptr) ==
        Bytes({gray({200, 100, 50}), gray({10, 20, 30})}));
  CHECK(observe(ObserveKind::kRgb, color, nullptr) == rgb);
  CHECK(observe(ObserveKind::kPlanar, color, nullptr) == Bytes({200, 10, 100, 20, 50, 30}));
  const Bytes before = {90, 110, 50, 9, 99, 0};
  const Screen earlier{before.data(), 1, 2, 3};
  CHECK(observe(ObserveKind::kRgb, color, &earlier) == Bytes({200, 110, 50, 10, 99, 30}));
  const Screen gray_screen{rgb.data(), 1, 2, 1};
  CHECK(observe(ObserveKind::kRgb, gray_screen, nullptr) == Bytes({200, 200, 200, 100, 100, 100}));
  CHECK_THROWS(std::invalid_argument,
               observe(ObserveKind::kGray, Screen{rgb.data(), 0, 2, 3}, nullptr));
  CHECK_THROWS(std::invalid_argument, observe(ObserveKind::kRam, color, nullptr));
}

}  // namespace

int main() {
  test_pokes();
  test_screens();
  const std::vector<uint8_t> file = check::rom();
  if (!file.empty()) {
    const CartridgePtr cart = parse_ines(file);
    test_starts(cart);
    test_accounts(cart);
  }
  return check::finish();
}
