#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace wz {

/// Writes numbers in little-endian order, whatever the machine's own.
class Writer {
 public:
  template <class T>
  void number(T value) {
    auto bits = static_cast<uint64_t>(value);
    for (size_t i = 0; i < sizeof(T); ++i, bits >>= 8) {
      bytes_.push_back(static_cast<uint8_t>(bits));
    }
  }
  void block(const uint8_t* data, size_t size) { bytes_.insert(bytes_.end(), data, data + size); }
  std::vector<uint8_t>& bytes() { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

/// Reads what a Writer wrote. Reading past the end is an error, never an over-read.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  template <class T>
  void number(T& value) {
    value = static_cast<T>(take<sizeof(T)>());
  }
  /// One byte that must be below `limit`.
  template <class T>
  void below(T& value, unsigned limit) {
    const uint64_t raw = take<1>();
    if (raw >= limit) throw std::invalid_argument("a saved lane holds an impossible value");
    value = static_cast<T>(raw);
  }
  void block(uint8_t* data, size_t size) {
    const std::span<const uint8_t> part = take_span(size);
    std::memcpy(data, part.data(), size);
  }
  std::span<const uint8_t> take_span(size_t size) {
    if (size > bytes_.size()) throw std::invalid_argument("a saved lane ends too early");
    const std::span<const uint8_t> part = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return part;
  }
  size_t left() const { return bytes_.size(); }

 private:
  template <size_t N>
  uint64_t take() {
    const std::span<const uint8_t> part = take_span(N);
    uint64_t bits = 0;
    for (size_t i = 0; i < N; ++i) bits |= static_cast<uint64_t>(part[i]) << (8 * i);
    return bits;
  }
  std::span<const uint8_t> bytes_;
};

/// The same description of a structure serves both directions: `Saving` takes the fields' values,
/// `Loading` sets them.
class Saving {
 public:
  explicit Saving(Writer& writer) : writer_(writer) {}
  template <class... T>
  void numbers(const T&... values) {
    (writer_.number(values), ...);
  }
  template <class T>
  void choice(const T& value, unsigned) {
    writer_.number(static_cast<uint8_t>(value));
  }
  void block(const uint8_t* data, size_t size) { writer_.block(data, size); }

 private:
  Writer& writer_;
};

class Loading {
 public:
  explicit Loading(Reader& reader) : reader_(reader) {}
  template <class... T>
  void numbers(T&... values) {
    (reader_.number(values), ...);
  }
  template <class T>
  void choice(T& value, unsigned limit) {
    reader_.below(value, limit);
  }
  void block(uint8_t* data, size_t size) { reader_.block(data, size); }

 private:
  Reader& reader_;
};

}  // namespace wz
