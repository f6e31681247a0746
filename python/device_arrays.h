// Arrays in memory of a device: the Python class DeviceArray, which is a Tensor.
#pragma once

#include <nanobind/nanobind.h>

#include "tessera/tessera.h"

namespace tessera::python {

void bind_device_arrays(nanobind::module_& module);

// Methods of the Python class Backends.
void bind_device_memory(nanobind::class_<Backends>& backends);

}  // namespace tessera::python
