#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <mutex>
#include <variant>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/gil.hpp"
#include "game/start.hpp"
#include "native/program.hpp"
#include "vec/hash.hpp"
#include "vec/savestate.hpp"

namespace wz::bindings {
namespace {

uint8_t checked_byte(int value, const char* name) {
  if (value < 0 || value > 255) {
    throw std::invalid_argument(std::string(name) + " must be in 0..255, and is " +
                                std::to_string(value));
  }
  return static_cast<uint8_t>(value);
}

/// nes-py keeps the flags in reverse order.
uint8_t reversed(uint8_t byte) {
  uint8_t result = 0;
  for (int bit = 0; bit < 8; ++bit) {
    if (byte >> bit & 1) result = static_cast<uint8_t>(result | 0x80 >> bit);
  }
  return result;
}

class PyConsole {
 public:
  PyConsole(const nb::bytes& rom, const std::string& timing,
            std::shared_ptr<native::Program> native)
      : cart_(parse_rom(rom)), native_(std::move(native)) {
    if (native_) native_->require(*cart_);
    if (parse_timing(timing) == Timing::kVblank) {
      machine_ = power_on(*cart_);
    } else {
      machine_ = nespy::power_on(*cart_);
    }
    Hash hash;
    hash.bytes(cart_->prg.data(), cart_->prg.size());
    hash.bytes(cart_->chr.data(), cart_->chr.size());
    hash.number(machine_.index());
    fingerprint_ = hash.value();
  }

  void frame(int buttons, int buttons2) {
    advance(checked_byte(buttons, "buttons"), checked_byte(buttons2, "buttons2"));
  }

  void frames(const nb::bytes& buttons) {
    const auto* masks = static_cast<const uint8_t*>(buttons.data());
    const size_t count = buttons.size();
    const ReleasedGil release;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i < count; ++i) advance_locked(masks[i], 0);
  }

  void reset() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::visit([&](auto& m) { wz_reset(m); }, machine_);
  }

  void start_stage(int stage) {
    const ReleasedGil release;
    const std::lock_guard<std::mutex> lock(mutex_);
    const NativeCode* native = native_ ? &native_->code() : nullptr;
    if (auto* m = std::get_if<Machine>(&machine_)) {
      VblankConsole console{*m, *cart_, native};
      reach_start(console, stage, StageTable(*cart_));
    } else {
      NesPyConsole console{std::get<nespy::Machine>(machine_), *cart_, nullptr};
      reach_start(console, stage, StageTable(*cart_));
    }
  }

  nb::object ram() {
    void* out;
    nb::object result = new_array({2048}, Dtype::kUint8, &out);
    const std::lock_guard<std::mutex> lock(mutex_);
    std::visit([&](auto& m) { std::memcpy(out, m.ram, sizeof m.ram); }, machine_);
    return result;
  }

  void poke(int address, int value) {
    if (address < 0 || address > 0x7FF) {
      throw std::out_of_range("address must be in 0..2047, and is " + std::to_string(address));
    }
    const uint8_t byte = checked_byte(value, "value");
    const std::lock_guard<std::mutex> lock(mutex_);
    std::visit([&](auto& m) { m.ram[address] = byte; }, machine_);
  }

  nb::object screen() {
    void* out;
    nb::object result = new_array({kHeight, kWidth, 3}, Dtype::kUint8, &out);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto* m = std::get_if<Machine>(&machine_)) {
      const auto picture = std::make_unique<Picture>();
      screen_of(*m, *cart_, *picture, static_cast<uint8_t*>(out));
    } else {
      screen_of(std::get<nespy::Machine>(machine_), static_cast<uint8_t*>(out));
    }
    return result;
  }

  nb::object screen_indices() {
    void* out;
    nb::object result = new_array({kHeight, kWidth}, Dtype::kUint8, &out);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto* m = std::get_if<Machine>(&machine_)) {
      const auto picture = std::make_unique<Picture>();
      uint8_t colors[32];
      draw(*m, *cart_, *picture);
      palette_colors(*m, colors);
      screen_colors(*picture, colors, static_cast<uint8_t*>(out));
    } else {
      const auto& screen = std::get<nespy::Machine>(machine_).screen;
      std::memcpy(out, screen, sizeof screen);
    }
    return result;
  }

  nb::dict registers() {
    // Before the lock: a new container may run the garbage collector, and with it arbitrary code.
    nb::dict result;
    const std::lock_guard<std::mutex> lock(mutex_);
    std::visit(
        [&](const auto& m) {
          result["pc"] = m.cpu.pc;
          result["a"] = m.cpu.a;
          result["x"] = m.cpu.x;
          result["y"] = m.cpu.y;
          result["s"] = m.cpu.s;
        },
        machine_);
    if (const auto* m = std::get_if<Machine>(&machine_)) {
      result["p"] = m->cpu.p;
      result["now"] = m->now;
      result["frame"] = m->frame;
    } else {
      const auto& other = std::get<nespy::Machine>(machine_);
      result["p"] = reversed(other.cpu.p);
      result["now"] = (other.ppu.line + 1) * timing::kDotsPerLine + other.ppu.dot;
    }
    return result;
  }

  nb::bytes save() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::vector<uint8_t> bytes =
        std::holds_alternative<Machine>(machine_)
            ? save_console<VblankConsole>(std::get<Machine>(machine_), fingerprint_)
            : save_console<NesPyConsole>(std::get<nespy::Machine>(machine_), fingerprint_);
    return nb::bytes(bytes.data(), bytes.size());
  }

  void load(const nb::bytes& state) {
    const std::span<const uint8_t> bytes(static_cast<const uint8_t*>(state.data()), state.size());
    const std::lock_guard<std::mutex> lock(mutex_);
    if (std::holds_alternative<Machine>(machine_)) {
      machine_ = load_console<VblankConsole>(bytes, fingerprint_);
    } else {
      machine_ = load_console<NesPyConsole>(bytes, fingerprint_);
    }
  }

 private:
  void advance(uint8_t buttons, uint8_t buttons2) {
    const ReleasedGil release;
    const std::lock_guard<std::mutex> lock(mutex_);
    advance_locked(buttons, buttons2);
  }

  void advance_locked(uint8_t buttons, uint8_t buttons2) {
    if (auto* m = std::get_if<Machine>(&machine_)) {
      m->buttons[0] = buttons;
      m->buttons[1] = buttons2;
      run_frame(*m, *cart_, native_ ? &native_->code() : nullptr);
    } else {
      nespy::step(std::get<nespy::Machine>(machine_), *cart_, buttons, buttons2);
    }
  }

  void wz_reset(Machine& m) { wz::reset(m, *cart_); }
  void wz_reset(nespy::Machine& m) { nespy::reset(m, *cart_); }

  std::mutex mutex_;
  CartridgePtr cart_;
  std::shared_ptr<const native::Program> native_;
  std::variant<Machine, nespy::Machine> machine_;
  uint64_t fingerprint_ = 0;
};

}  // namespace

void bind_console(nb::module_& m) {
  nb::class_<PyConsole>(m, "Console")
      .def(nb::init<const nb::bytes&, const std::string&, std::shared_ptr<native::Program>>(),
           nb::arg("rom"), nb::kw_only(), nb::arg("timing") = "vblank",
           nb::arg("native") = nb::none())
      .def("frame", &PyConsole::frame, nb::arg("buttons"), nb::arg("buttons2") = 0)
      .def("frames", &PyConsole::frames, nb::arg("buttons"))
      .def("reset", &PyConsole::reset)
      .def("start_stage", &PyConsole::start_stage, nb::arg("stage"))
      .def("ram", &PyConsole::ram)
      .def("poke", &PyConsole::poke, nb::arg("address"), nb::arg("value"))
      .def("screen", &PyConsole::screen)
      .def("screen_indices", &PyConsole::screen_indices)
      .def("registers", &PyConsole::registers)
      .def("save", &PyConsole::save)
      .def("load", &PyConsole::load, nb::arg("state"));
}

}  // namespace wz::bindings
