#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/gil.hpp"
#include "game/episode.hpp"
#include "game/rom_check.hpp"
#include "game/signals.hpp"
#include "native/executable.hpp"
#include "native/loader.hpp"
#include "native/translate.hpp"
#include "vec/observe.hpp"

namespace wz::bindings {

CartridgePtr parse_rom(const nb::bytes& rom) {
  return parse_ines({static_cast<const uint8_t*>(rom.data()), rom.size()});
}

Timing parse_timing(const std::string& name) {
  if (name == "vblank") return Timing::kVblank;
  if (name == "nes-py") return Timing::kNesPy;
  throw std::invalid_argument("timing must be \"vblank\" or \"nes-py\", and is \"" + name + "\"");
}

namespace {

constexpr int kMaxResized = 1024;

void check_rom(const nb::bytes& data) { require_super_mario_bros(*parse_rom(data)); }

std::string translate(const nb::bytes& rom) {
  const CartridgePtr cart = parse_rom(rom);
  const ReleasedGil release;
  return native::translate(*cart);
}

std::shared_ptr<native::Program> emit(const nb::bytes& rom) {
  const CartridgePtr cart = parse_rom(rom);
  const ReleasedGil release;
  return std::make_shared<native::Executable>(*cart);
}

nb::object resize(nb::handle image, int height, int width, const std::string& simd) {
  const Simd level = parse_simd(simd);
  const Array<uint8_t> source(image, "image", {-1, -1}, Access::kRead);
  if (height < 1 || width < 1 || height > kMaxResized || width > kMaxResized) {
    throw std::invalid_argument("the size is " + std::to_string(height) + " x " +
                                std::to_string(width) + "; expected 1 to " +
                                std::to_string(kMaxResized) + " each way");
  }
  void* out;
  nb::object result = new_array({height, width}, Dtype::kUint8, &out);
  resize_area(source.data(), static_cast<int>(source.length()), static_cast<int>(source.length(1)),
              static_cast<uint8_t*>(out), height, width, level);
  return result;
}

nb::tuple names(const auto& items, const auto& name_of) {
  nb::list list;
  for (const auto& item : items) {
    const std::string name(name_of(item));
    list.append(nb::str(name.c_str()));
  }
  return nb::tuple(list);
}

void bind(nb::module_& m) {
  // What a daemon thread holds when the interpreter ends is never let go, and nothing here prints.
  nb::set_leak_warnings(false);
  m.attr("INFO_FIELDS") = names(kInfoNames, [](std::string_view name) { return name; });
  m.attr("HALFWAY_RESTART") = kHalfwayRestart;
  m.attr("SIMD_LEVELS") = names(simd_levels(), simd_name);
  m.def("check_rom", &check_rom, nb::arg("data"));
  m.def("translate", &translate, nb::arg("rom"));
  m.def("emit", &emit, nb::arg("rom"));
  m.def("native_abi", &native::abi);
  m.def("resize_area", &resize, nb::arg("image"), nb::arg("height"), nb::arg("width"),
        nb::arg("simd"));
  nb::class_<native::Program>(m, "NativeProgram")
      .def(nb::new_([](const std::string& path) -> std::shared_ptr<native::Program> {
             return std::make_shared<native::Library>(path);
           }),
           nb::arg("path"))
      .def_prop_ro("how", &native::Program::how);
  bind_config(m);
  bind_game(m);
  bind_console(m);
  bind_vector(m);
}

}  // namespace
}  // namespace wz::bindings

NB_MODULE(_engine, m) { wz::bindings::bind(m); }
