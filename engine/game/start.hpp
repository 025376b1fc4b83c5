#pragma once

#include <array>
#include <memory>
#include <mutex>

#include "game/consoles.hpp"

namespace wz {

inline constexpr int kStages = 32;
inline constexpr int kWholeGame = -1;

/// From power-on to the first moment of play, with the button presses and pokes of
/// gym-super-mario-bros. `stage` is 0..31, or kWholeGame to start at 1-1 and play on.
/// Throws std::runtime_error when the game does not start.
template <Console C>
void reach_start(C& console, int stage);

/// The start states of one cartridge, made when first asked for and then shared. Safe to use from
/// any number of threads.
template <Console C>
class StartStates {
 public:
  explicit StartStates(CartridgePtr cart) : cart_(std::move(cart)) {}

  const typename C::State& get(int stage, const NativeCode* native);
  const Cartridge& cartridge() const { return *cart_; }

 private:
  struct Entry {
    std::once_flag once;
    std::unique_ptr<typename C::State> state;
  };
  CartridgePtr cart_;
  std::array<Entry, kStages + 1> entries_;
};

/// The start states of this cartridge; every caller in the process gets the same ones.
template <Console C>
std::shared_ptr<StartStates<C>> shared_start_states(const CartridgePtr& cart);

}  // namespace wz
