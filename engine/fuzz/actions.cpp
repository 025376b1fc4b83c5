// A vector of lanes under arbitrary calls: actions, lanes, masks and saved bytes that make no
// sense must be refused, and whatever order the calls come in, nothing may break or hang.
#include <stdexcept>

#include "fuzz/rig.hpp"
#include "vec/vector.hpp"

using namespace wz;

namespace {

constexpr int kLanes = 3;

class Input {
 public:
  Input(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}
  bool empty() const { return at_ == end_; }
  uint8_t byte() { return empty() ? 0 : *at_++; }
  /// Mostly small numbers, sometimes anything.
  int64_t number() {
    const uint8_t first = byte();
    if (first < 0xF0) return first % 6 - 1;
    int64_t value = 0;
    for (int i = 0; i < 8; ++i)
      value = static_cast<int64_t>(static_cast<uint64_t>(value) << 8 | byte());
    return value;
  }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

struct Rig {
  Vector vector{fuzz::config(),  fuzz::cartridge(), nullptr,
                Simd::kPortable, {{0}, {1}, {}},    Vector::make_pool(2)};
  std::vector<uint8_t> obs = std::vector<uint8_t>(kLanes * 2 * 12 * 16);
  std::vector<uint8_t> final_obs = obs;
  float reward[kLanes];
  bool terminated[kLanes], truncated[kLanes];
  int32_t info[kLanes * kInfoColumns], final_info[kLanes * kInfoColumns];
  int64_t lanes[kLanes];
  std::vector<uint8_t> saved;

  Rig() {
    vector.reset(nullptr, obs.data(), info);
    saved = vector.save(0);
  }
  StepRows arrays() {
    StepRows a;
    a.obs = obs.data();
    a.reward = reward;
    a.terminated = terminated;
    a.truncated = truncated;
    a.info = info;
    a.final_obs = final_obs.data();
    a.final_info = final_info;
    return a;
  }

  void call(Input& input) {
    switch (input.byte() % 10) {
      case 0: {
        int64_t actions[kLanes];
        for (int64_t& action : actions) action = input.number();
        // Steps that run cost far more than steps that are refused: one in 32 is let through.
        if (++steps_ % 32 != 0) actions[steps_ % kLanes] = -1 - (actions[0] & 7);
        vector.step(actions, arrays());
        break;
      }
      case 1: {
        const size_t count = ++steps_ % 32 == 0 ? input.byte() % (kLanes + 1) : 0;
        std::vector<int64_t> actions(count), ids(count);
        for (int64_t& action : actions) action = input.number();
        for (int64_t& id : ids) id = input.number();
        vector.send(actions, ids);
        break;
      }
      case 2:
        vector.receive(static_cast<int>(input.byte() % (kLanes + 1)), arrays(), lanes);
        break;
      case 3: {
        bool mask[kLanes];
        for (bool& m : mask) m = (input.byte() & 1) && ++steps_ % 32 == 0;
        vector.reset(mask, obs.data(), info);
        break;
      }
      case 4:
        saved = vector.save(input.number());
        break;
      case 5: {
        std::vector<uint8_t> bytes = saved;
        if (!bytes.empty()) bytes[input.byte() % bytes.size()] ^= input.byte();
        vector.load(input.number(), bytes);
        break;
      }
      case 6:
        vector.clone(input.number(), input.number());
        break;
      case 7:
        vector.set_stages(input.number(), {input.byte(), input.byte()});
        break;
      case 8:
        vector.observe(input.number(), obs.data());
        break;
      default:
        vector.copy_info(input.number(), info);
        break;
    }
  }

 private:
  unsigned steps_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Rig rig;
  Input input(data, size);
  for (int calls = 0; calls < 4 && !input.empty(); ++calls) {
    try {
      rig.call(input);
    } catch (const std::invalid_argument&) {
    } catch (const std::out_of_range&) {
    } catch (const std::runtime_error&) {
    }
  }
  return 0;
}
