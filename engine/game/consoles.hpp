#pragma once

#include <concepts>
#include <cstdint>

#include "nes/console.hpp"
#include "nespy/nespy.hpp"

/// The two kinds of machine the game runs on, behind one small shape: a state that can be copied,
/// and a view of it that can be advanced. Game code is written once, against `Console`.
namespace wz {

enum class Timing : uint8_t { kVblank, kNesPy };

template <class C>
concept Console = requires(C console, uint8_t buttons) {
  typename C::State;
  { C::kTiming } -> std::convertible_to<Timing>;
  { console.advance(buttons) } -> std::same_as<void>;
  { console.ram() } -> std::same_as<uint8_t*>;
};

/// A step ends when the picture is complete, as on real hardware.
struct VblankConsole {
  using State = Machine;
  static constexpr Timing kTiming = Timing::kVblank;

  State& machine;
  const Cartridge& cart;
  const NativeCode* native;

  static State power_on(const Cartridge& cartridge) { return wz::power_on(cartridge); }
  static void restore(State& state, const State& backup) { state = backup; }

  void advance(uint8_t buttons) {
    machine.buttons[0] = buttons;
    machine.buttons[1] = 0;
    run_frame(machine, cart, native);
  }
  uint8_t* ram() { return machine.ram; }
};

/// A step ends where nes-py's does. Always interpreted.
struct NesPyConsole {
  using State = nespy::Machine;
  static constexpr Timing kTiming = Timing::kNesPy;

  State& machine;
  const Cartridge& cart;
  const NativeCode* native;

  static State power_on(const Cartridge& cartridge) { return nespy::power_on(cartridge); }
  static void restore(State& state, const State& backup) { nespy::restore(state, backup); }

  void advance(uint8_t buttons) { nespy::step(machine, cart, buttons); }
  uint8_t* ram() { return machine.ram; }
};

static_assert(Console<VblankConsole> && Console<NesPyConsole>);

}  // namespace wz
