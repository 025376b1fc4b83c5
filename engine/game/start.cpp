#include "game/start.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include "game/signals.hpp"

namespace wz {
namespace {

constexpr uint8_t kStartButton = 0x08;
constexpr int kMaxStartFrames = 20000;
constexpr size_t kRememberedCartridges = 4;

void write_stage(uint8_t* ram, int stage, const StageTable& table) {
  ram[ram::kWorld] = static_cast<uint8_t>(stage / kStagesPerWorld);
  ram[ram::kStage] = static_cast<uint8_t>(stage % kStagesPerWorld);
  ram[ram::kArea] = table.area(stage);
}

void check_stage(int stage, const StageTable& table) {
  if (stage < kWholeGame || stage >= kStages) {
    throw std::out_of_range("stage " + std::to_string(stage) + " is outside -1..31");
  }
  if (stage != kWholeGame) table.require(stage);
}

/// Until the game has cleared RAM after power-on, the clock's digits are not digits.
bool clock_runs(const uint8_t* ram) { return ram[ram::kTime] <= 9 && game_time(ram) != 0; }

template <Console C>
class StartPresser {
 public:
  explicit StartPresser(C& console) : console_(console) {}

  void press() {
    if (++presses_ > kMaxStartFrames / 2) {
      throw std::runtime_error("the game did not start within " + std::to_string(kMaxStartFrames) +
                               " frames after power-on");
    }
    console_.advance(kStartButton);
  }
  void release() { console_.advance(0); }

 private:
  C& console_;
  int presses_ = 0;
};

bool same_program(const Cartridge& a, const Cartridge& b) {
  return a.prg == b.prg && a.chr == b.chr && a.vertical_mirroring == b.vertical_mirroring;
}

}  // namespace

template <Console C>
void reach_start(C& console, int stage, const StageTable& table) {
  check_stage(stage, table);
  const uint8_t* ram = console.ram();
  StartPresser<C> start(console);
  start.press();
  start.release();
  while (!clock_runs(ram)) {
    start.press();
    if (stage != kWholeGame) write_stage(console.ram(), stage, table);
    start.release();
    console.ram()[ram::kPrelevelTimer] = 0;
  }
  int32_t last = game_time(ram);
  while (game_time(ram) >= last) {
    last = game_time(ram);
    start.press();
    start.release();
  }
}

template <Console C>
const typename C::State& StartStates<C>::get(int stage, const NativeCode* native) {
  check_stage(stage, table_);
  Entry& entry = entries_[static_cast<size_t>(stage - kWholeGame)];
  std::call_once(entry.once, [&] {
    auto state = std::make_unique<typename C::State>(C::power_on(*cart_));
    C console{*state, *cart_, native};
    reach_start(console, stage, table_);
    entry.state = std::move(state);
  });
  return *entry.state;
}

template <Console C>
std::shared_ptr<StartStates<C>> shared_start_states(const CartridgePtr& cart) {
  // A memo of pure results, not state: its content never changes a result.
  static std::mutex mutex;
  static std::vector<std::shared_ptr<StartStates<C>>> known;
  const std::lock_guard<std::mutex> lock(mutex);
  for (const auto& states : known) {
    if (same_program(states->cartridge(), *cart)) return states;
  }
  if (known.size() == kRememberedCartridges) known.erase(known.begin());
  known.push_back(std::make_shared<StartStates<C>>(cart));
  return known.back();
}

template void reach_start(VblankConsole&, int, const StageTable&);
template void reach_start(NesPyConsole&, int, const StageTable&);
template void reach_start(ForeignConsole&, int, const StageTable&);
template class StartStates<VblankConsole>;
template class StartStates<NesPyConsole>;
template std::shared_ptr<StartStates<VblankConsole>> shared_start_states(const CartridgePtr&);
template std::shared_ptr<StartStates<NesPyConsole>> shared_start_states(const CartridgePtr&);

}  // namespace wz
