// A vector of lanes under arbitrary calls: actions, lanes, masks and saved bytes that make no
// sense must be refused, and whatever order the calls come in, nothing may break or hang.
#include <limits>
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
  // A step that is under way writes to the arrays.
  ~Rig() { vector.close(); }
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
    switch (input.byte() % 18) {
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
      case 9: {
        for (int64_t& action : begun_) action = input.byte() % (++steps_ % 32 == 0 ? 7 : 32);
        vector.start(begun_, arrays());
        if (input.byte() & 3) vector.finish();
        break;
      }
      case 10:
        vector.finish();
        break;
      case 11:
        vector.set_script({input.byte(), input.byte()});
        break;
      case 12: {
        const int64_t lane = input.number();
        vector.force({&lane, 1}, {input.byte()});
        break;
      }
      case 13: {
        std::vector<uint8_t> bytes = saved;
        if (!bytes.empty() && input.byte() & 1) bytes[input.byte() % bytes.size()] ^= input.byte();
        vector.add_restart(input.byte() % 8, bytes, {input.byte()}, weight(input));
        break;
      }
      case 14:
        vector.weigh_restart(input.byte() % 8, weight(input));
        break;
      case 15:
        vector.remove_restart(input.byte() % 8);
        break;
      case 16: {
        std::vector<double> weights(input.byte() & 1 ? 32 : input.byte() % 34);
        for (double& w : weights) w = weight(input);
        vector.set_stage_weights(weights);
        vector.set_restart_share(weight(input));
        break;
      }
      default:
        vector.copy_info(input.number(), info);
        break;
    }
  }

 private:
  /// Mostly sensible; sometimes negative, huge or no number at all.
  static double weight(Input& input) {
    constexpr double kOdd[] = {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN(), 0.0};
    const uint8_t byte = input.byte();
    return byte < 4 ? kOdd[byte] : byte / 256.0;
  }

  unsigned steps_ = 0;
  int64_t begun_[kLanes];
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
