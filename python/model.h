// The classes Model and Executor of the Python module, and load().
#pragma once

#include <nanobind/nanobind.h>

#include <functional>

#include "tessera/tessera.h"

namespace tessera::python {

// Backends, Pin and Exclusion must be bound before, because signatures name them.
void bind_model(nanobind::module_& module);

// Calls `action`, which binds, with a Model of Python and the options of bind(shapes, **keywords).
// The interpreter's lock must be held; it is released during the call. `action` is called as
// SignalWait::run() calls its work, so it must own what it uses. Afterwards raises exceptions of
// on_progress and of the model's log. Throws TypeError if `model` is no Model.
void with_bind_options(nanobind::handle model, nanobind::handle shapes,
                       const nanobind::kwargs& keywords,
                       std::function<void(const Model& model, const BindOptions& options)> action);

}  // namespace tessera::python
