// Texts of models, paths and messages, as objects of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace tessera::python {

// `text` as a str. Names in a model, and paths, need not be UTF-8: other bytes become "\xff".
// Requires the interpreter's lock.
inline nanobind::object decoded(std::string_view text) {
  return nanobind::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

}  // namespace tessera::python
