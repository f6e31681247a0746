// The fields of descriptions of plans and of their runs, with their texts; see described_field.h.
#pragma once

#include "api/describe/described_field.h"
#include "tessera/descriptions.h"

namespace tessera {

template <>
inline constexpr auto kFields<PlanPort> = FieldList{
    {.name = "PlanPort",
     .json_titles = "Port",
     .help = "A value that a step or a candidate reads or writes, in the layout in which it does "
             "so."},
    field("value", &PlanPort::value, "its name"),
    field("type", "tensor", &PlanPort::type, "type and shape: `float32 1x64x56x56`"),
    field("layout", &PlanPort::layout, "its layout in memory: `nchw16c`"),
    field("device", &PlanPort::device, "device of the layout: `cpu`"),
    field("is_constant", &PlanPort::is_constant, "it is a constant"),
    field("pack", &PlanPort::pack, "id of the pack that is read instead of the value; empty: none"),
    field("capacity", "capacity_count", &PlanPort::capacity,
          "of a sparse layout: elements or rows that it stores at most",
          {.python_default = "None"}),
    field("density", &PlanPort::density, "`capacity` as a share of all elements or rows",
          {.python_default = "None"}),
};

template <>
inline constexpr auto kFields<BackendRefusal> = FieldList{
    {.name = "BackendRefusal",
     .json_titles = "Refusal",
     .help = "The reason why a backend does not run a node."},
    field("backend", &BackendRefusal::backend, "the backend that refused"),
    field("node", &BackendRefusal::node, "the node that was refused"),
    field("reason", &BackendRefusal::reason, "why it refused"),
};

template <>
inline constexpr auto kFields<PlanStep> = FieldList{
    {.name = "PlanStep",
     .json_titles = "Step",
     .help =
         "A kernel for a node or a group, a conversion, a copy, or a view, which does nothing."},
    ComputedKey{"index", "integer", "its index in the plan"},
    field("name", &PlanStep::name,
          "name of the node; of a group, the last node; of a conversion or copy, the value"),
    field("graph", &PlanStep::graph,
          "of a step of a nested graph, where that is: `node 'choice' (If), then_branch`; else "
          "empty"),
    field("op", &PlanStep::op,
          "its operators, or what it is: `Conv`, `Conv+Relu`, `convert`, `convert+copy` (to "
          "another device), `copy`"),
    ComputedKey{"kind", "one of `kernel`, `conversion`, `copy`", "kind of the step"},
    field("backend", &PlanStep::backend, "the backend that runs it; empty: Tessera itself"),
    field("algorithm", &PlanStep::algorithm, "how the backend computes it"),
    field("threads", "thread_count", &PlanStep::threads, "threads that it runs on"),
    field("nodes", &PlanStep::nodes, "all nodes that it computes"),
    field("inputs", &PlanStep::inputs, "values that it reads"),
    field("outputs", &PlanStep::outputs, "values that it writes"),
    field("flops", "flop_count", &PlanStep::flops,
          "floating-point operations (a multiply-add is 2)"),
    field("bytes", "moved_bytes", &PlanStep::bytes,
          "size of what it reads and writes, as stored; 0 for a view, which does nothing"),
    field("unfused_bytes", &PlanStep::unfused_bytes,
          "what `bytes` would be if a kernel computed each of its nodes; null unless it computes "
          "two or more nodes, without views"),
    field("workspace_bytes", &PlanStep::workspace_bytes,
          "scratch memory of its kernel, in the arena"),
    field("is_in_place", &PlanStep::is_in_place, "an output lies in the memory of an input"),
    field("built_for", &PlanStep::built_for,
          "the dimensions for which its kernel was built, such as `x[1]`; `all`; empty if it runs "
          "with other sizes"),
    ComputedKey{"median_us", "microseconds or null",
                "median time of the step; in a nested graph that of all its runs together, null if "
                "it did not run"},
    ComputedKey{"run_count", "count",
                "runs of the step in a run of the model; other than 1 only in a nested graph"},
    field("predicted_seconds", "predicted_us", &PlanStep::predicted_seconds,
          "the price that the choice used; null without prices"),
    field("unfused_seconds", "unfused_us", &PlanStep::unfused_seconds,
          "the sum of the cheapest measured candidates that compute its nodes in smaller groups; "
          "null if `unfused_bytes` is null, and if not enough were measured"),
    ComputedKey{"share", "number or null",
                "share of the sum of all steps, from 0 to 1; null if `median_us` is"},
    ComputedKey{"gflop_per_second", "number or null",
                "10^9 floating-point operations a second; null if `median_us` is"},
    field("refusals", &PlanStep::refusals, "refusals of its nodes by other backends"),
};

template <>
inline constexpr auto kFields<StepRecord> = FieldList{
    {.name = "StepRecord",
     .help =
         "One step of the plan in the newest recorded run. After a step with nested graphs come "
         "the steps of these."},
    field("node", &StepRecord::node, "name of the step, as in PlanStep"),
    field("op", &StepRecord::op, "its operators: `Conv+Relu`"),
    field("backend", &StepRecord::backend, "the backend that ran it; empty: Tessera itself"),
    field("algorithm", &StepRecord::algorithm, "how the backend computed it"),
    field("start_ns", &StepRecord::start, "its start, since the run began"),
    field("duration_ns", &StepRecord::duration,
          "its time; of a step of a device: until the host, which enqueued it and waited, knew "
          "that it was done"),
    field("enqueue_ns", &StepRecord::enqueue,
          "of a step of a device: the part of `duration_ns` that the host took to enqueue it; "
          "else 0"),
    field("device", &StepRecord::device, "the device that ran it: `cpu`"),
    field("flops", &StepRecord::flops, "floating-point operations (a multiply-add is 2)"),
    field("bytes", &StepRecord::bytes, "size of what it read and wrote, as stored"),
    field("graph", &StepRecord::graph,
          "of a step of a nested graph, where that is, as in PlanStep; else empty"),
    field("runs", &StepRecord::runs,
          "runs of a step of a nested graph; times, operations and bytes are those of all"),
};

template <>
inline constexpr auto kFields<StageRecord> = FieldList{
    {.name = "StageRecord", .help = "One stage of load() or bind()."},
    field("name", &StageRecord::name,
          "its name: `load`, `propose`, `place`, `build`, `pack`, `plan` and others"),
    field("start_ns", &StageRecord::start, "its start, since load() or bind() began"),
    field("duration_ns", &StageRecord::duration, "its time"),
    field("bytes", &StageRecord::bytes, "size of the packs that it made"),
};

template <>
inline constexpr auto kFields<CompileDescription> = FieldList{
    {.name = "CompileDescription",
     .json_titles = "Compiled",
     .help =
         "The kernels that a backend has compiled in this process, for all models and executors."},
    field("backend", &CompileDescription::backend, "the backend that compiled"),
    field("kernels", "group_count", &CompileDescription::kernels,
          "groups for which a kernel was built; several may share one code"),
    field("unique", "unique_count", &CompileDescription::unique, "different codes among them"),
    field("compiled", "compiled_count", &CompileDescription::compiled,
          "codes that the compiler made, here or in the process that measures"),
    field("loaded_from_store", "loaded_from_store_count", &CompileDescription::loaded_from_store,
          "codes that another process had compiled"),
    field("compile_seconds", "compile_us", &CompileDescription::compile_seconds,
          "time of the compiler"),
};

template <>
inline constexpr auto kFields<MemoryBlock> = FieldList{
    {.name = "MemoryBlock",
     .json_titles = "Block",
     .help = "A block of memory in the arena: a value and those that share its memory, or a "
             "workspace."},
    field("name", &MemoryBlock::name, "name of the value, or of the step that has the workspace"),
    field("text", "content", &MemoryBlock::text,
          "type, shape and layout: `float32 1x64x56x56, nchw16c`; empty for a workspace"),
    field("is_workspace", &MemoryBlock::is_workspace, "it is the workspace of a step"),
    field("lower", "first_step", &MemoryBlock::lower, "index of the first step that uses it"),
    hidden_field("upper", &MemoryBlock::upper, "index after that of the last step that uses it"),
    ComputedKey{"last_step", "integer", "index of the last step that uses it"},
    field("bytes", "size_bytes", &MemoryBlock::bytes, "size, as its layout stores it"),
    field("offset", "offset_bytes", &MemoryBlock::offset, "position in the arena, in bytes"),
};

template <>
inline constexpr auto kFields<DeviceMemoryDescription> = FieldList{
    {.name = "DeviceMemoryDescription",
     .json_titles = "DeviceMemory",
     .help = "The memory that a plan needs on a device with memory of its own."},
    field("device", &DeviceMemoryDescription::device, "name of the device: `mylib:1`"),
    field("arena_bytes", &DeviceMemoryDescription::arena_bytes,
          "size of the arena, which holds inner values and workspaces"),
    field("lower_bound_bytes", &DeviceMemoryDescription::lower_bound_bytes,
          "largest sum of what is live at once"),
    field("is_proven_smallest", &DeviceMemoryDescription::is_proven_smallest,
          "no smaller arena holds these values"),
    field("weight_bytes", &DeviceMemoryDescription::weight_bytes,
          "size of the constants that its steps read, packed or not"),
};

template <>
inline constexpr auto kFields<MemoryDescription> = FieldList{
    {.name = "MemoryDescription",
     .json_titles = "tessera inspect --memory",
     .help = "The positions of inner values and workspaces in the arena, and the memory of the "
             "plan."},
    field("arena_bytes", &MemoryDescription::arena_bytes,
          "size of the arena, which holds inner values and workspaces"),
    field("lower_bound_bytes", &MemoryDescription::lower_bound_bytes,
          "largest sum of what is live at once, in this order of steps"),
    field("weight_bytes", &MemoryDescription::weight_bytes,
          "size of the constants that steps read, packed or not"),
    field("naive_bytes", &MemoryDescription::naive_bytes,
          "size of the arena if no values and workspaces shared memory"),
    hidden_field("library_bytes", &MemoryDescription::library_bytes,
                 "memory that libraries keep internally"),
    ComputedKey{"library_bytes", "bytes", "memory that libraries keep internally"},
    ComputedKey{"ratio", "number", "`arena_bytes` / `lower_bound_bytes`"},
    field("is_proven_smallest", &MemoryDescription::is_proven_smallest,
          "no offsets for these steps give a smaller arena"),
    field("padding_bytes", &MemoryDescription::padding_bytes,
          "the part of `naive_bytes` that is padding"),
    field("output_bytes", &MemoryDescription::output_bytes,
          "size of the outputs, as far as it is known; their memory belongs to the caller of each "
          "run"),
    field("total_bytes", &MemoryDescription::total_bytes,
          "sum of arena, weights, outputs and libraries, which a memory budget limits"),
    ComputedKey{"plan_us", "microseconds", "time to lay it out"},
    ComputedKey{"step_count", "count", "steps of the plan"},
    field("devices", "device_memory", &MemoryDescription::devices,
          "what the plan needs on devices, which is no part of the other figures"),
    hidden_field("blocks", &MemoryDescription::blocks, "the blocks of the arena, by first step"),
    ComputedKey{"blocks", "list of Block", "the blocks of the arena, by first step"},
};

template <>
inline constexpr auto kFields<PlanDescription> = FieldList{
    {.name = "PlanDescription",
     .help = "The steps that an executor runs, in order; with costs, all candidates and "
             "conversions.",
     .python_base = "PlanText"},
    field("steps", &PlanDescription::steps, "its steps, in the order in which they run"),
    field("nested_steps", &PlanDescription::nested_steps,
          "the steps of nested graphs (If, Loop, Scan), whose plans are their own; sizes that only "
          "a run knows are planned in the first one"),
    field("candidates", &PlanDescription::candidates, "all candidates; empty without costs"),
    field("conversions", &PlanDescription::conversions,
          "all conversions with their prices; empty without costs"),
    field("placement", &PlanDescription::placement,
          "the quality of the choice; null without costs"),
    field("tuning", &PlanDescription::tuning, "what was measured"),
    field("arena_bytes", &PlanDescription::arena_bytes,
          "size of the arena, which holds inner values and workspaces"),
    field("pack_bytes", &PlanDescription::pack_bytes,
          "size of the packed weights that this plan reads"),
    field("library_bytes", &PlanDescription::library_bytes,
          "memory that libraries keep internally"),
    field("memory", &PlanDescription::memory,
          "the contents of the arena, and the memory of the plan"),
};

template <>
inline constexpr auto kFields<ShapePlanDescription> = FieldList{
    {.name = "ShapePlanDescription", .help = "An executor's plan for one set of input shapes."},
    field("shapes", &ShapePlanDescription::shapes,
          "shapes of the inputs whose shape is read, by name"),
    field("arena_bytes", &ShapePlanDescription::arena_bytes,
          "size of the arena that this plan needs"),
    field("pack_bytes", &ShapePlanDescription::pack_bytes,
          "size of its packed weights, which it shares with other plans"),
    field("kernels", &ShapePlanDescription::kernels, "number of its kernels"),
    field("reused_kernels", &ShapePlanDescription::reused_kernels,
          "kernels that another plan had built"),
    field("loaded_kernels", &ShapePlanDescription::loaded_kernels,
          "kernels that an earlier process had built and stored"),
    field("seconds", &ShapePlanDescription::seconds,
          "time to make the plan; 0 for the plan of bind()"),
};

template <>
inline constexpr auto kFields<ShapesDescription> = FieldList{
    {.name = "ShapesDescription",
     .help = "The sets of input shapes for which an executor has plans."},
    field("plans", &ShapesDescription::plans, "its plans, the most recently used first"),
    field("arena_bytes", &ShapesDescription::arena_bytes,
          "size of the shared arena: the maximum that a plan ever needed"),
};

template <>
inline constexpr auto kFields<HeldCacheDescription> = FieldList{
    {.name = "HeldCacheDescription",
     .json_titles = "HeldCache",
     .help = "Something that a process keeps in memory for later binds, up to its bounds."},
    field("name", &HeldCacheDescription::name, "its name: `plans`, `costs`, `blobs`"),
    field("count", "entry_count", &HeldCacheDescription::count,
          "number of entries now, in this process"),
    field("max_count", "max_entry_count", &HeldCacheDescription::max_count,
          "maximum number of entries; 0: no bound"),
    field("bytes", "size_bytes", &HeldCacheDescription::bytes,
          "size of the entries; 0: not counted"),
    field("max_bytes", &HeldCacheDescription::max_bytes,
          "maximum size of the entries; 0: no bound"),
};

template <>
inline constexpr auto kFields<HeldMemoryDescription> = FieldList{
    {.name = "HeldMemoryDescription",
     .help = "The memory that an executor keeps, and the caches that its process keeps for all."},
    field("plan_count", &HeldMemoryDescription::plan_count,
          "number of plans, for different shapes"),
    field("max_plan_count", &HeldMemoryDescription::max_plan_count,
          "maximum number of plans (most_shapes)"),
    field("arena_bytes", &HeldMemoryDescription::arena_bytes,
          "size of the arena that the plans share"),
    field("scratch_bytes", &HeldMemoryDescription::scratch_bytes,
          "temporary memory of reference kernels, kept for later runs"),
    field("library_bytes", &HeldMemoryDescription::library_bytes,
          "memory that libraries keep for kernels of the plans"),
    field("pack_bytes", &HeldMemoryDescription::pack_bytes,
          "size of the packed weights of the model, which its executors share"),
    field("caches", "held_caches", &HeldMemoryDescription::caches,
          "what the process keeps for all models on these backends"),
};

}  // namespace tessera
