#include <algorithm>

#include "check.hpp"
#include "rig.hpp"
#include "vec/savestate.hpp"

using namespace wz;

namespace {

/// A lane by itself, with all it needs.
template <class C>
struct Bench {
  LaneContext<C> context;
  typename Lane<C>::Scratch scratch{};
  Lane<C> lane;
  std::vector<uint8_t> history;

  Bench(const LaneConfig& config, const CartridgePtr& cart) {
    context.config = config;
    context.cart = cart;
    context.fingerprint = fingerprint(config, *cart);
    context.starts = shared_start_states<C>(cart);
    context.plan = std::make_unique<ObservePlan>(config.observe);
    history.resize(context.stack_bytes());
    lane.history = history.data();
    lane.stages = {0, 3};
  }
  std::vector<uint8_t> stack() const {
    std::vector<uint8_t> out(context.stack_bytes());
    lane.write_stack(context, out.data());
    return out;
  }
  float step(int action) {
    float reward;
    bool terminated, truncated;
    int32_t info[kInfoColumns];
    StepRows rows;
    rows.reward = &reward;
    rows.terminated = &terminated;
    rows.truncated = &truncated;
    rows.info = info;
    lane.step(context, scratch, action, rows);
    return reward;
  }
};

LaneConfig saved_config() {
  LaneConfig config = small_config();
  config.sticky = 0.25;
  config.delay_high = 5;
  config.time_limit = 15;
  return config;
}

template <class C>
void test_same_future(const CartridgePtr& cart, int steps) {
  Bench<C> original(saved_config(), cart);
  original.lane.reset(original.context, original.scratch);
  for (int t = 0; t < steps; ++t) original.step(t % 6);
  const std::vector<uint8_t> bytes = save_lane(original.lane, original.context);

  Bench<C> copy(saved_config(), cart);
  copy.lane.stages = {};
  load_lane(copy.lane, copy.context, bytes);
  CHECK(copy.stack() == original.stack());
  CHECK(save_lane(copy.lane, copy.context) == bytes);
  for (int t = 0; t < 2 * steps; ++t) {
    CHECK(original.step(t % 5) == copy.step(t % 5));
  }
  CHECK(copy.stack() == original.stack());
  CHECK(std::equal(copy.lane.info, copy.lane.info + kInfoColumns, original.lane.info));
  CHECK(save_lane(copy.lane, copy.context) == save_lane(original.lane, original.context));
}

void test_refusals(const CartridgePtr& cart) {
  Bench<VblankConsole> bench(saved_config(), cart);
  CHECK_THROWS(std::runtime_error, save_lane(bench.lane, bench.context));
  bench.lane.reset(bench.context, bench.scratch);
  for (int t = 0; t < 5; ++t) bench.step(1);
  const std::vector<uint8_t> good = save_lane(bench.lane, bench.context);
  bench.step(2);
  const std::vector<uint8_t> now = save_lane(bench.lane, bench.context);

  const auto refused = [&](const std::vector<uint8_t>& bytes) {
    bool thrown = false;
    try {
      // A vector of exactly this size, so that sanitizers see a read past its end.
      const std::vector<uint8_t> exact(bytes);
      load_lane(bench.lane, bench.context, exact);
    } catch (const std::invalid_argument&) {
      thrown = true;
    }
    return thrown && save_lane(bench.lane, bench.context) == now;
  };
  CHECK(refused({}));
  CHECK(refused({1, 2, 3}));
  int kept = 0;
  for (size_t size = 0; size < good.size(); size += size < 64 ? 1 : 97) {
    kept += !refused({good.begin(), good.begin() + static_cast<ptrdiff_t>(size)});
  }
  CHECK_EQ(kept, 0);
  for (size_t i = 0; i < good.size(); i += i < 64 ? 1 : 53) {
    std::vector<uint8_t> bytes = good;
    bytes[i] ^= 0x41;
    kept += !refused(bytes);
  }
  CHECK_EQ(kept, 0);
  std::vector<uint8_t> longer = good;
  longer.push_back(0);
  CHECK(refused(longer));

  LaneConfig other = saved_config();
  other.frame_skip = 3;
  Bench<VblankConsole> stranger(other, cart);
  CHECK_THROWS(std::invalid_argument, load_lane(stranger.lane, stranger.context, good));
  Bench<NesPyConsole> different(saved_config(), cart);
  LaneConfig nespy = saved_config();
  nespy.timing = Timing::kNesPy;
  different.context.config = nespy;
  CHECK_THROWS(std::invalid_argument, load_lane(different.lane, different.context, good));
}

/// Values that would make the engine misbehave, in files whose checksum is right.
void test_forgeries(const CartridgePtr& cart) {
  const auto refused = [&](auto change) {
    Bench<VblankConsole> bench(saved_config(), cart);
    bench.lane.reset(bench.context, bench.scratch);
    change(bench.lane);
    const std::vector<uint8_t> bytes = save_lane(bench.lane, bench.context);
    CHECK_THROWS(std::invalid_argument, load_lane(bench.lane, bench.context, bytes));
  };
  using L = Lane<VblankConsole>;
  refused([](L& lane) { lane.state.raster_count = kMaxRasterWrites + 1; });
  refused([](L& lane) { lane.state.now = -2000000000; });
  refused([](L& lane) { lane.state.now = 2000000000; });
  refused([](L& lane) { lane.state.hit_dot = INT32_MIN; });
  refused([](L& lane) { lane.state.scroll.fine_x = 8; });
  refused([](L& lane) { lane.state.scroll.v = 0x8000; });
  refused([](L& lane) { lane.state.palette[3] = 64; });
  refused([](L& lane) { lane.episode.ground.current = 200; });
  refused([](L& lane) { lane.episode.ground.count = 0; });
  refused([](L& lane) { lane.episode.start_stage = 32; });
  refused([](L& lane) { lane.episode.score_last = -1; });
  refused([](L& lane) { lane.episode.pixels = -1; });
  refused([](L& lane) { lane.episode.restart = -1; });
  refused([](L& lane) { lane.episode.steps = -1; });
  refused([](L& lane) { lane.episode.steps = INT32_MAX; });
  refused([](L& lane) { lane.stages = {99}; });
}

/// Lanes that were saved by earlier versions are known by these numbers.
void test_fingerprints() {
  Cartridge cart;
  for (size_t i = 0; i < cart.prg.size(); ++i) cart.prg[i] = static_cast<uint8_t>(i * 7);
  for (size_t i = 0; i < cart.chr.size(); ++i) cart.chr[i] = static_cast<uint8_t>(i * 5);
  LaneConfig c;
  c.buttons = {0x00, 0x80, 0x81};
  const struct {
    ObserveKind kind;
    uint64_t number;
  } recorded[] = {{ObserveKind::kGray, 0xB97E05AAA470A562u},
                  {ObserveKind::kRgb, 0x27CA54364F901698u},
                  {ObserveKind::kPlanar, 0xCAA587DC6F891064u},
                  {ObserveKind::kTiles, 0xA90C96704432B5B3u}};
  for (const auto& [kind, number] : recorded) {
    c.observe.kind = kind;
    CHECK_EQ(fingerprint(c, cart), number);
  }
  c.observe.kind = ObserveKind::kRam;
  for (const auto& [kind, number] : recorded) CHECK(fingerprint(c, cart) != number);

  c.observe = {.crop_top = 32, .mask_top = 40, .resize = Resize::kNearest};
  c.max_last_two = true;
  c.rules.reward = RewardKind::kShaped;
  c.rules.weights = {0.1f, -0.04f, 5, -2.5f, 15, 0.01f, 0.5f, 1, 100};
  c.rules.end_on_life = false;
  c.time_limit = 1500;
  c.stagnation_limit = 250;
  c.delay_high = 30;
  c.script = {0x82, 0x82};
  c.sticky = 0.25;
  c.timing = Timing::kNesPy;
  c.autoreset = Autoreset::kSameStep;
  CHECK_EQ(fingerprint(c, cart), 0x698C392E83F7A5A2u);
}

/// nes-py keeps whatever byte a program writes to the palette, and so does a saved machine.
void test_odd_colors() {
  const auto machine = std::make_unique<nespy::Machine>(nespy::power_on(Cartridge{}));
  machine->palette[5] = 0xC7;
  const std::vector<uint8_t> bytes = save_console<NesPyConsole>(*machine, 1);
  CHECK_EQ(load_console<NesPyConsole>(bytes, 1).palette[5], 0xC7);
}

/// A program that has gone wrong is an error of its lane, and of that lane only.
void test_failing_lane(const CartridgePtr& cart) {
  Bench<VblankConsole> bench(small_config(), cart);
  bench.lane.stages = {0};
  bench.lane.reset(bench.context, bench.scratch);
  bench.lane.state.cpu.pc = 0x0300;
  bench.lane.state.ram[0x0300] = 0x02;
  const std::vector<uint8_t> broken = save_lane(bench.lane, bench.context);
  for (const int threads : {1, 3}) {
    Rig rig(small_config(), cart, {{0}, {0}, {0}, {0}}, threads);
    rig.reset();
    rig.vector.load(2, broken);
    std::string message;
    try {
      rig.step(1);
    } catch (const std::runtime_error& e) {
      message = e.what();
    }
    CHECK(message.starts_with("lane 2: illegal opcode"));
    CHECK(rig.ram_of(0) == rig.ram_of(3));
    CHECK_THROWS(std::runtime_error, rig.vector.save(2));
    rig.step(1);  // the broken lane starts anew
    CHECK_EQ(rig.info_of(2, column::kSteps), 0);
    CHECK_EQ(rig.info_of(1, column::kSteps), 2);

    rig.vector.load(2, broken);
    const int64_t lanes[4] = {0, 1, 2, 3};
    const int64_t actions[4] = {1, 1, 1, 1};
    rig.vector.send(actions, lanes);
    int64_t received[4] = {};
    CHECK_THROWS(std::runtime_error, rig.vector.receive(4, rig.arrays(), received));
    CHECK_THROWS(std::runtime_error, rig.vector.receive(4, rig.arrays(), received));
    rig.vector.receive(3, rig.arrays(), received);
    std::sort(received, received + 3);
    CHECK(received[0] == 0 && received[1] == 1 && received[2] == 3);
    rig.step(1);
  }
}

}  // namespace

int main() {
  test_odd_colors();
  test_fingerprints();
  const std::vector<uint8_t> file = check::rom();
  if (!file.empty()) {
    const CartridgePtr cart = parse_ines(file);
    test_same_future<VblankConsole>(cart, 30);
    test_same_future<NesPyConsole>(cart, 6);
    test_refusals(cart);
    test_forgeries(cart);
    test_failing_lane(cart);
  }
  return check::finish();
}
