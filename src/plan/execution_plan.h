// The execution plan: steps in their order, buffers and offsets. It contains all decisions that are
// made before running.
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
    Arena,     // at `offset` in the arena of its device
    Input,     // memory of the caller: input `index` of the graph
    Constant,  // constant `index` of the plan
    Output,    // new memory in each run, returned to the caller
    Dynamic,   // new memory in each run; the size is known only in the run
  };
  Kind kind = Kind::Arena;
  ValueId value;
  LayoutId layout;
  DeviceId device = kHostDevice;   // of the layout
  std::optional<TensorType> type;  // nullopt for Kind::Dynamic
  int64_t bytes = 0;               // its size if it is dense
  int64_t offset = 0;
  int index = 0;
  // The buffer of the same kind whose memory contains this one, `offset` bytes from its beginning;
  // -1 if this buffer has its own memory. In a finished plan, the offsets of Arena buffers count
  // from the beginning of the arena.
  int owner = -1;
  std::vector<int64_t> strides;  // in elements; empty: dense
};

// A constant in the form that steps read: packed, or in a layout.
struct PlanConstant {
  ValueId value;
  LayoutId layout;
  DeviceId device = kHostDevice;       // of the layout
  const tessera_pack* pack = nullptr;  // nullptr: the tensor itself, in `layout`
  int candidate = -1;                  // the candidate that asked for the pack and keeps it alive
  int64_t bytes = 0;
};

struct PlanOutput {
  int buffer = 0;
  int32_t request = TESSERA_REQUEST_WRITE;
};

struct ExecutionStep {
  enum class Kind : uint8_t {
    Kernel,
    Convert,
    Copy,
    // Does nothing in a run. With one input, every output is a part of it. With several inputs,
    // they are the parts of the only output, which is complete after this step.
    View,
    // Runs the value kernel of a node (ops::ValueKernel), with plans of their own for its nested
    // graphs.
    Values,
  };
  Kind kind = Kind::Kernel;
  // The device that does the step. The host only enqueues a step of another device in the plan's
  // queue of that device. A view does nothing on any device.
  DeviceId device = kHostDevice;
  int candidate = -1;         // Kernel, View, Values: index into Offers::candidates
  ConversionStep conversion;  // Convert
  std::vector<int> inputs;    // buffers, in the order of the candidate's ports
  std::vector<PlanOutput> outputs;
  std::vector<StoragePart> parts;  // View: by output; of a joint value: by input
  int64_t workspace_bytes = 0;
  int64_t workspace_offset = 0;
  int threads = 0;            // for a kernel: 0 for all threads of the pool, or 1
  std::vector<int> released;  // Dynamic buffers that no later step reads
  // Steps of other queues that must be done before this step begins; at most one of each device.
  // Steps of one device are done in their order, and steps of the host before later steps begin.
  std::vector<int> waits;
  // Some outputs get their sizes only when this step runs. The steps up to the next such step form
  // a static segment: all their sizes are known before it starts, so nothing has to be looked up or
  // allocated in it.
  bool ends_static_segment = false;
};

// The memory of the inner values and workspaces on one device.
struct ArenaSize {
  int64_t alignment_bytes = TESSERA_ALIGNMENT_BYTES;  // of offsets
  int64_t bytes = 0;
  int64_t lower_bound_bytes = 0;
  bool is_smallest = true;
};

struct ExecutionPlan {
  std::vector<PlanBuffer> buffers;
  std::vector<PlanConstant> constants;
  std::vector<ExecutionStep> steps;
  std::vector<int> results;  // buffers: the graph's outputs, kept values, requested values
  int64_t arena_bytes = 0;
  // The maximum number of bytes that are live at the same time. With this order of steps, no choice
  // of offsets makes the arena smaller.
  int64_t lower_bound_bytes = 0;
  bool is_smallest_arena = true;  // proven: its size is the bound, or no smaller size is possible
  // The arenas of devices that have memory of their own: of device id d at index d - 1.
  std::vector<ArenaSize> device_arenas;
  // Steps of devices that must be done before the run ends, as for ExecutionStep::waits.
  std::vector<int> last_waits;
};

// Whether a step of `plan` is done by another device than the host's processor.
bool uses_devices(const ExecutionPlan& plan);

// Makes the steps, buffers and offsets for `placement`:
// - Inserts conversions if a step needs a value in a layout in which it does not exist yet. One
//   converted copy serves all readers.
// - Results are in the caller's layout and have memory of their own.
// - An output is written in place if the candidate allows that and no later step needs the input.
// If
//   a kernel adds to a value that other steps still need, the value is copied first.
// - Views share the memory of the value that they are part of. The parts of a joint value are
//   written directly to their position in it if possible, otherwise copied there. A port gets a
//   dense, aligned copy if it accepts nothing else.
// - All buffers and workspaces in an arena get offsets.
// - Finally, steps wait for the steps of other devices that they depend on (add_waits.cc).
//
// `also` lists further values to return; values that no step makes are skipped. `graph` must
// contain all ids that `offers` uses; both must live until the kernels are built.
// `conversion_prices` are the prices of the placement problem and select the route of a conversion;
// if they are empty, the route with the fewest steps, then the fewest bytes, is taken. Pure.
ExecutionPlan make_plan(const Graph& graph, const Offers& offers, const Placement& placement,
                        const LayoutTable& layouts, std::span<const ValueId> also,
                        const std::vector<std::vector<double>>& conversion_prices = {});

// The values that the steps of `placement` make and that are visible outside of their group, in the
// order of the steps.
std::vector<ValueId> values_between_steps(const Offers& offers, const Placement& placement);

// Returns what is wrong with `plan`, or "" if it is sound: a buffer that is read before it is
// written or after its memory was overwritten, overlapping buffers, writes to constants or inputs,
// or views at a wrong position or outside of memory. Simulates the steps on a model of memory and
// shares no code with make_plan(). It takes the steps in their order; explain_race() says whether
// devices keep this order as far as necessary.
std::string explain_violation(const ExecutionPlan& plan);

// Returns which two steps on different devices access the same memory, one of them writing,
// although nothing orders them; "" if there are none. Follows the waits with vector clocks, and
// shares no code with add_waits().
std::string explain_race(const ExecutionPlan& plan);

// Sets ExecutionStep::waits and ExecutionPlan::last_waits, after all offsets are known. A step
// waits for the last step of another device that accesses memory that it accesses too, if one of
// both writes it, unless an earlier wait implies this one. The end of the run waits for steps that
// access the memory of the host or of another device. Does nothing if there are no devices but the
// host's processor.
void add_waits(ExecutionPlan& plan);

}  // namespace tessera
