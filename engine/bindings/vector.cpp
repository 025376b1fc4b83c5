#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.hpp"
#include "bindings/py_vector.hpp"

namespace wz::bindings {

void bind_vector(nb::module_& m) {
  using nb::arg;
  nb::class_<Threads>(m, "Threads")
      .def(nb::init<int>(), arg("num_threads"))
      .def_prop_ro("num_threads", &Threads::num_threads);
  nb::class_<PyVector>(m, "Vector")
      .def(nb::init<const nb::bytes&, std::shared_ptr<native::Library>, int,
                    const std::variant<int, const Threads*>&, const std::vector<Integers>&,
                    const nb::bytes&, int, int, int, int, bool, std::array<int, 4>, int,
                    const std::string&, bool, const std::string&, const std::vector<float>&,
                    const std::string&, int, int, bool, std::array<int, 2>, double,
                    const std::string&, const std::string&, const std::string&, const nb::bytes&,
                    bool, bool>(),
           arg("rom"), nb::kw_only(), arg("native").none(), arg("num_lanes"), arg("num_threads"),
           arg("stages"), arg("buttons"), arg("frame_skip"), arg("frame_stack"), arg("height"),
           arg("width"), arg("gray"), arg("crop"), arg("mask_top"), arg("resize"),
           arg("max_last_two"), arg("reward"), arg("reward_weights"), arg("end"), arg("time_limit"),
           arg("stagnation_limit"), arg("skip_cutscenes"), arg("start_delay"), arg("sticky"),
           arg("timing"), arg("autoreset"), arg("simd"), arg("script") = nb::bytes("", 0),
           arg("tiles") = false, arg("planar") = false)
      .def_prop_ro("obs_shape", &PyVector::obs_shape)
      .def_prop_ro("num_lanes", &PyVector::num_lanes)
      .def_prop_ro("num_threads", &PyVector::num_threads)
      .def("seed", &PyVector::seed, arg("seeds"))
      .def("reset", &PyVector::reset, arg("mask").none(), arg("obs").none(), arg("info").none())
      .def("step", &PyVector::step, arg("actions").none(), arg("obs").none(), arg("reward").none(),
           arg("terminated").none(), arg("truncated").none(), arg("info").none(),
           arg("final_obs").none(), arg("final_info").none())
      .def("start", &PyVector::start, arg("actions").none(), arg("obs").none(),
           arg("reward").none(), arg("terminated").none(), arg("truncated").none(),
           arg("info").none(), arg("final_obs").none(), arg("final_info").none())
      .def("finish", &PyVector::finish)
      .def("send", &PyVector::send, arg("actions").none(), arg("lanes").none())
      .def("recv", &PyVector::recv, arg("obs").none(), arg("reward").none(),
           arg("terminated").none(), arg("truncated").none(), arg("info").none(),
           arg("lanes").none(), arg("final_obs").none(), arg("final_info").none())
      .def("ram", &PyVector::ram, arg("lanes"))
      .def("ram_view", &PyVector::ram_view, arg("lane"))
      .def("screen", &PyVector::screen, arg("lane"))
      .def("save", &PyVector::save, arg("lane"))
      .def("load", &PyVector::load, arg("lane"), arg("state"))
      .def("clone", &PyVector::clone, arg("source"), arg("target"))
      .def("observe", &PyVector::observe, arg("lane"), arg("obs").none())
      .def("info", &PyVector::info, arg("lane"))
      .def("set_stages", &PyVector::set_stages, arg("lane"), arg("stages"))
      .def("set_reward_weights", &PyVector::set_reward_weights, arg("weights"))
      .def("set_stage_weights", &PyVector::set_stage_weights, arg("weights"))
      .def("set_script", &PyVector::set_script, arg("masks"))
      .def("force", &PyVector::force, arg("lanes"), arg("masks"))
      .def("add_restart", &PyVector::add_restart, arg("id"), arg("state"), arg("masks"),
           arg("weight"))
      .def("weigh_restart", &PyVector::weigh_restart, arg("id"), arg("weight"))
      .def("remove_restart", &PyVector::remove_restart, arg("id"))
      .def("set_restart_share", &PyVector::set_restart_share, arg("share"))
      .def("num_restarts", &PyVector::num_restarts)
      .def("take_shaping", &PyVector::take_shaping)
      .def("memory_bytes", &PyVector::memory_bytes)
      .def("close", &PyVector::close);
}

}  // namespace wz::bindings
