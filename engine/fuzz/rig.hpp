#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "vec/config.hpp"

/// What the fuzzers of lanes share: the ROM and a configuration that is quick to step.
namespace wz::fuzz {

inline CartridgePtr cartridge() {
  const char* path = std::getenv("WARPZONE_ROM");
  std::ifstream file(path ? path : "", std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  if (bytes.empty()) {
    std::fputs("set WARPZONE_ROM to the file of a ROM\n", stderr);
    std::exit(1);
  }
  return parse_ines({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

inline LaneConfig config() {
  LaneConfig config;
  config.buttons = {0, 128, 129, 64};
  config.frame_skip = 1;
  config.frame_stack = 2;
  config.observe.height = 12;
  config.observe.width = 16;
  config.time_limit = 40;
  config.autoreset = Autoreset::kSameStep;
  return config;
}

}  // namespace wz::fuzz
