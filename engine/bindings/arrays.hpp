#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

/// Arrays that the caller gives, checked down to the last byte before the engine sees them.
namespace wz::bindings {

namespace nb = nanobind;

enum class Dtype { kUint8, kBool, kInt32, kInt64, kFloat32 };
enum class Access { kRead, kWrite };

template <class T>
struct DtypeOf;
template <>
struct DtypeOf<uint8_t> {
  static constexpr Dtype value = Dtype::kUint8;
};
template <>
struct DtypeOf<bool> {
  static constexpr Dtype value = Dtype::kBool;
};
template <>
struct DtypeOf<int32_t> {
  static constexpr Dtype value = Dtype::kInt32;
};
template <>
struct DtypeOf<int64_t> {
  static constexpr Dtype value = Dtype::kInt64;
};
template <>
struct DtypeOf<float> {
  static constexpr Dtype value = Dtype::kFloat32;
};

using Shape = std::vector<Py_ssize_t>;

/// A view into a Python array that keeps it in place. Made and destroyed with the GIL held.
class Buffer {
 public:
  Buffer() = default;
  /// Throws ValueError (as nb::value_error) unless `array` is C-contiguous with this dtype and
  /// shape; -1 in the shape stands for any length.
  Buffer(nb::handle array, const char* name, Dtype dtype, const Shape& shape, Access access);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer& operator=(Buffer&&) = delete;

  void* data() const { return held_ ? view_.buf : nullptr; }
  Py_ssize_t length(int axis) const { return held_ ? view_.shape[axis] : 0; }

 private:
  Py_buffer view_{};
  bool held_ = false;
};

template <class T>
class Array {
 public:
  Array(nb::handle array, const char* name, const Shape& shape, Access access)
      : buffer_(array, name, DtypeOf<T>::value, shape, access) {}
  /// For an optional argument: `None` gives an array without data.
  static Array optional(nb::handle array, const char* name, const Shape& shape, Access access) {
    return array.is_none() ? Array() : Array(array, name, shape, access);
  }
  T* data() const { return static_cast<T*>(buffer_.data()); }
  Py_ssize_t length(int axis = 0) const { return buffer_.length(axis); }

 private:
  Array() = default;
  Buffer buffer_;
};

/// A new NumPy array. `bytes_out` receives where its content belongs.
nb::object new_array(const Shape& shape, Dtype dtype, void** bytes_out);

}  // namespace wz::bindings
