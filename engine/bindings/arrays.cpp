#include "bindings/arrays.hpp"

#include <nanobind/ndarray.h>

#include <cstring>
#include <utility>

namespace wz::bindings {
namespace {

struct Kind {
  const char* name;
  const char* formats;  ///< single-character format codes of the buffer protocol
  Py_ssize_t size;
};

const Kind& kind_of(Dtype dtype) {
  static constexpr Kind kKinds[] = {{"uint8", "B", 1},
                                    {"bool", "?", 1},
                                    {"int32", "il", 4},
                                    {"int64", "lq", 8},
                                    {"float32", "f", 4}};
  return kKinds[static_cast<int>(dtype)];
}

std::string describe(const Shape& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += i ? ", " : "";
    text += shape[i] < 0 ? "any" : std::to_string(shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

[[noreturn]] void refuse(const char* name, Dtype dtype, const Shape& shape, Access access,
                         const std::string& found) {
  const std::string message = std::string(name) + " must be a " +
                              (access == Access::kWrite ? "writable " : "") +
                              "C-contiguous array of " + kind_of(dtype).name + " with shape " +
                              describe(shape) + "; it " + found;
  throw nb::value_error(message.c_str());
}

/// Why there is no suitable buffer, found out by asking for less.
std::string what_is_wrong(nb::handle array) {
  Py_buffer view;
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_STRIDES) != 0) {
    PyErr_Clear();
    return std::string("is a ") + nb::inst_name(array).c_str();
  }
  const bool contiguous = PyBuffer_IsContiguous(&view, 'C');
  PyBuffer_Release(&view);
  return contiguous ? "is read-only" : "is not contiguous";
}

}  // namespace

Buffer::Buffer(nb::handle array, const char* name, Dtype dtype, const Shape& shape, Access access) {
  const int flags =
      PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (access == Access::kWrite ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(array.ptr(), &view_, flags) != 0) {
    PyErr_Clear();
    refuse(name, dtype, shape, access, what_is_wrong(array));
  }
  held_ = true;
  const Kind& kind = kind_of(dtype);
  const char* format = view_.format ? view_.format : "B";
  const Shape found(view_.shape, view_.shape + view_.ndim);
  const bool right_type = format[0] != '\0' && format[1] == '\0' &&
                          std::strchr(kind.formats, format[0]) && view_.itemsize == kind.size;
  bool right_shape = found.size() == shape.size();
  for (size_t i = 0; right_shape && i < shape.size(); ++i) {
    right_shape = shape[i] < 0 || shape[i] == found[i];
  }
  if (right_type && right_shape) return;
  const std::string problem = right_type ? "has shape " + describe(found)
                                         : std::string("has elements of format '") + format + "'";
  PyBuffer_Release(&view_);
  held_ = false;
  refuse(name, dtype, shape, access, problem);
}

Buffer::~Buffer() {
  if (held_) PyBuffer_Release(&view_);
}

// A Py_buffer of an array may point into itself only for scalars, which shapes here never are.
Buffer::Buffer(Buffer&& other) noexcept
    : view_(other.view_), held_(std::exchange(other.held_, false)) {}

nb::object new_array(const Shape& shape, Dtype dtype, void** bytes_out) {
  size_t sizes[4];
  size_t bytes = static_cast<size_t>(kind_of(dtype).size);
  for (size_t i = 0; i < shape.size(); ++i) {
    sizes[i] = static_cast<size_t>(shape[i]);
    bytes *= sizes[i];
  }
  auto* memory = new uint8_t[bytes ? bytes : 1];
  nb::capsule owner(memory, [](void* p) noexcept { delete[] static_cast<uint8_t*>(p); });
  *bytes_out = memory;
  const nb::dlpack::dtype type =
      dtype == Dtype::kInt32 ? nb::dtype<int32_t>() : nb::dtype<uint8_t>();
  return nb::cast(nb::ndarray<nb::numpy>(memory, shape.size(), sizes, owner, nullptr, type));
}

}  // namespace wz::bindings
