#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "vec/observe_tables.hpp"

namespace wz::observing {
namespace {

/// Looks two pixels up at a time: half the loads and stores of one by one.
class PairLut {
 public:
  explicit PairLut(const uint8_t* lut) {
    for (unsigned a = 0; a < 32; ++a) {
      for (unsigned b = 0; b < 32; ++b) {
        const uint8_t key[2] = {static_cast<uint8_t>(a), static_cast<uint8_t>(b)};
        const uint8_t value[2] = {lut[a], lut[b]};
        uint16_t at;
        std::memcpy(&at, key, 2);
        std::memcpy(&pairs_[at], value, 2);
      }
    }
  }

  void operator()(const uint8_t* pixels, uint8_t* out) const {
    for (int x = 0; x < kWidth; x += 16) {
      for (int i = x; i < x + 16; i += 2) {
        uint16_t at;
        std::memcpy(&at, pixels + i, 2);
        std::memcpy(out + i, &pairs_[at], 2);
      }
    }
  }

 private:
  uint16_t pairs_[0x2000];
};

/// Gives source rows as bytes; the last two stay, because neighbouring output rows share one.
class Reader {
 public:
  Reader(const AreaPlan& plan, const Source& source) : plan_(plan), source_(source) {
    for (int i = 0; i < 2; ++i) {
      if (source.lut[i]) lut_[i] = std::make_unique<PairLut>(source.lut[i]);
    }
  }

  const uint8_t* row(int y) {
    const uint8_t* first = source_.lines[0].line(plan_.top + y);
    if (!lut_[0]) return first + plan_.left;
    uint8_t* bytes = bytes_[y & 1];
    if (held_[y & 1] != y) {
      held_[y & 1] = y;
      (*lut_[0])(first, bytes);
      if (lut_[1]) {
        uint8_t second[kWidth];
        (*lut_[1])(source_.lines[1].line(plan_.top + y), second);
        for (int x = 0; x < kWidth; ++x) bytes[x] = std::max(bytes[x], second[x]);
      }
    }
    return bytes + plan_.left;
  }

 private:
  const AreaPlan& plan_;
  const Source& source_;
  std::unique_ptr<PairLut> lut_[2];
  uint8_t bytes_[2][kWidth];
  int held_[2] = {-1, -1};
};

/// Sums of columns; weights of rows add up to 240 at most, so sixteen bits are enough.
using Sums = std::array<uint16_t, 2 * kWidth>;

void add_row(const uint8_t* row, uint16_t weight, int width, Sums& sums) {
  for (int x = 0; x < width; ++x) {
    sums[static_cast<size_t>(x)] =
        static_cast<uint16_t>(sums[static_cast<size_t>(x)] + row[x] * weight);
  }
}

template <int kTaps>
uint32_t weigh(const uint16_t* sums, const uint16_t* weights, int taps) {
  uint32_t total = 0;
  for (int tap = 0; tap < (kTaps ? kTaps : taps); ++tap) {
    total += uint32_t{sums[tap]} * weights[tap];
  }
  return total;
}

/// `kTaps` is the number of taps where it is known when compiling, else zero.
template <int kTaps>
void write_row(const AreaPlan& plan, const Sums& sums, uint8_t* out) {
  const Axis& axis = plan.columns;
  const uint32_t total = plan.total(), half = total / 2;
  const Division& division = plan.division;
  const uint16_t* weights = axis.weights.data();
  for (int i = 0; i < axis.output; ++i, weights += axis.taps) {
    const uint16_t* first = sums.data() + axis.first[static_cast<size_t>(i)];
    const uint32_t n = weigh<kTaps>(first, weights, axis.taps) + half;
    const uint32_t quotient = division.exact
                                  ? (n >> division.before) * division.factor >> 16 >> division.after
                                  : n / total;
    out[i] = static_cast<uint8_t>(quotient);
  }
}

}  // namespace

void area_portable(const AreaPlan& plan, const Source& source, const Target& target) {
  Reader reader(plan, source);
  const Axis& axis = plan.rows;
  auto* const write = plan.columns.taps == 4   ? write_row<4>
                      : plan.columns.taps == 3 ? write_row<3>
                                               : write_row<0>;
  Sums sums;
  for (int i = target.begin; i < target.end; ++i) {
    sums.fill(0);
    for (int tap = 0; tap < axis.count[static_cast<size_t>(i)]; ++tap) {
      const int y = axis.first[static_cast<size_t>(i)] + tap;
      if (y < plan.black_rows) continue;
      add_row(reader.row(y), axis.weight(i, tap), plan.columns.source, sums);
    }
    write(plan, sums, target.out + i * plan.columns.output);
  }
}

}  // namespace wz::observing
