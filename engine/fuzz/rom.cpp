// The ROM loader, and a short run of whatever it lets through.
#include <cstring>
#include <stdexcept>
#include <vector>

#include "game/rom_check.hpp"
#include "nes/cpu.hpp"

using namespace wz;

namespace {

void try_rom(std::span<const uint8_t> file) {
  CartridgePtr cart;
  try {
    cart = parse_ines(file);
  } catch (const std::invalid_argument&) {
    return;
  }
  try {
    require_super_mario_bros(*cart);
  } catch (const std::invalid_argument&) {
  }
  Machine m = power_on(*cart);
  try {
    m.dead_frames = 0;
    cpu::run(m, *cart, nullptr, 2000);
  } catch (const IllegalOpcode&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try_rom({data, size});
  // The same bytes as a header and, repeated, as program and graphics: files of the full size are
  // out of a fuzzer's reach otherwise. They cost a thousand times more, so one input in 128 is
  // chosen, by a hash that mutation cannot steer.
  uint64_t hash = size;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ data[i]) * 0x100000001B3u;
  if (size < 16 || (hash >> 32) % 128 != 0) return 0;
  std::vector<uint8_t> file(16 + 0x8000 + 0x2000);
  for (size_t i = 0; i < file.size(); ++i) file[i] = data[i % size];
  try_rom(file);
  static constexpr uint8_t kHeader[8] = {'N', 'E', 'S', 0x1A, 2, 1, 1, 0};
  std::memcpy(file.data(), kHeader, sizeof kHeader);
  try_rom(file);
  return 0;
}
