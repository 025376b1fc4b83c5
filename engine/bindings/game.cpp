#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arguments.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/fields.hpp"
#include "game/scenes.hpp"
#include "game/start.hpp"
#include "vec/accounts.hpp"
#include "vec/screen.hpp"

/// What the engine knows about the game, for machines that are not its own.
namespace wz::bindings {
namespace {

Array<uint8_t> ram_of(nb::handle ram) { return {ram, "ram", {ram::kSize}, Access::kRead}; }

Array<int32_t> row_of(nb::handle row) { return {row, "row", {kInfoColumns}, Access::kWrite}; }

/// A machine that Python runs.
class PyMachine final : public ForeignMachine {
 public:
  explicit PyMachine(nb::handle machine) : machine_(machine) {}

  void advance(uint8_t buttons) override { machine_.attr("advance")(buttons); }
  void read_ram(uint8_t* out) override {
    const nb::object ram = machine_.attr("ram")();
    std::memcpy(out, ram_of(ram).data(), ram::kSize);
  }
  void poke(uint16_t address, uint8_t value) override { machine_.attr("poke")(address, value); }

 private:
  nb::handle machine_;
};

void reach_start_of(nb::handle machine, int stage) {
  PyMachine other(machine);
  ForeignConsole console(other);
  reach_start(console, stage);
  console.flush();
}

void skip_scenes_of(nb::handle machine, bool single_stage) {
  PyMachine other(machine);
  ForeignConsole console(other);
  skip_scenes(console, single_stage);
  console.flush();
}

nb::object read_signals(nb::handle ram) {
  const Array<uint8_t> bytes = ram_of(ram);
  void* out;
  nb::object row = new_array({kInfoColumns}, Dtype::kInt32, &out);
  std::memset(out, 0, sizeof(int32_t) * kInfoColumns);
  write_signals(bytes.data(), static_cast<int32_t*>(out));
  return row;
}

/// Observes screens that others have drawn.
class PyScreens {
 public:
  PyScreens(const ObserveSpec& spec, const std::string& simd) : plan_(spec, parse_simd(simd)) {
    for (const int length : spec.shape()) shape_.push_back(length);
  }

  nb::object observe(nb::handle screen, nb::handle previous) const {
    const int channels = nb::cast<int>(screen.attr("ndim")) == 3 ? 3 : 1;
    const Array<uint8_t> now = pixels(screen, channels, -1, -1);
    const auto height = static_cast<int>(now.length()), width = static_cast<int>(now.length(1));
    const Screen shown{now.data(), height, width, channels};
    void* out;
    nb::object result = new_array(shape_, Dtype::kUint8, &out);
    if (previous.is_none()) {
      observe_screen(plan_, shown, nullptr, static_cast<uint8_t*>(out));
    } else {
      const Array<uint8_t> before = pixels(previous, channels, height, width);
      const Screen earlier{before.data(), height, width, channels};
      observe_screen(plan_, shown, &earlier, static_cast<uint8_t*>(out));
    }
    return result;
  }

 private:
  static Array<uint8_t> pixels(nb::handle screen, int channels, int height, int width) {
    const Shape shape = channels == 3 ? Shape{height, width, 3} : Shape{height, width};
    return {screen, "screen", shape, Access::kRead};
  }

  ObservePlan plan_;
  Shape shape_;
};

/// `LaneAccounts` with the configuration and the step that is under way.
class PyAccounts {
 public:
  explicit PyAccounts(const LaneConfig& config)
      : config_(config), script_(make_script(config.script)) {
    check_config(config_);
  }

  void seed(uint64_t seed) { accounts_.rng.state = seed; }
  uint64_t random() { return accounts_.rng.next(); }
  void set_reward_weights(const RewardWeights& weights) {
    check_weights(weights);
    config_.rules.weights = weights;
  }
  void set_stage_weights(std::vector<double> weights) {
    if (!weights.empty()) check_stage_weights(weights);
    stage_weights_ = std::move(weights);
  }
  void set_script(const nb::bytes& masks) { script_ = make_script(masks_of(masks)); }
  void force(const nb::bytes& masks) { accounts_.force(make_script(masks_of(masks))); }

  nb::tuple draw(const Integers& stages) {
    const int stage = draw_stage(stage_list(stages), stage_weights_, accounts_.rng);
    return nb::make_tuple(stage, accounts_.draw_delay(config_));
  }

  void begin(nb::handle ram, int stage, int delay) {
    const Array<uint8_t> bytes = ram_of(ram);
    start(begin_episode(bytes.data(), checked(stage), delay));
    accounts_.show_start(bytes.data());
  }
  void begin_told(int stage, int delay, int32_t x) {
    Episode episode{};
    episode.start_stage = checked(stage);
    episode.start_delay = delay;
    episode.ground.count = 1;
    episode.ground.furthest[0] = x;
    start(episode);
  }

  int press(int action) {
    if (action < 0 || static_cast<size_t>(action) >= config_.buttons.size()) {
      throw std::invalid_argument("the action must be in 0.." +
                                  std::to_string(config_.buttons.size() - 1) + ", and is " +
                                  std::to_string(action));
    }
    return accounts_.press(config_, config_.buttons[static_cast<size_t>(action)]);
  }
  bool frame(nb::handle ram, bool last) {
    return accounts_.account(config_, ram_of(ram).data(), last, totals_);
  }
  nb::tuple finish() { return finished(std::exchange(totals_, {})); }
  nb::tuple finish_told(const StepTotals& totals, int32_t furthest_x) {
    accounts_.episode.ground.furthest[accounts_.episode.ground.current] = furthest_x;
    return finished(totals);
  }

  void write_info(nb::handle row) const {
    std::memcpy(row_of(row).data(), accounts_.info, sizeof accounts_.info);
  }
  void write_counters(nb::handle row) const {
    accounts_.write_counters(row_of(row).data(), accounts_.info[column::kForced] != 0);
  }
  std::vector<double> take_shaping() {
    std::vector<double> sums(kShapingFields);
    accounts_.shaping.take(sums.data());
    return sums;
  }

 private:
  static int checked(int stage) {
    if (stage < kWholeGame || stage >= kStages) {
      throw std::invalid_argument("a stage must be in -1..31, and is " + std::to_string(stage));
    }
    return stage;
  }
  void start(const Episode& episode) {
    accounts_.episode = episode;
    accounts_.held = 0;
    accounts_.info[column::kForced] = 0;
    accounts_.force(script_);
    totals_ = {};
  }
  nb::tuple finished(StepTotals totals) {
    const LaneAccounts::Outcome outcome = accounts_.finish(config_, totals);
    return nb::make_tuple(outcome.reward, outcome.terminated, outcome.truncated);
  }

  LaneConfig config_;
  std::vector<double> stage_weights_;
  Script script_;  ///< of every episode's start
  LaneAccounts accounts_;
  StepTotals totals_;
};

nb::dict addresses() {
  nb::dict map;
  for (const auto& [name, address] : ram::kAddresses) {
    map[nb::str(name.data(), name.size())] = address;
  }
  return map;
}

void bind_meanings(nb::module_& m) {
  m.attr("RAM") = addresses();
  nb::enum_<ram::PlayerState>(m, "PlayerState", nb::is_arithmetic())
      .value("DEAD", ram::kDead)
      .value("IN_CONTROL", ram::kInControl)
      .value("DYING", ram::kDying);
  nb::enum_<ram::GameMode>(m, "GameMode", nb::is_arithmetic())
      .value("TITLE", ram::kTitle)
      .value("PLAYING", ram::kPlaying)
      .value("WORLD_OVER", ram::kWorldOver)
      .value("GAME_OVER", ram::kGameOver);
  nb::enum_<ram::GameTask>(m, "GameTask", nb::is_arithmetic()).value("PLAYING", ram::kPlayingTask);
  nb::enum_<ram::EnemyType>(m, "EnemyType", nb::is_arithmetic()).value("FLAG", ram::kFlag);
  m.def("read_signals", &read_signals, nb::arg("ram"));
  m.def(
      "is_game_won", [](nb::handle ram) { return is_game_won(ram_of(ram).data()); },
      nb::arg("ram"));
}

}  // namespace

void bind_game(nb::module_& m) {
  using nb::arg;
  bind_meanings(m);
  m.def("next_seed", [](uint64_t seed) { return Rng{seed}.next(); }, arg("seed"));
  m.def("reach_start", &reach_start_of, arg("machine"), arg("stage"));
  m.def("skip_scenes", &skip_scenes_of, arg("machine"), arg("single_stage"));
  nb::class_<PyScreens>(m, "Screens")
      .def(nb::init<const ObserveSpec&, const std::string&>(), arg("spec"), arg("simd") = "auto")
      .def("observe", &PyScreens::observe, arg("screen"), arg("previous").none() = nb::none());
  bind_fields(
      m, "StepTotals",
      std::tuple{Field{"gym_reward", &StepTotals::gym_reward}, Field{"pixels", &StepTotals::pixels},
                 Field{"points", &StepTotals::points}, Field{"new_ground", &StepTotals::new_ground},
                 Field{"flag", &StepTotals::flag}, Field{"death", &StepTotals::death},
                 Field{"done", &StepTotals::done},
                 Field{"score_unread", &StepTotals::score_unread}});
  nb::class_<PyAccounts>(m, "LaneAccounts")
      .def(nb::init<const LaneConfig&>(), arg("lanes"))
      .def("seed", &PyAccounts::seed, arg("seed"))
      .def("random", &PyAccounts::random)
      .def("set_reward_weights", &PyAccounts::set_reward_weights, arg("weights"))
      .def("set_stage_weights", &PyAccounts::set_stage_weights, arg("weights"))
      .def("set_script", &PyAccounts::set_script, arg("masks"))
      .def("force", &PyAccounts::force, arg("masks"))
      .def("draw", &PyAccounts::draw, arg("stages"))
      .def("begin", &PyAccounts::begin, arg("ram"), arg("stage"), arg("delay"))
      .def("begin_told", &PyAccounts::begin_told, arg("stage"), arg("delay"), arg("x"))
      .def("press", &PyAccounts::press, arg("action"))
      .def("frame", &PyAccounts::frame, arg("ram"), arg("last"))
      .def("finish", &PyAccounts::finish)
      .def("finish_told", &PyAccounts::finish_told, arg("totals"), arg("furthest_x"))
      .def("write_info", &PyAccounts::write_info, arg("row"))
      .def("write_counters", &PyAccounts::write_counters, arg("row"))
      .def("take_shaping", &PyAccounts::take_shaping);
}

}  // namespace wz::bindings
