// Converts descriptions to objects of the Python classes in tessera/descriptions.py, by the lists
// of api/describe/description_fields.h.
#pragma once

#include <nanobind/nanobind.h>

#include "tessera/tessera.h"

namespace tessera::python {

// Defined for the descriptions that functions of the module return. Requires the interpreter's
// lock.
template <class Description>
nanobind::object to_python(const Description& description);

// A list with one object for each of `items`.
template <class Items>
nanobind::list to_list(const Items& items) {
  nanobind::list list;
  for (const auto& item : items) list.append(to_python(item));
  return list;
}

}  // namespace tessera::python
