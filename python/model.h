// The classes Model and Executor of the Python module, and load().
#pragma once

#include <nanobind/nanobind.h>

namespace tessera::python {

// Backends, Pin and Exclusion must be bound before, because signatures name them.
void bind_model(nanobind::module_& module);

}  // namespace tessera::python
