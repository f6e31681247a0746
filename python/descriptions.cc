#include "python/descriptions.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace tessera::python {
namespace {

nb::object class_named(const char* name) {
  return nb::module_::import_("tessera.descriptions").attr(name);
}

nb::object shape_of(const ValueDescription& value) {
  if (!value.shape) return nb::none();
  nb::list dims;
  for (const Dimension& dimension : *value.shape) {
    if (dimension.value) {
      dims.append(*dimension.value);
    } else {
      dims.append(dimension.symbol);
    }
  }
  return nb::tuple(dims);
}

}  // namespace

nb::object to_python(const ValueDescription& value) {
  return class_named("ValueDescription")("name"_a = value.name, "type"_a = name(value.type),
                                         "shape"_a = shape_of(value), "is_read"_a = value.is_read,
                                         "index_limit"_a = value.index_limit, "text"_a = value.text,
                                         "layout"_a = value.layout);
}

nb::object to_python(const NodeDescription& node) {
  return class_named("NodeDescription")(
      "name"_a = node.name, "op"_a = node.op, "domain"_a = node.domain, "version"_a = node.version,
      "inputs"_a = to_list(node.inputs), "outputs"_a = to_list(node.outputs),
      "flops"_a = node.flops, "bytes"_a = node.bytes, "inference_only"_a = node.inference_only);
}

nb::object to_python(const PassDescription& pass) {
  return class_named("PassDescription")("name"_a = pass.name, "nodes_before"_a = pass.nodes_before,
                                        "nodes_after"_a = pass.nodes_after,
                                        "seconds"_a = pass.seconds, "changes"_a = pass.changes);
}

nb::object to_python(const PlanPort& port) {
  return class_named("PlanPort")("value"_a = port.value, "type"_a = port.type,
                                 "layout"_a = port.layout, "device"_a = port.device,
                                 "pack"_a = port.pack, "is_constant"_a = port.is_constant,
                                 "capacity"_a = port.capacity, "density"_a = port.density);
}

nb::object to_python(const BackendRefusal& refusal) {
  return class_named("BackendRefusal")("backend"_a = refusal.backend, "node"_a = refusal.node,
                                       "reason"_a = refusal.reason);
}

nb::object to_python(const PlanStep& step) {
  return class_named("PlanStep")(
      "name"_a = step.name, "op"_a = step.op, "backend"_a = step.backend,
      "algorithm"_a = step.algorithm, "threads"_a = step.threads, "nodes"_a = step.nodes,
      "inputs"_a = to_list(step.inputs), "outputs"_a = to_list(step.outputs),
      "flops"_a = step.flops, "bytes"_a = step.bytes, "workspace_bytes"_a = step.workspace_bytes,
      "is_in_place"_a = step.is_in_place, "predicted_seconds"_a = step.predicted_seconds,
      "refusals"_a = to_list(step.refusals));
}

nb::object to_python(const ModelDescription& model) {
  return class_named("ModelDescription")(
      "file"_a = model.file, "ir_version"_a = model.ir_version, "producer"_a = model.producer,
      "opsets"_a = model.opsets, "inputs"_a = to_list(model.inputs),
      "outputs"_a = to_list(model.outputs), "weights"_a = to_list(model.weights),
      "nodes"_a = to_list(model.nodes), "passes"_a = to_list(model.passes),
      "fetchable"_a = model.fetchable, "weight_bytes"_a = model.weight_bytes,
      "flops"_a = model.flops, "peak_bytes"_a = model.peak_bytes);
}

nb::object to_python(const StepRecord& step) {
  return class_named("StepRecord")(
      "node"_a = step.node, "op"_a = step.op, "backend"_a = step.backend,
      "algorithm"_a = step.algorithm, "start_ns"_a = step.start.count(),
      "duration_ns"_a = step.duration.count(), "flops"_a = step.flops, "bytes"_a = step.bytes);
}

nb::object to_python(const StageRecord& stage) {
  return class_named("StageRecord")("name"_a = stage.name, "start_ns"_a = stage.start.count(),
                                    "duration_ns"_a = stage.duration.count(),
                                    "bytes"_a = stage.bytes);
}

nb::object to_python(const MeasuredTime& time) {
  return class_named("MeasuredTime")("seconds"_a = time.seconds, "low"_a = time.low,
                                     "high"_a = time.high, "rounds"_a = time.rounds);
}

nb::object to_python(const CandidateDescription& candidate) {
  constexpr const char* kVerdicts[] = {"not measured", "fine", "refused", "not built"};
  return class_named("CandidateDescription")(
      "nodes"_a = candidate.nodes, "op"_a = candidate.op, "backend"_a = candidate.backend,
      "algorithm"_a = candidate.algorithm, "threads"_a = candidate.threads,
      "inputs"_a = to_list(candidate.inputs), "outputs"_a = to_list(candidate.outputs),
      "verdict"_a = kVerdicts[static_cast<int>(candidate.verdict)], "refusal"_a = candidate.refusal,
      "time"_a = candidate.time ? to_python(*candidate.time) : nb::none(),
      "has_cold_weights"_a = candidate.has_cold_weights,
      "price_seconds"_a = candidate.price_seconds, "error"_a = candidate.error,
      "tolerance"_a = candidate.tolerance, "build_seconds"_a = candidate.build_seconds,
      "workspace_bytes"_a = candidate.workspace_bytes, "pack_bytes"_a = candidate.pack_bytes,
      "library_bytes"_a = candidate.library_bytes, "is_chosen"_a = candidate.is_chosen,
      "behind_seconds"_a = candidate.behind_seconds, "ahead_seconds"_a = candidate.ahead_seconds);
}

nb::object to_python(const ConversionDescription& conversion) {
  return class_named("ConversionDescription")(
      "backend"_a = conversion.backend, "source"_a = conversion.from, "target"_a = conversion.to,
      "type"_a = conversion.type, "bytes"_a = conversion.bytes,
      "time"_a = to_python(conversion.time), "refusal"_a = conversion.refusal);
}

nb::object to_python(const TuningDescription& tuning) {
  return class_named("TuningDescription")(
      "measured"_a = tuning.measured, "known"_a = tuning.known, "refused"_a = tuning.refused,
      "reused"_a = tuning.reused, "reused_seconds"_a = tuning.reused_seconds,
      "offered"_a = tuning.offered, "is_stopped"_a = tuning.is_stopped,
      "is_out_of_time"_a = tuning.is_out_of_time, "seconds"_a = tuning.seconds,
      "peak_bytes"_a = tuning.peak_bytes, "phases"_a = tuning.phases, "notes"_a = tuning.notes);
}

nb::object to_python(const ContenderDescription& contender) {
  return class_named("ContenderDescription")("name"_a = contender.name,
                                             "seconds"_a = contender.seconds,
                                             "low"_a = contender.low, "high"_a = contender.high);
}

nb::object to_python(const PlacementDescription& placement) {
  return class_named("PlacementDescription")(
      "predicted_seconds"_a = placement.predicted_seconds,
      "isolated_seconds"_a = placement.isolated_seconds,
      "measured_seconds"_a = placement.measured_seconds,
      "build_seconds"_a = placement.build_seconds,
      "lower_bound_seconds"_a = placement.lower_bound_seconds,
      "is_proven_optimal"_a = placement.is_proven_optimal, "gap"_a = placement.gap,
      "solve_seconds"_a = placement.solve_seconds, "contenders"_a = to_list(placement.contenders));
}

nb::object to_python(const TuneProgress& progress) {
  return class_named("TuneProgress")(
      "what"_a = progress.what, "done"_a = progress.done, "total"_a = progress.total,
      "best_seconds"_a = progress.best_seconds, "seconds_left"_a = progress.seconds_left,
      "phase"_a = name(progress.phase), "seconds_allowed"_a = progress.seconds_allowed,
      "can_stop"_a = progress.can_stop, "may_grow"_a = progress.may_grow);
}

nb::object to_python(const MemoryBlock& block) {
  return class_named("MemoryBlock")("name"_a = block.name, "text"_a = block.text,
                                    "lower"_a = block.lower, "upper"_a = block.upper,
                                    "bytes"_a = block.bytes, "offset"_a = block.offset,
                                    "is_workspace"_a = block.is_workspace);
}

nb::object to_python(const MemoryDescription& memory) {
  return class_named("MemoryDescription")(
      "arena_bytes"_a = memory.arena_bytes, "lower_bound_bytes"_a = memory.lower_bound_bytes,
      "is_proven_smallest"_a = memory.is_proven_smallest, "naive_bytes"_a = memory.naive_bytes,
      "padding_bytes"_a = memory.padding_bytes, "weight_bytes"_a = memory.weight_bytes,
      "output_bytes"_a = memory.output_bytes, "library_bytes"_a = memory.library_bytes,
      "total_bytes"_a = memory.total_bytes, "blocks"_a = to_list(memory.blocks));
}

nb::object to_python(const PlanDescription& plan) {
  return class_named("PlanDescription")(
      "steps"_a = to_list(plan.steps), "candidates"_a = to_list(plan.candidates),
      "conversions"_a = to_list(plan.conversions),
      "placement"_a = plan.placement ? to_python(*plan.placement) : nb::none(),
      "tuning"_a = to_python(plan.tuning), "arena_bytes"_a = plan.arena_bytes,
      "pack_bytes"_a = plan.pack_bytes, "library_bytes"_a = plan.library_bytes,
      "memory"_a = to_python(plan.memory));
}

nb::object to_python(const ShapePlanDescription& plan) {
  return class_named("ShapePlanDescription")(
      "shapes"_a = plan.shapes, "arena_bytes"_a = plan.arena_bytes,
      "pack_bytes"_a = plan.pack_bytes, "kernels"_a = plan.kernels,
      "reused_kernels"_a = plan.reused_kernels, "loaded_kernels"_a = plan.loaded_kernels,
      "seconds"_a = plan.seconds);
}

nb::object to_python(const ShapesDescription& shapes) {
  return class_named("ShapesDescription")("plans"_a = to_list(shapes.plans),
                                          "arena_bytes"_a = shapes.arena_bytes);
}

nb::object to_python(const BackendDescription& backend) {
  return class_named("BackendDescription")(
      "name"_a = backend.name, "version"_a = backend.version, "devices"_a = backend.devices,
      "layouts"_a = backend.layouts, "aliases"_a = backend.aliases,
      "file"_a = backend.file.string(), "is_usable"_a = backend.is_usable,
      "status"_a = name(backend.status), "reason"_a = backend.reason, "remedy"_a = backend.remedy,
      "op_count"_a = backend.op_count);
}

nb::object to_python(const CacheReport& report) {
  const auto to_dict = [](const std::vector<CacheIngredient>& list) {
    nb::dict ingredients;
    for (const CacheIngredient& ingredient : list) {
      ingredients[nb::str(ingredient.name.c_str())] = nb::str(ingredient.value.c_str());
    }
    return ingredients;
  };
  nb::list types;
  for (const CacheTypeReport& type : report.types) {
    types.append(class_named("CacheTypeReport")(
        "type"_a = type.type, "loaded"_a = type.loaded, "measured"_a = type.measured,
        "seconds_saved"_a = type.seconds_saved, "origin"_a = type.origin));
  }
  return class_named("CacheReport")(
      "fingerprint"_a = report.fingerprint, "ingredients"_a = to_dict(report.ingredients),
      "entry_ingredients"_a = to_dict(report.entry_ingredients), "is_hit"_a = report.is_hit,
      "file"_a = report.file.string(), "change"_a = report.change, "reason"_a = report.reason,
      "saved"_a = report.saved.string(), "not_saved"_a = report.not_saved, "types"_a = types);
}

}  // namespace tessera::python
