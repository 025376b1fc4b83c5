#pragma once

#include <span>
#include <vector>

#include "vec/lane.hpp"

/// Lanes as bytes: magic, version, fingerprint of ROM and configuration, length and checksum,
/// then the lane itself. Bytes that are damaged, cut short, of another ROM or configuration, or
/// made up are refused with std::invalid_argument; the lane they were meant for stays as it was.
namespace wz {

/// Throws std::runtime_error for a lane that was never reset or whose machine failed.
template <Console C>
std::vector<uint8_t> save_lane(const Lane<C>& lane, const LaneContext<C>& context);

template <Console C>
void load_lane(Lane<C>& lane, const LaneContext<C>& context, std::span<const uint8_t> bytes);

/// The same framing for a machine alone; `fingerprint` says what it belongs to.
template <Console C>
std::vector<uint8_t> save_console(const typename C::State& state, uint64_t fingerprint);

template <Console C>
typename C::State load_console(std::span<const uint8_t> bytes, uint64_t fingerprint);

/// Wraps a payload as the functions above expect it. Fuzzers use it to get past the checksum and
/// reach the checks behind it.
std::vector<uint8_t> seal_state(uint64_t fingerprint, std::span<const uint8_t> payload);

/// Bytes of a sealed state before its payload.
inline constexpr size_t kSealBytes = 8 + 4 + 8 + 8 + 8;

}  // namespace wz
