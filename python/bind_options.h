// The keywords of Model.bind(), as the table in api/options/option_table.h lists them.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "tessera/bind_options.h"

namespace tessera::python {

// The options of a call bind(shapes, **keywords); on_progress is left to the caller. Throws
// TypeError for a keyword that does not exist, naming the likely one, and for a value of a wrong
// type; InvalidArgument for an impossible value. Needs the interpreter's lock.
BindOptions read_bind_options(nanobind::handle shapes, const nanobind::kwargs& keywords);

// The parameters of bind() after `self`: "shapes: ... = None, *, fetch: ...".
std::string bind_parameters();
// "def bind(self, shapes: ... = None, *, fetch: ...) -> Executor", and the documentation.
std::string bind_signature();
std::string bind_text();

}  // namespace tessera::python
