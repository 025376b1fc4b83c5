#include "vec/savestate.hpp"

#include <cstring>
#include <stdexcept>

#include "vec/hash.hpp"
#include "vec/machine_codec.hpp"

namespace wz {
namespace {

constexpr uint8_t kMagic[8] = {'W', 'Z', 'S', 'A', 'V', 'E', '\r', '\n'};
constexpr uint32_t kVersion = 2;

uint64_t checksum(std::span<const uint8_t> payload) {
  Hash hash;
  hash.bytes(payload.data(), payload.size());
  return hash.value();
}

/// The payload, once everything around it is right.
std::span<const uint8_t> open(std::span<const uint8_t> bytes, uint64_t expected) {
  Reader reader(bytes);
  if (bytes.size() < sizeof kMagic ||
      std::memcmp(reader.take_span(sizeof kMagic).data(), kMagic, sizeof kMagic) != 0) {
    throw std::invalid_argument("these bytes are not a saved lane");
  }
  uint32_t version;
  uint64_t fingerprint, size, sum;
  reader.number(version);
  if (version != kVersion) {
    throw std::invalid_argument("the saved lane has format version " + std::to_string(version) +
                                ", and this engine reads version " + std::to_string(kVersion));
  }
  reader.number(fingerprint);
  reader.number(size);
  reader.number(sum);
  if (fingerprint != expected) {
    throw std::invalid_argument("the saved lane belongs to another ROM or other options");
  }
  if (size != reader.left()) {
    throw std::invalid_argument("the saved lane should have " + std::to_string(size) +
                                " bytes after its header, and has " +
                                std::to_string(reader.left()));
  }
  const std::span<const uint8_t> payload = reader.take_span(reader.left());
  if (checksum(payload) != sum) throw std::invalid_argument("the saved lane is damaged");
  return payload;
}

template <class Codec, class E>
void describe_episode(Codec& codec, E& e) {
  codec.numbers(e.x_last, e.time_last, e.steps, e.stagnant, e.start_delay, e.start_stage);
  codec.numbers(e.score_last, e.pixels, e.restart);
  for (auto& area : e.ground.area) codec.numbers(area);
  for (auto& furthest : e.ground.furthest) codec.numbers(furthest);
  codec.numbers(e.ground.count, e.ground.current, e.ground.world, e.ground.stage);
  codec.choice(e.was_dying, 2);
  codec.choice(e.had_flag, 2);
}

template <class Codec, class L>
void describe_lane(Codec& codec, L& lane) {
  describe_episode(codec, lane.episode);
  codec.numbers(lane.rng.state);
  codec.choice(lane.status, 3);
  codec.numbers(lane.held);
  for (auto& value : lane.info) codec.numbers(value);
}

}  // namespace

std::vector<uint8_t> seal_state(uint64_t fingerprint, std::span<const uint8_t> payload) {
  Writer writer;
  writer.block(kMagic, sizeof kMagic);
  writer.number(kVersion);
  writer.number(fingerprint);
  writer.number(static_cast<uint64_t>(payload.size()));
  writer.number(checksum(payload));
  writer.block(payload.data(), payload.size());
  return std::move(writer.bytes());
}

template <Console C>
std::vector<uint8_t> save_lane(const Lane<C>& lane, const LaneContext<C>& context) {
  if (lane.status != LaneStatus::kRunning && lane.status != LaneStatus::kEnded) {
    throw std::runtime_error("the lane must be reset before it can be saved");
  }
  Writer writer;
  Saving codec(writer);
  save_machine(writer, lane.state);
  describe_lane(codec, lane);
  writer.number(static_cast<uint16_t>(lane.stages.size()));
  writer.block(lane.stages.data(), lane.stages.size());
  const size_t forced = lane.script ? lane.script->size() - lane.script_at : 0;
  writer.number(static_cast<uint32_t>(forced));
  if (forced) writer.block(lane.script->data() + lane.script_at, forced);
  std::vector<uint8_t> history(context.stack_bytes());
  lane.write_stack(context, history.data());
  writer.block(history.data(), history.size());
  return seal_state(context.fingerprint, writer.bytes());
}

template <Console C>
void load_lane(Lane<C>& lane, const LaneContext<C>& context, std::span<const uint8_t> bytes) {
  Reader reader(open(bytes, context.fingerprint));
  Loading codec(reader);
  Lane<C> loaded;
  load_machine(reader, loaded.state);
  describe_lane(codec, loaded);
  if (loaded.status == LaneStatus::kNew || !is_valid(loaded.episode)) {
    throw std::invalid_argument("a saved lane holds an impossible value");
  }
  uint16_t count;
  reader.number(count);
  const std::span<const uint8_t> stages = reader.take_span(count);
  loaded.stages.assign(stages.begin(), stages.end());
  check_stages(loaded.stages);
  uint32_t forced;
  reader.number(forced);
  const std::span<const uint8_t> masks = reader.take_span(forced);
  loaded.force(make_script({masks.begin(), masks.end()}));
  const std::span<const uint8_t> history = reader.take_span(context.stack_bytes());
  if (reader.left() != 0) throw std::invalid_argument("a saved lane goes on after its end");

  std::memcpy(lane.history, history.data(), history.size());
  loaded.history = lane.history;
  loaded.newest = static_cast<uint8_t>(context.config.frame_stack - 1);
  loaded.played = true;
  loaded.shaping = lane.shaping;
  lane = std::move(loaded);
}

template <Console C>
std::vector<uint8_t> save_console(const typename C::State& state, uint64_t fingerprint) {
  Writer writer;
  save_machine(writer, state);
  return seal_state(fingerprint, writer.bytes());
}

template <Console C>
typename C::State load_console(std::span<const uint8_t> bytes, uint64_t fingerprint) {
  Reader reader(open(bytes, fingerprint));
  typename C::State state;
  load_machine(reader, state);
  if (reader.left() != 0) throw std::invalid_argument("a saved machine goes on after its end");
  return state;
}

template std::vector<uint8_t> save_lane(const Lane<VblankConsole>&,
                                        const LaneContext<VblankConsole>&);
template std::vector<uint8_t> save_lane(const Lane<NesPyConsole>&,
                                        const LaneContext<NesPyConsole>&);
template void load_lane(Lane<VblankConsole>&, const LaneContext<VblankConsole>&,
                        std::span<const uint8_t>);
template void load_lane(Lane<NesPyConsole>&, const LaneContext<NesPyConsole>&,
                        std::span<const uint8_t>);
template std::vector<uint8_t> save_console<VblankConsole>(const Machine&, uint64_t);
template std::vector<uint8_t> save_console<NesPyConsole>(const nespy::Machine&, uint64_t);
template Machine load_console<VblankConsole>(std::span<const uint8_t>, uint64_t);
template nespy::Machine load_console<NesPyConsole>(std::span<const uint8_t>, uint64_t);

}  // namespace wz
