// The fields of all descriptions, with their names in Python, their keys in JSON and their texts.
// Python's objects (python/descriptions.cc), the objects that commands print with --json
// (fields_json() in cli/output/json_output.h) and the documents of both
// (tests/cli/print_descriptions.cc) are made from these lists; described_field.h explains the rows.
#pragma once

#include <type_traits>

#include "api/describe/described_field.h"
#include "api/describe/model_fields.h"
#include "api/describe/plan_fields.h"
#include "api/describe/tuning_fields.h"

namespace tessera {

template <class... Each>
struct DescriptionTypes {};

// All descriptions, each of them after those that it contains.
using Descriptions =
    DescriptionTypes<ValueDescription, NodeDescription, PassDescription, ModelDescription,
                     MissingPart, ModelInspection, StepRecord, StageRecord, PlanPort,
                     CompileDescription, BackendRefusal, PlanStep, MeasuredTime,
                     CandidateDescription, ConversionDescription, TuningQuote, TuningDescription,
                     ContenderDescription, TuneProgress, PlacementDescription, MemoryBlock,
                     DeviceMemoryDescription, MemoryDescription, PlanDescription,
                     ShapePlanDescription, ShapesDescription, HeldCacheDescription,
                     HeldMemoryDescription, BackendDescription, CacheTypeReport, CacheReport>;

template <class T, class... Each>
constexpr bool is_listed(DescriptionTypes<Each...> /*all*/) {
  return (std::is_same_v<T, Each> || ...);
}

// Calls `visit` with a default-constructed description of each type.
template <class Visitor, class... Each>
void for_each_description(DescriptionTypes<Each...> /*all*/, Visitor visit) {
  (visit(Each{}), ...);
}

}  // namespace tessera
