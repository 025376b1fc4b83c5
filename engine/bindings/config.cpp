#include "vec/config.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.hpp"
#include "bindings/fields.hpp"

namespace wz::bindings {
namespace {

void bind_choices(nb::module_& m) {
  nb::enum_<ObserveKind>(m, "ObserveKind")
      .value("GRAY", ObserveKind::kGray)
      .value("RGB", ObserveKind::kRgb)
      .value("PLANAR", ObserveKind::kPlanar)
      .value("TILES", ObserveKind::kTiles)
      .value("RAM", ObserveKind::kRam);
  nb::enum_<Resize>(m, "Resize").value("AREA", Resize::kArea).value("NEAREST", Resize::kNearest);
  nb::enum_<RewardKind>(m, "RewardKind")
      .value("GYM", RewardKind::kGym)
      .value("PROGRESS", RewardKind::kProgress)
      .value("SHAPED", RewardKind::kShaped);
  nb::enum_<Timing>(m, "Timing").value("VBLANK", Timing::kVblank).value("NES_PY", Timing::kNesPy);
  nb::enum_<StartPower>(m, "StartPower")
      .value("SMALL", StartPower::kSmall)
      .value("BIG", StartPower::kBig)
      .value("FIRE", StartPower::kFire)
      .value("ANY", StartPower::kAny);
  nb::enum_<Autoreset>(m, "Autoreset")
      .value("NEXT_STEP", Autoreset::kNextStep)
      .value("SAME_STEP", Autoreset::kSameStep)
      .value("DISABLED", Autoreset::kDisabled);
}

nb::tuple shape_of(const ObserveSpec& spec) {
  nb::list shape;
  for (const int length : spec.shape()) shape.append(length);
  return nb::tuple(shape);
}

}  // namespace

void bind_config(nb::module_& m) {
  bind_choices(m);
  bind_fields(
      m, "ObserveSpec",
      std::tuple{Field{"kind", &ObserveSpec::kind}, Field{"height", &ObserveSpec::height},
                 Field{"width", &ObserveSpec::width}, Field{"crop_top", &ObserveSpec::crop_top},
                 Field{"crop_bottom", &ObserveSpec::crop_bottom},
                 Field{"crop_left", &ObserveSpec::crop_left},
                 Field{"crop_right", &ObserveSpec::crop_right},
                 Field{"mask_top", &ObserveSpec::mask_top}, Field{"resize", &ObserveSpec::resize}})
      .def_prop_ro("shape", &shape_of);
  bind_fields(m, "RewardWeights", kRewardTerms);
  bind_fields(m, "Rules",
              std::tuple{Field{"reward", &Rules::reward}, Field{"weights", &Rules::weights},
                         Field{"end_on_life", &Rules::end_on_life},
                         Field{"end_on_setback", &Rules::end_on_setback},
                         Field{"skip_scenes", &Rules::skip_scenes}});
  bind_fields(
      m, "LaneConfig",
      std::tuple{
          Field{"buttons", &LaneConfig::buttons}, Field{"frame_skip", &LaneConfig::frame_skip},
          Field{"frame_stack", &LaneConfig::frame_stack}, Field{"observe", &LaneConfig::observe},
          Field{"max_last_two", &LaneConfig::max_last_two}, Field{"rules", &LaneConfig::rules},
          Field{"time_limit", &LaneConfig::time_limit},
          Field{"stagnation_limit", &LaneConfig::stagnation_limit},
          Field{"delay_low", &LaneConfig::delay_low}, Field{"delay_high", &LaneConfig::delay_high},
          Field{"start_power", &LaneConfig::start_power},
          Field{"start_halfway", &LaneConfig::start_halfway}, Field{"script", &LaneConfig::script},
          Field{"sticky", &LaneConfig::sticky}, Field{"timing", &LaneConfig::timing},
          Field{"autoreset", &LaneConfig::autoreset}});
}

}  // namespace wz::bindings
