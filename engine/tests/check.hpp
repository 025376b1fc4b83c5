#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

/// The smallest test harness that can fail. A test file is one program:
///
///   int main() {
///     CHECK(1 + 1 == 2);
///     CHECK_THROWS(std::invalid_argument, parse(""));
///     return check::finish();
///   }
///
/// Parts that need a game read its path from WARPZONE_ROM. Without one they are skipped, except
/// where CI is set: there a test that did not run is a failure.
namespace check {

inline constexpr int kSkipped = 77;

/// Continuous integration sets CI=true, as most services do.
inline bool in_ci() {
  const char* value = std::getenv("CI");
  return value && *value && std::string(value) != "false";
}

struct Counts {
  int passed = 0;
  int failed = 0;
};

inline Counts& counts() {
  static Counts counts;
  return counts;
}

inline bool report(bool ok, const char* file, int line, const char* what) {
  if (ok) {
    ++counts().passed;
  } else {
    ++counts().failed;
    std::printf("%s:%d: %s\n", file, line, what);
  }
  return ok;
}

/// Numbers are compared by value, whatever their types.
template <class A, class B>
bool equal(const A& a, const B& b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) {
    return static_cast<long long>(a) == static_cast<long long>(b);
  } else if constexpr (std::is_arithmetic_v<A> && std::is_arithmetic_v<B>) {
    return static_cast<double>(a) == static_cast<double>(b);
  } else {
    return a == b;
  }
}

/// The program's exit status.
inline int finish() {
  std::printf("%d passed, %d failed\n", counts().passed, counts().failed);
  if (counts().failed) return 1;
  if (counts().passed) return 0;
  return in_ci() ? 1 : kSkipped;
}

/// The file named by WARPZONE_ROM; empty, with a message, when there is none.
inline std::vector<uint8_t> rom() {
  const char* path = std::getenv("WARPZONE_ROM");
  if (!path || !*path) {
    std::printf("WARPZONE_ROM is not set: the parts that need the game are skipped\n");
    if (in_ci()) std::exit(1);
    return {};
  }
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(file)),
                             std::istreambuf_iterator<char>());
  if (bytes.empty()) {
    std::printf("%s cannot be read\n", path);
    std::exit(1);
  }
  return bytes;
}

}  // namespace check

#define CHECK(condition) check::report(static_cast<bool>(condition), __FILE__, __LINE__, #condition)

#define CHECK_EQ(left, right)                                                     \
  do {                                                                            \
    const auto left_value = (left);                                               \
    const auto right_value = (right);                                             \
    if (!check::report(check::equal(left_value, right_value), __FILE__, __LINE__, \
                       #left " == " #right))                                      \
      std::printf("  %lld and %lld\n", static_cast<long long>(left_value),        \
                  static_cast<long long>(right_value));                           \
  } while (false)

#define CHECK_THROWS(type, ...)                                               \
  do {                                                                        \
    bool thrown = false;                                                      \
    try {                                                                     \
      __VA_ARGS__;                                                            \
    } catch (const type&) {                                                   \
      thrown = true;                                                          \
    }                                                                         \
    check::report(thrown, __FILE__, __LINE__, #__VA_ARGS__ " throws " #type); \
  } while (false)
