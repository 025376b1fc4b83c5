#include <algorithm>
#include <array>
#include <cstring>

#include "check.hpp"
#include "game/episode.hpp"
#include "game/rom_check.hpp"
#include "game/scenes.hpp"
#include "game/signals.hpp"
#include "game/start.hpp"
#include "playing.hpp"

using namespace wz;

namespace {

void test_signals() {
  Ram ram = playing();
  const uint8_t score[6] = {0, 1, 2, 3, 4, 0};
  std::memcpy(&ram[ram::kScore], score, sizeof score);
  const uint8_t time[3] = {3, 0, 7};
  std::memcpy(&ram[ram::kTime], time, sizeof time);
  ram[ram::kCoins + 1] = 9;
  ram[ram::kPower] = 5;
  ram[ram::kPlayerXSpeed] = 0xF0;
  ram[ram::kPlayerYOnScreen] = 176;
  ram[ram::kWorld] = 7;
  ram[ram::kEnemyType + 4] = 6;
  ram[ram::kEnemyXPage + 4] = 2;
  ram[ram::kEnemyX + 4] = 3;
  set_x(ram, 0x0BCD);
  int32_t info[kInfoColumns] = {};
  write_signals(ram.data(), info);
  CHECK_EQ(info[column::kScore], 12340);
  CHECK_EQ(info[column::kTime], 307);
  CHECK_EQ(info[column::kCoins], 9);
  CHECK_EQ(info[column::kStatus], 2);
  CHECK_EQ(info[column::kPower], 5);
  CHECK_EQ(info[column::kXPos], 0x0BCD);
  CHECK_EQ(info[column::kYPos], 79);
  CHECK_EQ(info[column::kXSpeed], -16);
  CHECK_EQ(info[column::kWorld], 8);
  CHECK_EQ(info[column::kStage], 1);
  CHECK_EQ(info[column::kEnemies + 16], 6);
  CHECK_EQ(info[column::kEnemies + 18], 0x203);
  ram[ram::kPlayerYHigh] = 0;
  write_signals(ram.data(), info);
  CHECK_EQ(info[column::kYPos], 255 + 79);
  const uint8_t odd[3] = {1, 10, 200};
  CHECK_EQ(read_digits(odd, 3), 110200);
  CHECK(kInfoNames[column::kFurthestX] == "furthest_x");
  CHECK(kInfoNames[column::kEnemies + 7] == "enemy1_y");
  CHECK(kInfoNames[column::kStartStage] == "start_stage");
}

void test_flags() {
  Ram ram = playing();
  CHECK(!flag_get(ram.data()));
  ram[ram::kFloatState] = ram::kOnFlagpole;
  CHECK(!flag_get(ram.data()));  // climbing a vine
  ram[ram::kEnemyType + 2] = ram::kFlagpoleFlag;
  CHECK(flag_get(ram.data()));
  ram = playing();
  ram[ram::kGameMode] = ram::kWorldOver;
  CHECK(flag_get(ram.data()));
  CHECK(!is_game_won(ram.data()));
  ram[ram::kWorld] = 7;
  CHECK(is_game_won(ram.data()));
  ram[ram::kWorld] = 3;
  CHECK(!is_game_won(ram.data()));
  Episode episode = begin_episode(ram.data(), kWholeGame, 0);
  Rules rules;
  for (const uint8_t last : {uint8_t{7}, uint8_t{3}}) {
    rules.last_world = last;
    StepTotals totals;
    account_frame(rules, episode, ram.data(), totals);
    CHECK_EQ(totals.done, last == 3);
  }
  ram = playing();
  CHECK(!is_dying(ram.data()));
  ram[ram::kPlayerYHigh] = 2;
  CHECK(is_dying(ram.data()));
  for (int state = 0; state < 16; ++state) {
    ram[ram::kPlayerState] = static_cast<uint8_t>(state);
    CHECK_EQ(is_busy(ram.data()), state <= 5 || state == 7);
  }
}

int32_t gym_reward_of(int dx, int dt, bool dying) {
  Ram ram = playing();
  set_x(ram, 1000);
  ram[ram::kTime] = 3;
  Episode episode = begin_episode(ram.data(), 0, 0);
  set_x(ram, 1000 + dx);
  ram[ram::kTime + 2] = static_cast<uint8_t>(dt > 0 ? dt : 0);
  if (dt < 0) {
    ram[ram::kTime] = 2;
    ram[ram::kTime + 1] = 9;
    ram[ram::kTime + 2] = static_cast<uint8_t>(10 + dt);
  }
  return gym_frame_reward(episode, ram.data(), dying);
}

void test_gym_reward() {
  CHECK_EQ(gym_reward_of(3, 0, false), 3);
  CHECK_EQ(gym_reward_of(-3, 0, false), -3);
  CHECK_EQ(gym_reward_of(5, 0, false), 5);
  CHECK_EQ(gym_reward_of(6, 0, false), 0);
  CHECK_EQ(gym_reward_of(-6, 0, false), 0);
  CHECK_EQ(gym_reward_of(2, -1, false), 1);
  CHECK_EQ(gym_reward_of(0, 5, false), 0);
  CHECK_EQ(gym_reward_of(2, 0, true), -15);
}

void test_progress() {
  Rules rules;
  rules.weights = {1, 0, 100, -50, 0};
  Ram ram = playing();
  set_x(ram, 100);
  Episode episode = begin_episode(ram.data(), 0, 0);
  const auto gain = [&](int x) {
    set_x(ram, x);
    StepTotals totals;
    account_frame(rules, episode, ram.data(), totals);
    return finish_step(rules, episode, totals);
  };
  CHECK_EQ(gain(103), 3);
  CHECK_EQ(gain(101), 0);
  CHECK_EQ(gain(104), 1);
  CHECK_EQ(episode.stagnant, 0);
  CHECK_EQ(gain(104), 0);
  CHECK_EQ(episode.stagnant, 1);
  // A maze's loop sets Mario back by four pages; the way there again pays nothing.
  CHECK_EQ(gain(2000), 0);  // a warp forward is not walking either
  CHECK_EQ(gain(2000 - 1024), 0);
  CHECK_EQ(gain(1999), 0);
  // That of 4-4 sets him back past the start of its map, where x wraps around.
  CHECK_EQ(gain(0xFFFE), 0);
  CHECK_EQ(gain(2), 0);
  CHECK_EQ(gain(2001), 1);
  // Another map starts anew, and the first one is remembered.
  ram[ram::kAreaIndex] = 9;
  CHECK_EQ(gain(50), 0);
  CHECK_EQ(gain(52), 2);
  CHECK_EQ(episode.furthest_x(), 52);
  ram[ram::kAreaIndex] = 0;
  CHECK_EQ(gain(1500), 0);
  CHECK_EQ(gain(1502), 0);
  CHECK_EQ(episode.furthest_x(), 2001);
  ram[ram::kAreaIndex] = 9;
  CHECK_EQ(gain(53), 1);
  // While a stage loads, positions mean nothing.
  ram[ram::kGameTask] = 0;
  CHECK_EQ(gain(60), 0);
  ram[ram::kGameTask] = ram::kPlayingTask;
  // The next stage forgets the maps of the last.
  ram[ram::kStage] = 1;
  CHECK_EQ(gain(10), 0);
  CHECK_EQ(gain(11), 1);
  CHECK(is_valid(episode));
  // More maps than there is room for.
  for (int area = 0; area < 40; ++area) {
    ram[ram::kAreaIndex] = static_cast<uint8_t>(area);
    gain(area);
  }
  CHECK(is_valid(episode));
  CHECK_EQ(episode.furthest_x(), 39);
}

void test_shaping() {
  Rules rules;
  rules.weights = {0.5f, -1, 100, -50, 0};
  rules.weights.score = 0.25f;
  rules.weights.scale = 2;
  rules.weights.milestone = 7;
  rules.weights.milestone_interval = 10;
  Ram ram = playing();
  set_x(ram, 100);
  Episode episode = begin_episode(ram.data(), 0, 0);
  StepTotals totals;
  const auto gain = [&](int x, int tens) {
    set_x(ram, x);
    ram[ram::kScore + 4] = static_cast<uint8_t>(tens);
    totals = {};
    account_frame(rules, episode, ram.data(), totals);
    account_score(episode, ram.data(), totals);
    return finish_step(rules, episode, totals);
  };
  CHECK_EQ(gain(104, 0), 2 * (4 * 0.5f - 1));
  CHECK_EQ(gain(104, 2), 2 * (20 * 0.25f - 1));
  CHECK_EQ(totals.shaping, 5);
  CHECK_EQ(gain(104, 1), -2);         // points are never taken away
  CHECK_EQ(gain(112, 1), 2 * 3 + 7);  // past the tenth pixel
  CHECK_EQ(gain(105, 1), -2);         // the way back and there again passes nothing
  CHECK_EQ(gain(112, 1), -2);
  CHECK_EQ(episode.pixels, 12);
  CHECK_EQ(gain(112, 12), -2);  // no digit: the score is not read
  CHECK(totals.score_unread);
  CHECK_EQ(gain(112, 2), 2 * (10 * 0.25f - 1));
  ram[ram::kPlayerState] = ram::kDying;  // neither death nor flag is scaled
  CHECK_EQ(gain(112, 2), -2 - 50);
  CHECK(is_valid(episode));

  rules.reward = RewardKind::kShaped;
  ram = playing();
  set_x(ram, 100);
  episode = begin_episode(ram.data(), 0, 0);
  CHECK_EQ(gain(104, 0), 2 * (4 + 4 * 0.5f - 1));
  CHECK_EQ(gain(102, 0), 2 * (-2 - 1));
  rules.reward = RewardKind::kGym;
  CHECK_EQ(gain(105, 0), 3);
  CHECK_EQ(totals.shaping, 0);
}

/// A step's reward is clipped as a whole, at both ends; without a clip it is what it is.
void test_clip() {
  const auto reward_of = [](float clip, int pixels, bool flag, bool death) {
    Rules rules;
    rules.weights = {1, -2, 100, -50, clip};
    const Ram ram = playing();
    Episode episode = begin_episode(ram.data(), 0, 0);
    StepTotals totals;
    totals.pixels = pixels;
    totals.flag = flag;
    totals.death = death;
    return finish_step(rules, episode, totals);
  };
  CHECK_EQ(reward_of(15, 12, false, false), 10);
  CHECK_EQ(reward_of(15, 16, false, false), 14);
  CHECK_EQ(reward_of(15, 18, false, false), 15);
  CHECK_EQ(reward_of(15, 0, true, false), 15);
  CHECK_EQ(reward_of(15, 0, false, true), -15);
  CHECK_EQ(reward_of(15, 40, false, true), -12);
  CHECK_EQ(reward_of(1, 0, false, false), -1);
  CHECK_EQ(reward_of(0, 18, false, false), 16);
  CHECK_EQ(reward_of(0, 0, true, false), 98);
  CHECK_EQ(reward_of(0, 0, false, true), -52);
}

void test_ends() {
  const auto done = [](int stage, bool on_life, auto change) {
    Rules rules;
    rules.end_on_life = on_life;
    Ram ram = playing();
    Episode episode = begin_episode(ram.data(), stage, 0);
    change(ram);
    StepTotals totals;
    account_frame(rules, episode, ram.data(), totals);
    return totals.done;
  };
  const auto nothing = [](Ram&) {};
  const auto dying = [](Ram& ram) { ram[ram::kPlayerState] = ram::kDying; };
  const auto game_over = [](Ram& ram) { ram[ram::kLife] = ram::kGameOverLife; };
  const auto axe = [](Ram& ram) { ram[ram::kGameMode] = ram::kWorldOver; };
  const auto princess = [](Ram& ram) {
    ram[ram::kGameMode] = ram::kWorldOver;
    ram[ram::kWorld] = 7;
  };
  for (const bool on_life : {false, true}) {
    for (const int stage : {0, kWholeGame}) {
      CHECK(!done(stage, on_life, nothing));
      CHECK_EQ(done(stage, on_life, dying), on_life);
      CHECK(done(stage, on_life, game_over));
      CHECK_EQ(done(stage, on_life, axe), stage == 0);
      CHECK(done(stage, on_life, princess));
    }
  }
  Rules rules;
  rules.weights = {0, 0, 100, -50, 0};
  Ram ram = playing();
  Episode episode = begin_episode(ram.data(), kWholeGame, 0);
  dying(ram);
  StepTotals totals;
  account_frame(rules, episode, ram.data(), totals);
  CHECK_EQ(finish_step(rules, episode, totals), -50);
  StepTotals again;
  account_frame(rules, episode, ram.data(), again);
  CHECK_EQ(finish_step(rules, episode, again), 0);  // a life is lost once
}

/// A console whose scenes end after a number of frames.
struct FakeConsole {
  using State = Ram;
  static constexpr Timing kTiming = Timing::kVblank;
  Ram memory = playing();
  int frames = 0;
  int scene_length = 0;
  void advance(uint8_t) {
    if (++frames == scene_length) memory = playing();
  }
  uint8_t* ram() { return memory.data(); }
};

void test_scenes() {
  FakeConsole quiet;
  skip_scenes(quiet, true);
  CHECK_EQ(quiet.frames, 0);

  FakeConsole pipe;
  pipe.scene_length = 30;
  pipe.memory[ram::kPlayerState] = ram::kEnterPipe;
  pipe.memory[ram::kChangeAreaTimer] = 40;
  skip_scenes(pipe, true);
  CHECK_EQ(pipe.frames, 30);

  FakeConsole timer;
  timer.memory[ram::kChangeAreaTimer] = 40;
  skip_scenes(timer, true);
  CHECK_EQ(timer.memory[ram::kChangeAreaTimer], 1);
  CHECK_EQ(timer.frames, 0);

  FakeConsole stuck;
  stuck.memory[ram::kPlayerState] = ram::kClimbVine;
  CHECK_THROWS(std::runtime_error, skip_scenes(stuck, true));
  CHECK_EQ(stuck.frames, kMaxSceneFrames);

  FakeConsole castle;
  castle.memory[ram::kGameMode] = ram::kWorldOver;
  CHECK_THROWS(std::runtime_error, skip_scenes(castle, false));
}

/// A cartridge whose worlds after the second were left out, with an entry scene before 2-3.
void test_stage_table(const Cartridge& cart) {
  const StageTable known, read(cart);
  for (int stage = 0; stage < kStages; ++stage) {
    CHECK(read.has(stage));
    CHECK_EQ(read.area(stage), known.area(stage));
  }
  CHECK_EQ(read.last_world(), 7);
  constexpr int kOffsets = 0x9CB4 - 0x8000, kPointers = 0x9CBC - 0x8000;
  Cartridge other = cart;
  for (int i = 0; i < 64; ++i) other.prg[static_cast<size_t>(kPointers + i)] = 0;
  const uint8_t offsets[] = {0, 4, 20, 21, 22, 23, 24, 25};
  const uint8_t pointers[] = {0x20, 0x21, 0x22, 0x60, 0x23, 0x24, 0x29, 0x25, 0xE1};
  std::copy(std::begin(offsets), std::end(offsets), other.prg.begin() + kOffsets);
  std::copy(std::begin(pointers), std::end(pointers), other.prg.begin() + kPointers);
  const StageTable table(other);
  const int areas[] = {0, 1, 2, 3, 0, 1, 3, 4};
  for (int stage = 0; stage < 8; ++stage) CHECK_EQ(table.area(stage), areas[stage]);
  for (int stage = 8; stage < kStages; ++stage) {
    CHECK(!table.has(stage));
    CHECK_THROWS(std::invalid_argument, table.require(stage));
  }
  CHECK_EQ(table.last_world(), 1);
  // Another program may look stages up in another way: then they are where they always were.
  other.prg[0x9C13 - 0x8000] ^= 1;
  CHECK_EQ(StageTable(other).area(31), known.area(31));
}

template <class C>
void test_start(const CartridgePtr& cart, int stage) {
  const auto states = shared_start_states<C>(cart);
  const typename C::State& state = states->get(stage, nullptr);
  CHECK(&state == &states->get(stage, nullptr));
  const int level = stage == kWholeGame ? 0 : stage;
  CHECK_EQ(state.ram[ram::kWorld], level / 4);
  CHECK_EQ(state.ram[ram::kStage], level % 4);
  CHECK(in_control(state.ram));
  CHECK(game_time(state.ram) > 200);
  CHECK(!is_dying(state.ram));
}

void test_rom(const std::vector<uint8_t>& file) {
  const CartridgePtr cart = parse_ines(file);
  require_super_mario_bros(*cart);
  for (const unsigned address : {0xFFFAu, 0x8057u, 0x8151u, 0x8E70u}) {
    Cartridge other = *cart;
    other.prg[address - 0x8000] ^= 0x10;
    CHECK_THROWS(std::invalid_argument, require_super_mario_bros(other));
  }
  test_stage_table(*cart);
  for (int stage = kWholeGame; stage < kStages; ++stage) test_start<VblankConsole>(cart, stage);
  test_start<NesPyConsole>(cart, 0);
  test_start<NesPyConsole>(cart, 13);
  const auto states = shared_start_states<VblankConsole>(cart);
  CHECK(states == shared_start_states<VblankConsole>(parse_ines(file)));
  CHECK_THROWS(std::out_of_range, states->get(32, nullptr));
  CHECK_THROWS(std::out_of_range, states->get(-2, nullptr));
}

}  // namespace

int main() {
  test_signals();
  test_flags();
  test_gym_reward();
  test_progress();
  test_shaping();
  test_clip();
  test_ends();
  test_scenes();
  CHECK_THROWS(std::invalid_argument, require_super_mario_bros(Cartridge{}));
  const std::vector<uint8_t> file = check::rom();
  if (!file.empty()) test_rom(file);
  return check::finish();
}
