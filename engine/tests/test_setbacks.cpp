#include "check.hpp"
#include "game/episode.hpp"
#include "playing.hpp"

using namespace wz;

namespace {

/// The game sends Mario back: a loop, a pipe that leads back, or a wrong turn that it counted.
void test_setbacks() {
  Rules rules;
  rules.weights = {1, 0, 100, -50, 0};
  rules.end_on_setback = true;
  Ram ram = playing();
  set_x(ram, 0x500);
  Episode episode = begin_episode(ram.data(), 0, 0);
  const auto frame = [&](int x) {
    set_x(ram, x);
    StepTotals totals;
    account_frame(rules, episode, ram.data(), totals);
    return totals;
  };
  CHECK(!frame(0x500 - 256).setback);  // as far as the screen lets him walk back
  const StepTotals looped = frame(0x500 - 257);
  CHECK(looped.setback && looped.done && !looped.death);
  StepTotals paid = looped;
  CHECK_EQ(finish_step(rules, episode, paid), -50);
  rules.end_on_setback = false;
  StepTotals free = frame(0x100);
  CHECK(free.setback && !free.done);
  CHECK_EQ(finish_step(rules, episode, free), 0);
  CHECK(frame(0xFFFE).setback);  // past the start of the map
  // A map that is new, or entered again ahead of what was seen of it, is no set-back.
  ram[ram::kAreaIndex] = 9;
  CHECK(!frame(0x20).setback);
  ram[ram::kAreaIndex] = 0;
  CHECK(!frame(0x700).setback);
  ram[ram::kAreaIndex] = 9;
  CHECK(!frame(0x30).setback);
  ram[ram::kAreaIndex] = 0;
  CHECK(frame(0x120).setback);
  // 7-4 counts turns and sends back after the third; a wrong one is known at once.
  CHECK(!frame(0x700).setback);
  ram[ram::kLoopsPassed] = 1;
  CHECK(frame(0x700).setback);
  ram[ram::kLoopsCorrect] = 1;
  CHECK(!frame(0x700).setback);
  // Outside the player's control positions mean nothing.
  ram[ram::kPlayerState] = ram::kEnterPipe;
  CHECK(!frame(0x100).setback);
}

}  // namespace

int main() {
  test_setbacks();
  return check::finish();
}
