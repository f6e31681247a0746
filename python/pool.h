// The class Pool of the Python module. Its futures are the class of tessera/pool_future.py.
#pragma once

#include <nanobind/nanobind.h>

namespace tessera::python {

// Model must be bound before, because signatures name it.
void bind_pool(nanobind::module_& module);

}  // namespace tessera::python
