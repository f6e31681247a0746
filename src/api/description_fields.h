// The fields of all descriptions, with their names in Python and their keys in JSON. Python's
// objects (python/descriptions.cc) and what commands print with --json (fields_json() in
// cli/json_output.h) are made from these lists.
//
// python/tessera/descriptions.py and docs/formats/json.md say what the fields mean; tests compare
// both with these lists.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "api/field_count.h"
#include "tessera/inspect.h"
#include "tessera/tessera.h"

namespace tessera {

// A field of `Struct`: the name of Python's attribute, and the key in JSON if it is printed.
template <class Struct, class T, bool kPrinted>
struct DescribedField {
  using Type = T;
  static constexpr bool kIsPrinted = kPrinted;
  const char* name;
  T Struct::* member;
  const char* key;
};

// A key in JSON whose value is no field: the code that prints the struct computes it.
struct ComputedKey {
  const char* key;
};

template <class Struct, class T>
constexpr DescribedField<Struct, T, true> field(const char* name, T Struct::* member,
                                                const char* key) {
  return {name, member, key};
}
template <class Struct, class T>
constexpr DescribedField<Struct, T, true> field(const char* name, T Struct::* member) {
  return {name, member, name};
}
// A field that JSON does not contain, or only under a ComputedKey.
template <class Struct, class T>
constexpr DescribedField<Struct, T, false> hidden_field(const char* name, T Struct::* member) {
  return {name, member, nullptr};
}

template <class... Rows>
struct FieldList {
  constexpr explicit FieldList(const char* python_class, Rows... each)
      : name(python_class), rows(each...) {}

  const char* name;  // of the class in Python
  std::tuple<Rows...> rows;
};

// The FieldList of a description, in the order of its JSON; null for other types. If no command
// prints the struct, its keys have no meaning.
template <class T>
inline constexpr auto kFields = nullptr;

template <class T>
inline constexpr bool kIsDescribed = !std::is_same_v<decltype(kFields<T>), const std::nullptr_t>;

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

// Calls `visit` with each DescribedField and ComputedKey of `Struct`. Does not compile if the list
// lacks a field.
template <class Struct, class Visitor>
constexpr void for_each_row(Visitor visit) {
  const auto visit_all = [&]<class... Rows>(const Rows&... rows) {
    constexpr size_t kListed = (size_t{0} + ... + size_t{!std::is_same_v<Rows, ComputedKey>});
    static_assert(kListed == field_count<Struct>(), "a field of the struct is not in its list");
    (visit(rows), ...);
  };
  std::apply(visit_all, kFields<Struct>.rows);
}

// The same without computed keys.
template <class Struct, class Visitor>
constexpr void for_each_field(Visitor visit) {
  for_each_row<Struct>([&]<class Row>(const Row& row) {
    if constexpr (!std::is_same_v<Row, ComputedKey>) visit(row);
  });
}

// "not measured", "fine", "refused", "not built".
constexpr std::string_view name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"not measured", "fine", "refused", "not built"};
  return kNames[static_cast<size_t>(verdict)];
}

template <>
inline constexpr auto kFields<ValueDescription> = FieldList{
    "ValueDescription",
    field("name", &ValueDescription::name, "value"),
    field("type", &ValueDescription::type),
    field("shape", &ValueDescription::shape),
    hidden_field("is_read", &ValueDescription::is_read),
    hidden_field("index_limit", &ValueDescription::index_limit),
    hidden_field("text", &ValueDescription::text),
    hidden_field("layout", &ValueDescription::layout),
};

template <>
inline constexpr auto kFields<CompileDescription> = FieldList{
    "CompileDescription",
    field("backend", &CompileDescription::backend),
    field("kernels", &CompileDescription::kernels, "group_count"),
    field("unique", &CompileDescription::unique, "unique_count"),
    field("compiled", &CompileDescription::compiled, "compiled_count"),
    field("loaded_from_store", &CompileDescription::loaded_from_store, "loaded_from_store_count"),
    field("compile_seconds", &CompileDescription::compile_seconds, "compile_us"),
};

template <>
inline constexpr auto kFields<NodeDescription> = FieldList{
    "NodeDescription",
    field("name", &NodeDescription::name, "node"),
    field("op", &NodeDescription::op),
    field("domain", &NodeDescription::domain),
    field("version", &NodeDescription::version, "op_version"),
    field("inputs", &NodeDescription::inputs),
    field("outputs", &NodeDescription::outputs),
    field("flops", &NodeDescription::flops, "flop_count"),
    field("bytes", &NodeDescription::bytes, "moved_bytes"),
    field("inference_only", &NodeDescription::inference_only),
};

template <>
inline constexpr auto kFields<PassDescription> = FieldList{
    "PassDescription",
    field("name", &PassDescription::name, "pass"),
    field("nodes_before", &PassDescription::nodes_before, "before_count"),
    field("nodes_after", &PassDescription::nodes_after, "after_count"),
    field("seconds", &PassDescription::seconds, "pass_us"),
    field("changes", &PassDescription::changes),
};

template <>
inline constexpr auto kFields<ModelDescription> = FieldList{
    "ModelDescription",
    field("file", &ModelDescription::file, "model"),
    field("ir_version", &ModelDescription::ir_version),
    field("producer", &ModelDescription::producer),
    hidden_field("opsets", &ModelDescription::opsets),
    ComputedKey{"opsets"},
    hidden_field("inputs", &ModelDescription::inputs),
    ComputedKey{"inputs"},
    field("outputs", &ModelDescription::outputs),
    ComputedKey{"weight_count"},
    field("weight_bytes", &ModelDescription::weight_bytes),
    field("flops", &ModelDescription::flops, "flop_count"),
    field("peak_bytes", &ModelDescription::peak_bytes, "peak_value_bytes"),
    field("nodes", &ModelDescription::nodes),
    field("weights", &ModelDescription::weights),
    field("passes", &ModelDescription::passes),
    hidden_field("fetchable", &ModelDescription::fetchable),
};

template <>
inline constexpr auto kFields<MissingPart> = FieldList{
    "MissingPart",
    field("kind", &MissingPart::kind),
    field("name", &MissingPart::name),
    field("domain", &MissingPart::domain),
    field("reason", &MissingPart::reason),
    field("count", &MissingPart::count, "use_count"),
    field("places", &MissingPart::places),
};

template <>
inline constexpr auto kFields<ModelInspection> = FieldList{
    "ModelInspection",
    hidden_field("model", &ModelInspection::model),
    field("missing", &ModelInspection::missing),
};

template <>
inline constexpr auto kFields<StepRecord> = FieldList{
    "StepRecord",
    field("node", &StepRecord::node),
    field("op", &StepRecord::op),
    field("backend", &StepRecord::backend),
    field("algorithm", &StepRecord::algorithm),
    field("start_ns", &StepRecord::start),
    field("duration_ns", &StepRecord::duration),
    field("enqueue_ns", &StepRecord::enqueue),
    field("device", &StepRecord::device),
    field("flops", &StepRecord::flops),
    field("bytes", &StepRecord::bytes),
};

template <>
inline constexpr auto kFields<StageRecord> = FieldList{
    "StageRecord",
    field("name", &StageRecord::name),
    field("start_ns", &StageRecord::start),
    field("duration_ns", &StageRecord::duration),
    field("bytes", &StageRecord::bytes),
};

template <>
inline constexpr auto kFields<PlanPort> = FieldList{
    "PlanPort",
    field("value", &PlanPort::value),
    field("type", &PlanPort::type, "tensor"),
    field("layout", &PlanPort::layout),
    field("device", &PlanPort::device),
    field("is_constant", &PlanPort::is_constant),
    field("pack", &PlanPort::pack),
    field("capacity", &PlanPort::capacity, "capacity_count"),
    field("density", &PlanPort::density),
};

template <>
inline constexpr auto kFields<BackendRefusal> = FieldList{
    "BackendRefusal",
    field("backend", &BackendRefusal::backend),
    field("node", &BackendRefusal::node),
    field("reason", &BackendRefusal::reason),
};

template <>
inline constexpr auto kFields<PlanStep> = FieldList{
    "PlanStep",
    ComputedKey{"index"},
    field("name", &PlanStep::name),
    field("op", &PlanStep::op),
    ComputedKey{"kind"},
    field("backend", &PlanStep::backend),
    field("algorithm", &PlanStep::algorithm),
    field("threads", &PlanStep::threads, "thread_count"),
    field("nodes", &PlanStep::nodes),
    field("inputs", &PlanStep::inputs),
    field("outputs", &PlanStep::outputs),
    field("flops", &PlanStep::flops, "flop_count"),
    field("bytes", &PlanStep::bytes, "moved_bytes"),
    field("unfused_bytes", &PlanStep::unfused_bytes),
    field("workspace_bytes", &PlanStep::workspace_bytes),
    field("is_in_place", &PlanStep::is_in_place),
    ComputedKey{"median_us"},
    field("predicted_seconds", &PlanStep::predicted_seconds, "predicted_us"),
    field("unfused_seconds", &PlanStep::unfused_seconds, "unfused_us"),
    ComputedKey{"share"},
    ComputedKey{"gflop_per_second"},
    field("refusals", &PlanStep::refusals),
};

template <>
inline constexpr auto kFields<MeasuredTime> = FieldList{
    "MeasuredTime",
    field("seconds", &MeasuredTime::seconds, "time_us"),
    field("low", &MeasuredTime::low, "low_us"),
    field("high", &MeasuredTime::high, "high_us"),
    hidden_field("rounds", &MeasuredTime::rounds),
};

template <>
inline constexpr auto kFields<CandidateDescription> = FieldList{
    "CandidateDescription",
    field("nodes", &CandidateDescription::nodes),
    field("op", &CandidateDescription::op),
    field("backend", &CandidateDescription::backend),
    field("algorithm", &CandidateDescription::algorithm),
    field("threads", &CandidateDescription::threads, "thread_count"),
    field("inputs", &CandidateDescription::inputs),
    field("outputs", &CandidateDescription::outputs),
    field("is_chosen", &CandidateDescription::is_chosen),
    field("verdict", &CandidateDescription::verdict),
    field("refusal", &CandidateDescription::refusal, "reason"),
    field("time", &CandidateDescription::time),
    ComputedKey{"round_count"},
    field("has_cold_weights", &CandidateDescription::has_cold_weights),
    field("price_seconds", &CandidateDescription::price_seconds, "price_us"),
    ComputedKey{"margin"},
    field("behind_seconds", &CandidateDescription::behind_seconds, "behind_us"),
    field("ahead_seconds", &CandidateDescription::ahead_seconds, "ahead_us"),
    field("error", &CandidateDescription::error, "relative_error"),
    field("tolerance", &CandidateDescription::tolerance),
    field("build_seconds", &CandidateDescription::build_seconds, "build_us"),
    field("workspace_bytes", &CandidateDescription::workspace_bytes),
    field("pack_bytes", &CandidateDescription::pack_bytes),
    field("library_bytes", &CandidateDescription::library_bytes),
};

template <>
inline constexpr auto kFields<ConversionDescription> = FieldList{
    "ConversionDescription",
    field("backend", &ConversionDescription::backend),
    field("source", &ConversionDescription::from, "from_layout"),
    field("target", &ConversionDescription::to, "to_layout"),
    field("type", &ConversionDescription::type),
    field("bytes", &ConversionDescription::bytes, "size_bytes"),
    field("time", &ConversionDescription::time),
    ComputedKey{"round_count"},
    field("refusal", &ConversionDescription::refusal, "reason"),
};

template <>
inline constexpr auto kFields<TuningQuote> = FieldList{
    "TuningQuote",
    field("is_known", &TuningQuote::is_known),
    field("candidates", &TuningQuote::candidates, "candidate_count"),
    field("seconds", &TuningQuote::seconds, "tuning_us"),
    field("run_seconds", &TuningQuote::run_seconds, "run_us"),
    field("gain_low", &TuningQuote::gain_low),
    field("gain_high", &TuningQuote::gain_high),
    field("runs", &TuningQuote::runs, "run_count"),
};

template <>
inline constexpr auto kFields<TuningDescription> = FieldList{
    "TuningDescription",
    field("measured", &TuningDescription::measured, "measured_count"),
    field("known", &TuningDescription::known, "known_count"),
    field("refused", &TuningDescription::refused, "refused_count"),
    field("reused", &TuningDescription::reused, "reused_count"),
    field("reused_seconds", &TuningDescription::reused_seconds, "reused_us"),
    field("offered", &TuningDescription::offered, "offered_count"),
    field("is_stopped", &TuningDescription::is_stopped),
    field("is_out_of_time", &TuningDescription::is_out_of_time),
    field("seconds", &TuningDescription::seconds, "tuning_us"),
    field("peak_bytes", &TuningDescription::peak_bytes, "peak_resident_bytes"),
    hidden_field("phases", &TuningDescription::phases),
    ComputedKey{"phases"},
    field("notes", &TuningDescription::notes),
    field("quote", &TuningDescription::quote),
    field("gain", &TuningDescription::gain),
};

template <>
inline constexpr auto kFields<ContenderDescription> = FieldList{
    "ContenderDescription",
    field("name", &ContenderDescription::name),
    field("seconds", &ContenderDescription::seconds),
    field("low", &ContenderDescription::low),
    field("high", &ContenderDescription::high),
};

template <>
inline constexpr auto kFields<PlacementDescription> = FieldList{
    "PlacementDescription",
    field("predicted_seconds", &PlacementDescription::predicted_seconds, "predicted_us"),
    field("isolated_seconds", &PlacementDescription::isolated_seconds, "isolated_us"),
    field("lower_bound_seconds", &PlacementDescription::lower_bound_seconds, "lower_bound_us"),
    field("is_proven_optimal", &PlacementDescription::is_proven_optimal),
    field("gap", &PlacementDescription::gap),
    field("solve_seconds", &PlacementDescription::solve_seconds, "solve_us"),
    field("build_seconds", &PlacementDescription::build_seconds, "build_us"),
    field("measured_seconds", &PlacementDescription::measured_seconds, "measured_us"),
    hidden_field("contenders", &PlacementDescription::contenders),
    ComputedKey{"contenders"},
};

template <>
inline constexpr auto kFields<MemoryBlock> = FieldList{
    "MemoryBlock",
    field("name", &MemoryBlock::name),
    field("text", &MemoryBlock::text, "content"),
    field("is_workspace", &MemoryBlock::is_workspace),
    field("lower", &MemoryBlock::lower, "first_step"),
    hidden_field("upper", &MemoryBlock::upper),
    ComputedKey{"last_step"},
    field("bytes", &MemoryBlock::bytes, "size_bytes"),
    field("offset", &MemoryBlock::offset, "offset_bytes"),
};

template <>
inline constexpr auto kFields<DeviceMemoryDescription> = FieldList{
    "DeviceMemoryDescription",
    field("device", &DeviceMemoryDescription::device),
    field("arena_bytes", &DeviceMemoryDescription::arena_bytes),
    field("lower_bound_bytes", &DeviceMemoryDescription::lower_bound_bytes),
    field("is_proven_smallest", &DeviceMemoryDescription::is_proven_smallest),
    field("weight_bytes", &DeviceMemoryDescription::weight_bytes),
};

template <>
inline constexpr auto kFields<MemoryDescription> = FieldList{
    "MemoryDescription",
    field("arena_bytes", &MemoryDescription::arena_bytes),
    field("lower_bound_bytes", &MemoryDescription::lower_bound_bytes),
    field("weight_bytes", &MemoryDescription::weight_bytes),
    field("naive_bytes", &MemoryDescription::naive_bytes),
    hidden_field("library_bytes", &MemoryDescription::library_bytes),
    ComputedKey{"library_bytes"},
    ComputedKey{"ratio"},
    field("is_proven_smallest", &MemoryDescription::is_proven_smallest),
    field("padding_bytes", &MemoryDescription::padding_bytes),
    field("output_bytes", &MemoryDescription::output_bytes),
    field("total_bytes", &MemoryDescription::total_bytes),
    ComputedKey{"plan_us"},
    ComputedKey{"step_count"},
    field("devices", &MemoryDescription::devices, "device_memory"),
    hidden_field("blocks", &MemoryDescription::blocks),
    ComputedKey{"blocks"},
};

template <>
inline constexpr auto kFields<PlanDescription> = FieldList{
    "PlanDescription",
    field("steps", &PlanDescription::steps),
    field("candidates", &PlanDescription::candidates),
    field("conversions", &PlanDescription::conversions),
    field("placement", &PlanDescription::placement),
    field("tuning", &PlanDescription::tuning),
    field("arena_bytes", &PlanDescription::arena_bytes),
    field("pack_bytes", &PlanDescription::pack_bytes),
    field("library_bytes", &PlanDescription::library_bytes),
    field("memory", &PlanDescription::memory),
};

template <>
inline constexpr auto kFields<ShapePlanDescription> = FieldList{
    "ShapePlanDescription",
    field("shapes", &ShapePlanDescription::shapes),
    field("arena_bytes", &ShapePlanDescription::arena_bytes),
    field("pack_bytes", &ShapePlanDescription::pack_bytes),
    field("kernels", &ShapePlanDescription::kernels),
    field("reused_kernels", &ShapePlanDescription::reused_kernels),
    field("loaded_kernels", &ShapePlanDescription::loaded_kernels),
    field("seconds", &ShapePlanDescription::seconds),
};

template <>
inline constexpr auto kFields<ShapesDescription> = FieldList{
    "ShapesDescription",
    field("plans", &ShapesDescription::plans),
    field("arena_bytes", &ShapesDescription::arena_bytes),
};

template <>
inline constexpr auto kFields<HeldCacheDescription> = FieldList{
    "HeldCacheDescription",
    field("name", &HeldCacheDescription::name),
    field("count", &HeldCacheDescription::count, "entry_count"),
    field("max_count", &HeldCacheDescription::max_count, "max_entry_count"),
    field("bytes", &HeldCacheDescription::bytes, "size_bytes"),
    field("max_bytes", &HeldCacheDescription::max_bytes),
};

template <>
inline constexpr auto kFields<HeldMemoryDescription> = FieldList{
    "HeldMemoryDescription",
    field("plan_count", &HeldMemoryDescription::plan_count),
    field("max_plan_count", &HeldMemoryDescription::max_plan_count),
    field("arena_bytes", &HeldMemoryDescription::arena_bytes),
    field("scratch_bytes", &HeldMemoryDescription::scratch_bytes),
    field("library_bytes", &HeldMemoryDescription::library_bytes),
    field("pack_bytes", &HeldMemoryDescription::pack_bytes),
    field("caches", &HeldMemoryDescription::caches, "held_caches"),
};

template <>
inline constexpr auto kFields<TuneProgress> = FieldList{
    "TuneProgress",
    field("what", &TuneProgress::what),
    field("done", &TuneProgress::done),
    field("total", &TuneProgress::total),
    field("best_seconds", &TuneProgress::best_seconds),
    field("seconds_left", &TuneProgress::seconds_left),
    field("phase", &TuneProgress::phase),
    field("seconds_allowed", &TuneProgress::seconds_allowed),
    field("can_stop", &TuneProgress::can_stop),
    field("may_grow", &TuneProgress::may_grow),
    field("quote", &TuneProgress::quote),
};

template <>
inline constexpr auto kFields<BackendDescription> = FieldList{
    "BackendDescription",
    field("name", &BackendDescription::name, "backend"),
    field("version", &BackendDescription::version),
    field("devices", &BackendDescription::devices),
    field("layouts", &BackendDescription::layouts),
    field("aliases", &BackendDescription::aliases),
    field("file", &BackendDescription::file),
    field("is_usable", &BackendDescription::is_usable),
    field("status", &BackendDescription::status),
    field("reason", &BackendDescription::reason),
    field("remedy", &BackendDescription::remedy),
    field("op_count", &BackendDescription::op_count),
};

template <>
inline constexpr auto kFields<CacheTypeReport> = FieldList{
    "CacheTypeReport",
    field("type", &CacheTypeReport::type),
    field("origin", &CacheTypeReport::origin),
    field("loaded", &CacheTypeReport::loaded, "loaded_count"),
    field("measured", &CacheTypeReport::measured, "measured_count"),
    field("seconds_saved", &CacheTypeReport::seconds_saved, "saved_us"),
};

template <>
inline constexpr auto kFields<CacheReport> = FieldList{
    "CacheReport",
    field("is_hit", &CacheReport::is_hit),
    field("file", &CacheReport::file),
    field("change", &CacheReport::change),
    field("reason", &CacheReport::reason),
    field("types", &CacheReport::types),
    hidden_field("fingerprint", &CacheReport::fingerprint),
    hidden_field("ingredients", &CacheReport::ingredients),
    hidden_field("entry_ingredients", &CacheReport::entry_ingredients),
    hidden_field("saved", &CacheReport::saved),
    hidden_field("not_saved", &CacheReport::not_saved),
};

}  // namespace tessera
