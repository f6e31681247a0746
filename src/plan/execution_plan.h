// What runs in which order on which memory: the result of all that is decided before running.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "graph/graph.h"
#include "place/placement.h"

namespace tessera {

// One value in one layout.
struct PlanBuffer {
  enum class Kind : uint8_t {
    Arena,     // at `offset` of the arena
    Input,     // the caller's, number `index` of the graph's inputs
    Constant,  // number `index` of the plan's constants
    Output,    // new memory in each run, handed to the caller
    Dynamic,   // its size only running shows; new memory in each run
  };
  Kind kind = Kind::Arena;
  ValueId value;
  LayoutId layout;
  std::optional<TensorType> type;  // nullopt for Dynamic ones
  int64_t bytes = 0;               // that it takes when dense
  int64_t offset = 0;
  int index = 0;
  // The buffer, of the same kind, in whose memory this one lies, `offset` bytes from its beginning;
  // -1: it has memory of its own. Offsets of Arena buffers are always those of the arena.
  int owner = -1;
  std::vector<int64_t> strides;  // in elements; empty: dense
};

// A constant as some step reads it: packed, or in a layout.
struct PlanConstant {
  ValueId value;
  LayoutId layout;
  const tessera_pack* pack = nullptr;  // null: the tensor itself, in `layout`
  int candidate = -1;                  // which asked for the pack and keeps it alive
  int64_t bytes = 0;
};

struct PlanOutput {
  int buffer = 0;
  int32_t request = TESSERA_REQUEST_WRITE;
};

struct SubPlan;

struct ExecutionStep {
  enum class Kind : uint8_t {
    Kernel,
    Convert,
    Copy,
    // Nothing runs. With one input: every output is part of it. With several: they are the parts
    // of the one output, which is complete from here on.
    View,
    // Runs one of `branches`: the first where its first input, a bool, is true, else the last.
    Branch,
  };
  Kind kind = Kind::Kernel;
  int candidate = -1;         // Kernel, View, Branch: index into Offers::candidates
  ConversionStep conversion;  // Convert
  std::vector<int> inputs;    // buffers, in the order of the candidate's ports
  std::vector<PlanOutput> outputs;
  std::vector<StoragePart> parts;  // View: one for each output or, where these are parts, input
  int64_t workspace_bytes = 0;
  int64_t workspace_offset = 0;
  int threads = 0;  // that a kernel runs on: 0 all of the pool, or 1
  // Branch: plans of its own, whose arenas are the step's workspace.
  std::vector<SubPlan> branches;
  std::vector<int> released;  // Dynamic buffers that nothing reads after this step
  // Outputs get their sizes when it runs. Of all steps up to the next such one, all is known
  // before: a static region, in which nothing needs to be looked up or allocated.
  bool ends_static_region = false;
};

struct ExecutionPlan {
  std::vector<PlanBuffer> buffers;
  std::vector<PlanConstant> constants;
  std::vector<ExecutionStep> steps;
  std::vector<int> results;  // buffers: the graph's outputs, its kept values, then those asked for
  int64_t arena_bytes = 0;
  // What is live at once, at most: no offsets for these steps give a smaller arena.
  int64_t lower_bound_bytes = 0;
  bool is_smallest_arena = true;  // proven: it equals the bound, or all else was excluded
};

// A plan within a step. All of its sizes are known; its results are the step's outputs.
struct SubPlan {
  ExecutionPlan plan;
  std::vector<int> inputs;  // by its own input: which of the step's it is
};

// The workspace of a step with these branches, of which one runs at a time.
int64_t workspace_bytes_of(std::span<const SubPlan> branches);

// Lays out the steps of `placement`: conversions where a value is needed in a layout in which it is
// not made (one copy serves all who need it), results in the caller's layout, outputs in place
// where the candidate allows it and the input is not needed any more, a copy before a kernel that
// adds to a value which others still need. Views share the memory of what they are part of; parts
// of a joint value are written straight to their place where that can be, else copied there; a port
// gets a dense, aligned copy where it takes nothing else. Results have memory of their own. Then
// offsets in the arena. Pure. `also` are further values to return; those that no step makes are
// passed over. `graph` needs all ids that `offers` uses; both must live until the kernels are
// built. `conversion_prices` are those of the placement's problem, which decide the way of a
// conversion; without, it is the one with the fewest steps, then bytes.
ExecutionPlan make_plan(const Graph& graph, const Offers& offers, const Placement& placement,
                        const LayoutTable& layouts, std::span<const ValueId> also,
                        const std::vector<std::vector<double>>& conversion_prices = {});

// Values that some step of `placement` makes and that no group keeps to itself, in their order.
std::vector<ValueId> values_between_steps(const Offers& offers, const Placement& placement);

// Says what is wrong with `plan`, or "": a buffer read before it is written or after its memory was
// given to another, overlapping buffers, constants or inputs written to, views that lie elsewhere
// than they should or outside of memory, branches that do not fit their step. Runs the steps on a
// model of memory and shares no code with make_plan().
std::string explain_violation(const ExecutionPlan& plan);

}  // namespace tessera
