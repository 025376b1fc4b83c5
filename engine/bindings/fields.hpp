#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <tuple>
#include <vector>

#include "game/weights.hpp"

/// Plain structures as Python classes: named arguments with defaults, typed attributes, a repr.
/// Each is described once, by the list of its fields.
namespace wz::bindings {

namespace nb = nanobind;

/// A list of bytes is `bytes` in Python.
inline nb::object to_python(const std::vector<uint8_t>& bytes) {
  return nb::bytes(bytes.data(), bytes.size());
}
template <class T>
nb::object to_python(const T& value) {
  return nb::cast(value);
}

inline void from_python(nb::handle given, std::vector<uint8_t>& out) {
  const auto bytes = nb::cast<nb::bytes>(given);
  const auto* data = static_cast<const uint8_t*>(bytes.data());
  out.assign(data, data + bytes.size());
}
template <class T>
void from_python(nb::handle given, T& out) {
  out = nb::cast<T>(given);
}

/// Sets one field; a value of another type is a TypeError that names it.
template <class S, class T>
void set_field(S& self, const Field<S, T>& field, nb::handle given) {
  try {
    from_python(given, self.*field.member);
  } catch (const nb::cast_error&) {
    const std::string message = std::string(field.name) + " cannot be " + nb::repr(given).c_str();
    throw nb::type_error(message.c_str());
  }
}

template <class S, class... T>
std::string names_of(const std::tuple<Field<S, T>...>& fields) {
  std::string names;
  std::apply(
      [&](const auto&... field) {
        ((names += (names.empty() ? "" : ", ") + std::string(field.name)), ...);
      },
      fields);
  return names;
}

/// Sets the field of this name; an unknown one is a TypeError that lists those there are.
template <class S, class... T>
void set_by_name(S& self, const std::tuple<Field<S, T>...>& fields, const std::string& name,
                 nb::handle given) {
  bool known = false;
  const auto try_one = [&](const auto& field) {
    if (known || name != field.name) return;
    known = true;
    set_field(self, field, given);
  };
  std::apply([&](const auto&... field) { (try_one(field), ...); }, fields);
  if (known) return;
  const std::string message = "there is no " + name + "; the fields are " + names_of(fields);
  throw nb::type_error(message.c_str());
}

/// The structure whose named fields have these values, and the others their defaults.
template <class S, class... T>
S from_dict(const std::tuple<Field<S, T>...>& fields, const nb::dict& given) {
  S value{};
  for (const auto& [key, item] : given) {
    set_by_name(value, fields, nb::cast<std::string>(key), item);
  }
  return value;
}

template <class S, class... T>
nb::dict to_dict(const std::tuple<Field<S, T>...>& fields, const S& self) {
  nb::dict values;
  std::apply(
      [&](const auto&... field) { ((values[field.name] = to_python(self.*field.member)), ...); },
      fields);
  return values;
}

/// Makes a class of `S` out of its fields.
template <class S, class... T>
nb::class_<S> bind_fields(nb::module_& m, const char* name,
                          const std::tuple<Field<S, T>...>& fields) {
  nb::class_<S> bound(m, name);
  bound.def("__init__",
            [fields](S* self, const nb::kwargs& given) { new (self) S(from_dict(fields, given)); });
  // Other processes are sent these.
  bound.def("__getstate__", [fields](const S& self) { return to_dict(fields, self); });
  bound.def("__setstate__",
            [fields](S& self, const nb::dict& state) { new (&self) S(from_dict(fields, state)); });
  const auto add = [&](const auto& field) {
    bound.def_prop_rw(
        field.name, [field](const S& self) { return to_python(self.*field.member); },
        [field](S& self, nb::handle given) { set_field(self, field, given); });
  };
  std::apply([&](const auto&... field) { (add(field), ...); }, fields);
  bound.def("__repr__", [name = std::string(name), fields](const S& self) {
    std::string text;
    for (const auto& [key, value] : to_dict(fields, self)) {
      text +=
          (text.empty() ? "" : ", ") + nb::cast<std::string>(key) + "=" + nb::repr(value).c_str();
    }
    return name + "(" + text + ")";
  });
  return bound;
}

}  // namespace wz::bindings
