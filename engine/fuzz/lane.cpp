// Saved lanes: arbitrary bytes, arbitrary payloads behind a right checksum, and edits of a real
// state. What is accepted must survive being played.
#include <stdexcept>

#include "fuzz/rig.hpp"
#include "vec/lane_set.hpp"
#include "vec/savestate.hpp"

using namespace wz;

namespace {

struct Rig {
  LaneConfig config = fuzz::config();
  CartridgePtr cart = fuzz::cartridge();
  std::unique_ptr<LaneSet> lanes =
      LaneSet::make(config, cart, NativeCode{}, Simd::kPortable, {{0, 5}}, 1);
  std::vector<uint8_t> saved;
  std::vector<uint8_t> obs, final_obs;
  int32_t info[kInfoColumns], final_info[kInfoColumns];

  Rig() : obs(lanes->stack_bytes()), final_obs(lanes->stack_bytes()) {
    lanes->reset(0, 0);
    for (int i = 0; i < 10; ++i) step(1);
    saved = lanes->save(0);
  }
  void step(int action) {
    float reward;
    bool terminated, truncated;
    StepRows rows;
    rows.obs = obs.data();
    rows.reward = &reward;
    rows.terminated = &terminated;
    rows.truncated = &truncated;
    rows.info = info;
    rows.final_obs = final_obs.data();
    rows.final_info = final_info;
    lanes->step(0, 0, action, rows);
  }
  void try_load(std::span<const uint8_t> bytes) {
    try {
      lanes->load(0, bytes);
      lanes->add_restart(1, bytes, nullptr, 1);
    } catch (const std::invalid_argument&) {
      return;
    }
    if (++accepted_ % 64 != 0) return;  // playing costs far more than loading
    try {
      for (int i = 0; i < 2; ++i) step(i);
      lanes->set_restart_share(1);
      lanes->reset(0, 0);
      step(1);
    } catch (const std::runtime_error&) {
      // A state that passes every check can still be a game that crashes.
    }
    lanes->set_restart_share(0);
    lanes->load(0, saved);
  }

 private:
  unsigned accepted_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Rig rig;
  if (size == 0) return 0;
  const std::span<const uint8_t> rest(data + 1, size - 1);
  const uint64_t fingerprint = wz::fingerprint(rig.config, *rig.cart);
  switch (data[0] % 4) {
    case 0:
      rig.try_load(rest);
      break;
    case 1:
      rig.try_load(seal_state(fingerprint, rest));
      break;
    case 2: {
      std::vector<uint8_t> bytes = rig.saved;
      bytes.resize(std::min(bytes.size(), rest.size() * 97 % (bytes.size() + 1)));
      rig.try_load(bytes);
      break;
    }
    default: {
      std::vector<uint8_t> payload(rig.saved.begin() + kSealBytes, rig.saved.end());
      for (size_t i = 0; i + 2 < rest.size(); i += 3) {
        payload[static_cast<size_t>(rest[i] << 8 | rest[i + 1]) % payload.size()] ^= rest[i + 2];
      }
      rig.try_load(seal_state(fingerprint, payload));
    }
  }
  return 0;
}
