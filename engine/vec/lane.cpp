#include "vec/lane.hpp"

#include <cstring>
#include <stdexcept>

#include "game/scenes.hpp"

namespace wz {

StepRows StepRows::at(int row, size_t stack_bytes) const {
  const auto i = static_cast<size_t>(row);
  StepRows r;
  r.obs = obs + i * stack_bytes;
  r.reward = reward + i;
  r.terminated = terminated + i;
  r.truncated = truncated + i;
  r.info = info + i * kInfoColumns;
  if (final_obs) r.final_obs = final_obs + i * stack_bytes;
  if (final_info) r.final_info = final_info + i * kInfoColumns;
  return r;
}

template <Console C>
bool Lane<C>::delay(const Context& context, int frames) {
  const LaneConfig& config = context.config;
  C console{state, *context.cart, context.native_code()};
  for (int i = 0; i < frames; ++i) {
    console.advance(0);
    StepTotals totals;
    account_frame(config.rules, episode, state.ram, totals);
    if (totals.done) return false;
    if (config.rules.skip_scenes) skip_scenes(console, episode.single_stage());
  }
  return true;
}

template <Console C>
void Lane<C>::reset(const Context& context, Scratch& scratch) {
  status = LaneStatus::kBroken;
  const int stage = context.beginnings.draw_stage(stages, rng);
  const int frames = draw_delay(context.config);
  const bool halfway = stage != kWholeGame && context.starts->table().halfway_page(stage) != 0;
  const Entrance entrance = draw_entrance(context.config, halfway);
  held = 0;
  if (const RestartPoint<C>* point = context.beginnings.draw_point(stage, rng)) {
    restart(context, *point);
  } else {
    start(context, scratch, stage, frames, entrance);
  }
  show_start(state.ram);
  status = LaneStatus::kRunning;
}

template <Console C>
void Lane<C>::restart(const Context& context, const RestartPoint<C>& point) {
  if (played) {
    C::restore(state, point.state);
  } else {
    state = point.state;
    played = true;
  }
  episode = point.episode;
  episode.steps = episode.stagnant = 0;
  episode.restart = point.id;
  std::memcpy(history, point.history.data(), context.stack_bytes());
  newest = static_cast<uint8_t>(context.config.frame_stack - 1);
  force(point.script);
}

template <Console C>
void Lane<C>::start(const Context& context, Scratch& scratch, int stage, int frames,
                    Entrance entrance) {
  const LaneConfig& config = context.config;
  const State& begin = context.starts->get(stage, context.native_code(), entrance);
  // nes-py's own reset keeps the controllers, so a machine that has played is restored.
  if (played) {
    C::restore(state, begin);
  } else {
    state = begin;
    played = true;
  }
  episode = begin_episode(state.ram, stage, 0);
  if (!delay(context, frames)) {
    // Standing still this long is fatal here; the episode starts without a delay instead.
    C::restore(state, begin);
    frames = 0;
  }
  episode = begin_episode(state.ram, stage, frames);
  if (entrance.halfway) episode.restart = kHalfwayRestart;
  force(context.beginnings.script);

  newest = 0;
  observe_state(*context.plan, state, *context.cart, scratch, history);
  for (int i = 1; i < config.frame_stack; ++i) {
    std::memcpy(history + static_cast<size_t>(i) * context.frame_bytes(), history,
                context.frame_bytes());
  }
}

template <Console C>
void Lane<C>::play(const Context& context, Scratch& scratch, int action, const StepRows& rows) {
  const LaneConfig& config = context.config;
  C console{state, *context.cart, context.native_code()};
  const uint8_t wanted = config.buttons[static_cast<size_t>(action)];
  // Until the step is through: a frame may throw.
  status = LaneStatus::kBroken;

  StepTotals totals;
  for (int frame = 0; frame < config.frame_skip; ++frame) {
    const uint8_t buttons = press(config, wanted);
    if (config.max_last_two) scratch.previous = state;
    console.advance(buttons);
    if (account(config, state.ram, frame + 1 == config.frame_skip, totals)) break;
    if (config.rules.skip_scenes) skip_scenes(console, episode.single_stage());
  }

  const Outcome outcome = finish(config, totals);
  *rows.reward = outcome.reward;
  *rows.terminated = outcome.terminated;
  *rows.truncated = outcome.truncated;
  status = *rows.terminated || *rows.truncated ? LaneStatus::kEnded : LaneStatus::kRunning;

  newest = static_cast<uint8_t>((newest + 1) % config.frame_stack);
  uint8_t* slot = history + newest * context.frame_bytes();
  if (config.max_last_two) {
    observe_state_max(*context.plan, state, *context.cart, scratch, slot);
  } else {
    observe_state(*context.plan, state, *context.cart, scratch, slot);
  }
}

template <Console C>
void Lane<C>::step(const Context& context, Scratch& scratch, int action, const StepRows& rows) {
  const Autoreset mode = context.config.autoreset;
  if (status == LaneStatus::kRunning) {
    play(context, scratch, action, rows);
    if (status == LaneStatus::kEnded && mode == Autoreset::kSameStep) {
      if (rows.final_obs) write_stack(context, rows.final_obs);
      if (rows.final_info) std::memcpy(rows.final_info, info, sizeof info);
      reset(context, scratch);
    }
  } else if (status != LaneStatus::kNew && mode != Autoreset::kDisabled) {
    reset(context, scratch);
    *rows.reward = 0;
    *rows.terminated = *rows.truncated = false;
  } else {
    throw std::runtime_error(status == LaneStatus::kNew
                                 ? "the lane was stepped before its first reset"
                                 : "the lane's episode has ended; reset it");
  }
  if (rows.obs) write_stack(context, rows.obs);
  std::memcpy(rows.info, info, sizeof info);
}

template <Console C>
void Lane<C>::write_stack(const Context& context, uint8_t* out) const {
  // Two runs: from the oldest to the end of the ring, and from its beginning to the newest.
  const size_t size = context.frame_bytes();
  const size_t split = (static_cast<size_t>(newest) + 1) * size;
  const size_t rest = context.stack_bytes() - split;
  std::memcpy(out, history + split, rest);
  std::memcpy(out + rest, history, split);
}

template struct Lane<VblankConsole>;
template struct Lane<NesPyConsole>;

}  // namespace wz
