#pragma once

#include <array>
#include <concepts>
#include <cstdint>

#include "game/ram_map.hpp"
#include "nes/console.hpp"
#include "nespy/nespy.hpp"

/// The kinds of machine the game runs on, behind one small shape: a state that can be copied,
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

/// A machine of another emulator.
class ForeignMachine {
 public:
  virtual ~ForeignMachine() = default;
  virtual void advance(uint8_t buttons) = 0;
  virtual void read_ram(uint8_t* out) = 0;
  virtual void poke(uint16_t address, uint8_t value) = 0;
};

/// Such a machine behind the same shape. What is written to its RAM reaches it with the next frame,
/// or with `flush`.
class ForeignConsole {
 public:
  using State = std::array<uint8_t, ram::kSize>;
  static constexpr Timing kTiming = Timing::kVblank;

  explicit ForeignConsole(ForeignMachine& machine) : machine_(machine) { read(); }

  void advance(uint8_t buttons) {
    flush();
    machine_.advance(buttons);
    read();
  }
  uint8_t* ram() { return ram_.data(); }
  void flush() {
    for (size_t i = 0; i < ram_.size(); ++i) {
      if (ram_[i] != known_[i]) machine_.poke(static_cast<uint16_t>(i), ram_[i]);
    }
    known_ = ram_;
  }

 private:
  void read() {
    machine_.read_ram(ram_.data());
    known_ = ram_;
  }

  ForeignMachine& machine_;
  State ram_{};    ///< with what has been written since
  State known_{};  ///< as the machine has it
};

static_assert(Console<VblankConsole> && Console<NesPyConsole> && Console<ForeignConsole>);

}  // namespace wz
