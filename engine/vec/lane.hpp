#pragma once

#include <memory>
#include <vector>

#include "game/episode.hpp"
#include "game/start.hpp"
#include "vec/accounts.hpp"
#include "vec/view.hpp"

namespace wz {

enum class LaneStatus : uint8_t {
  kNew,
  kRunning,
  kEnded,
  kBroken,  ///< a frame failed; like kEnded, but there is no machine to save
};

/// Where the results of a lane's step go: a row of each of the caller's arrays, a lane or a place
/// in a batch being a row. The last two are only needed with Autoreset::kSameStep, and `obs` may be
/// null when the caller asks for the observation later.
struct StepRows {
  uint8_t* obs = nullptr;
  float* reward = nullptr;
  bool* terminated = nullptr;
  bool* truncated = nullptr;
  int32_t* info = nullptr;
  uint8_t* final_obs = nullptr;
  int32_t* final_info = nullptr;

  /// The rows `row` further on; an observation takes `stack_bytes`.
  StepRows at(int row, size_t stack_bytes) const;
};

template <Console C>
struct ScratchOf;
template <>
struct ScratchOf<VblankConsole> {
  using Type = VblankScratch;
};
template <>
struct ScratchOf<NesPyConsole> {
  using Type = NesPyScratch;
};

/// What all lanes of a vector share and none may change while they run.
template <Console C>
struct LaneContext {
  LaneConfig config;
  uint64_t fingerprint = 0;  ///< of the configuration at construction: weights may change later
  Beginnings<C> beginnings;
  CartridgePtr cart;
  NativeCode native;  ///< empty = interpreter
  std::shared_ptr<StartStates<C>> starts;
  std::unique_ptr<ObservePlan> plan;

  const NativeCode* native_code() const { return native.run ? &native : nullptr; }
  size_t frame_bytes() const { return plan->size(); }
  size_t stack_bytes() const { return plan->size() * static_cast<size_t>(config.frame_stack); }
};

/// One game: the machine, its accounts and the last observations.
template <Console C>
struct Lane : LaneAccounts {
  using State = typename C::State;
  using Scratch = typename ScratchOf<C>::Type;
  using Context = LaneContext<C>;

  State state{};
  LaneStatus status = LaneStatus::kNew;
  uint8_t newest = 0;           ///< where in the history the last observation is
  bool played = false;          ///< whether `state` holds a machine yet
  std::vector<uint8_t> stages;  ///< what resets draw from; empty = the whole game
  uint8_t* history = nullptr;   ///< the last `frame_stack` observations, a ring

  /// Starts an episode. The history is filled with its first observation.
  void reset(const Context& context, Scratch& scratch);

  /// Plays one step. A lane that must be reset first is an error unless the autoreset mode
  /// resets it here.
  void step(const Context& context, Scratch& scratch, int action, const StepRows& rows);

  /// Writes the history, oldest observation first.
  void write_stack(const Context& context, uint8_t* out) const;

 private:
  void start(const Context& context, Scratch& scratch, int stage, int frames, Entrance entrance);
  void restart(const Context& context, const RestartPoint<C>& point);
  void play(const Context& context, Scratch& scratch, int action, const StepRows& rows);
  /// False when the game ended during the delay.
  bool delay(const Context& context, int frames);
};

extern template struct Lane<VblankConsole>;
extern template struct Lane<NesPyConsole>;

}  // namespace wz
