// Calls of the compiled functions that answer a wrong argument in one line.
#pragma once

#include <nanobind/nanobind.h>

namespace tessera::python {

// Adds the class CheckedCall to `module`, with which tessera/calls.py replaces the functions and
// methods of nanobind. A CheckedCall behaves like the function that it wraps, with two differences:
// if nanobind finds no overload for the arguments, the TypeError says which argument is wrong; and
// inspect.signature() works. A call that is right costs 50 ns more.
void bind_checked_calls(nanobind::module_& module);

}  // namespace tessera::python
