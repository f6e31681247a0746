// Converts descriptions to objects of the Python classes in tessera/descriptions.py, field by
// field.
#pragma once

#include <nanobind/nanobind.h>

#include "tessera/tessera.h"

namespace tessera::python {

// All functions require the interpreter's lock.
nanobind::object to_python(const ValueDescription& value);
nanobind::object to_python(const NodeDescription& node);
nanobind::object to_python(const PassDescription& pass);
nanobind::object to_python(const ModelDescription& model);
nanobind::object to_python(const StepRecord& step);
nanobind::object to_python(const StageRecord& stage);
nanobind::object to_python(const PlanPort& port);
nanobind::object to_python(const BackendRefusal& refusal);
nanobind::object to_python(const PlanStep& step);
nanobind::object to_python(const MeasuredTime& time);
nanobind::object to_python(const CandidateDescription& candidate);
nanobind::object to_python(const ConversionDescription& conversion);
nanobind::object to_python(const TuningDescription& tuning);
nanobind::object to_python(const ContenderDescription& contender);
nanobind::object to_python(const PlacementDescription& placement);
nanobind::object to_python(const TuneProgress& progress);
nanobind::object to_python(const MemoryBlock& block);
nanobind::object to_python(const MemoryDescription& memory);
nanobind::object to_python(const PlanDescription& plan);
nanobind::object to_python(const ShapePlanDescription& plan);
nanobind::object to_python(const ShapesDescription& shapes);
nanobind::object to_python(const BackendDescription& backend);

nanobind::object to_python(const CacheReport& report);

// A list with one object for each of `items`.
template <class Items>
nanobind::list to_list(const Items& items) {
  nanobind::list list;
  for (const auto& item : items) list.append(to_python(item));
  return list;
}

}  // namespace tessera::python
