// The metadata in a model's file, for tessera.onnxruntime.
#pragma once

#include <nanobind/nanobind.h>

namespace tessera::python {

void bind_metadata(nanobind::module_& module);

}  // namespace tessera::python
