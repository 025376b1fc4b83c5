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

/// The page of its stage at which an entrance is; 0 is the door.
uint8_t page_of(int stage, const StageTable& table, Entrance entrance) {
  return entrance.halfway && stage != kWholeGame ? table.halfway_page(stage) : 0;
}

/// Writes what the game keeps of Mario and his place when it goes on to a stage, once it has left
/// the title and before it loads the stage. Nothing is written for small Mario at the door: a new
/// game has that itself.
void carry_over(uint8_t* ram, Entrance entrance, uint8_t page) {
  if (ram[ram::kGameMode] != ram::kPlaying || ram[ram::kGameTask] != ram::kLoadingTask) return;
  if (entrance.power != Power::kSmall) {
    ram[ram::kPower] = static_cast<uint8_t>(entrance.power);
    ram[ram::kPlayerSize] = 0;
  }
  if (page != 0) ram[ram::kHalfwayPage] = page;
}

void check_entrance(const uint8_t* ram, Entrance entrance, uint8_t page) {
  if (ram[ram::kPower] != static_cast<uint8_t>(entrance.power) ||
      (page != 0 && ram[ram::kPlayerXPage] != page)) {
    throw std::runtime_error("this ROM does not start a stage as power " +
                             std::to_string(static_cast<int>(entrance.power)) + " at page " +
                             std::to_string(page));
  }
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
  StartPresser(C& console, Entrance entrance, uint8_t page)
      : console_(console), entrance_(entrance), page_(page) {}

  void press() {
    if (++presses_ > kMaxStartFrames / 2) {
      throw std::runtime_error("the game did not start within " + std::to_string(kMaxStartFrames) +
                               " frames after power-on");
    }
    advance(kStartButton);
  }
  void release() { advance(0); }

 private:
  void advance(uint8_t buttons) {
    console_.advance(buttons);
    carry_over(console_.ram(), entrance_, page_);
  }

  C& console_;
  Entrance entrance_;
  uint8_t page_;
  int presses_ = 0;
};

bool same_program(const Cartridge& a, const Cartridge& b) {
  return a.prg == b.prg && a.chr == b.chr && a.vertical_mirroring == b.vertical_mirroring;
}

}  // namespace

template <Console C>
void reach_start(C& console, int stage, const StageTable& table, Entrance entrance) {
  check_stage(stage, table);
  const uint8_t* ram = console.ram();
  const uint8_t page = page_of(stage, table, entrance);
  StartPresser<C> start(console, entrance, page);
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
  check_entrance(ram, entrance, page);
}

template <Console C>
const typename C::State& StartStates<C>::get(int stage, const NativeCode* native,
                                             Entrance entrance) {
  check_stage(stage, table_);
  const int kind = static_cast<int>(entrance.power) * 2 + (entrance.halfway ? 1 : 0);
  Entry& entry = entries_[static_cast<size_t>((stage - kWholeGame) * kPowers * 2 + kind)];
  std::call_once(entry.once, [&] {
    auto state = std::make_unique<typename C::State>(C::power_on(*cart_));
    C console{*state, *cart_, native};
    reach_start(console, stage, table_, entrance);
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

template void reach_start(VblankConsole&, int, const StageTable&, Entrance);
template void reach_start(NesPyConsole&, int, const StageTable&, Entrance);
template void reach_start(ForeignConsole&, int, const StageTable&, Entrance);
template class StartStates<VblankConsole>;
template class StartStates<NesPyConsole>;
template std::shared_ptr<StartStates<VblankConsole>> shared_start_states(const CartridgePtr&);
template std::shared_ptr<StartStates<NesPyConsole>> shared_start_states(const CartridgePtr&);

}  // namespace wz
