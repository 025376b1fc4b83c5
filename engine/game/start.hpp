#pragma once

#include <array>
#include <memory>
#include <mutex>

#include "game/consoles.hpp"
#include "game/stage_table.hpp"

namespace wz {

inline constexpr int kWholeGame = -1;

/// What Mario is, as the game counts it.
enum class Power : uint8_t { kSmall, kBig, kFire };
inline constexpr int kPowers = 3;

/// As what Mario enters a stage, and where: what the game itself carries from stage to stage.
struct Entrance {
  Power power = Power::kSmall;
  bool halfway =
      false;  ///< at the halfway page, as after a lost life; a stage without one: the door
};

/// From power-on to the first moment of play, with the button presses and pokes of
/// gym-super-mario-bros; what is carried over is written before the game loads the stage. `stage`
/// is 0..31, or kWholeGame to start at 1-1 and play on; `table` says where the cartridge has it.
/// Throws std::out_of_range for no stage at all, std::invalid_argument for one that the cartridge
/// does not have, and std::runtime_error when the game does not start.
template <Console C>
void reach_start(C& console, int stage, const StageTable& table = {}, Entrance entrance = {});

/// The start states of one cartridge, made when first asked for and then shared. Safe to use from
/// any number of threads.
template <Console C>
class StartStates {
 public:
  explicit StartStates(CartridgePtr cart) : cart_(std::move(cart)), table_(*cart_) {}

  const typename C::State& get(int stage, const NativeCode* native, Entrance entrance = {});
  const Cartridge& cartridge() const { return *cart_; }
  const StageTable& table() const { return table_; }

 private:
  struct Entry {
    std::once_flag once;
    std::unique_ptr<typename C::State> state;
  };
  CartridgePtr cart_;
  StageTable table_;
  std::array<Entry, (kStages + 1) * kPowers * 2> entries_;
};

/// The start states of this cartridge; every caller in the process gets the same ones.
template <Console C>
std::shared_ptr<StartStates<C>> shared_start_states(const CartridgePtr& cart);

}  // namespace wz
