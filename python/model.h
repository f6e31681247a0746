// The classes Model and Executor of the Python module, and load().
#pragma once

#include <nanobind/nanobind.h>

namespace tessera::python {

// Needs Backends, Pin and Exclusion to be bound already: signatures name them.
void bind_model(nanobind::module_& module);

}  // namespace tessera::python
