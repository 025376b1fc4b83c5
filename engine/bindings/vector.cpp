#include <nanobind/nanobind.h>
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
      .def(nb::init<const nb::bytes&, const LaneConfig&, const std::vector<Integers>&,
                    std::shared_ptr<native::Program>, const std::variant<int, const Threads*>&,
                    const std::string&>(),
           arg("rom"), arg("lanes"), nb::kw_only(), arg("stages"), arg("native") = nb::none(),
           arg("num_threads") = 1, arg("simd") = "auto")
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
      .def("set_restart_shares", &PyVector::set_restart_shares, arg("shares"))
      .def("num_restarts", &PyVector::num_restarts)
      .def("take_shaping", &PyVector::take_shaping)
      .def("memory_bytes", &PyVector::memory_bytes)
      .def("close", &PyVector::close);
}

}  // namespace wz::bindings
