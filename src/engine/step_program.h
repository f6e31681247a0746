// The steps of a plan in the form in which they run: arrays of calls, whose arguments are resolved
// before the first run. plan_runner.h runs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "backend/device.h"
#include "engine/argument_check.h"
#include "engine/built_plan.h"
#include "engine/strided_copy.h"
#include "tessera/backend_abi.h"
#include "tessera/tensor.h"

namespace tessera {

// One step: the function of its kernel, conversion or copy, with all arguments.
struct StepCall {
  int32_t (*run)(void* self, tessera_run_context* context, const tessera_buffer* inputs,
                 const tessera_buffer* outputs, tessera_error* error) = nullptr;
  void* self = nullptr;
  const tessera_buffer* inputs = nullptr;
  const tessera_buffer* outputs = nullptr;
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
};

// Consecutive calls for one device, between which nothing has to be done. A call that makes a value
// whose size is known only in the run has a segment of its own. A call whose arguments must be
// checked begins a new segment.
struct StaticSegment {
  // An argument whose size is known only in the run, made before the segment.
  struct DynamicArgument {
    tessera_buffer* buffer = nullptr;
    int owner = 0;  // the buffer that has the memory
    int64_t offset = 0;
  };

  // Work of another device that must be done before the segment begins.
  struct Wait {
    DeviceId device;
    int event = -1;  // of StepProgram::event_devices(); -1: all work of the device's queue
  };

  size_t begin = 0;  // of StepProgram::calls()
  size_t end = 0;
  // A segment of a device that has memory of its own is only enqueued.
  DeviceId device = kHostDevice;
  std::vector<Wait> waits;
  int event = -1;                   // recorded after the last call, for a later wait; -1: none
  bool is_single_threaded = false;  // on one thread, although the pool has more
  bool makes_dynamic = false;
  bool runs_on_values = false;  // its only step is of ExecutionStep::Kind::Values
  // Checks the first call before it is made; nullptr if everything was known when it was planned.
  std::unique_ptr<const ArgumentCheck> check;
  std::vector<DynamicArgument> arguments;
  std::vector<int> released;  // buffers that no later call reads
};

// Memory that differs from run to run: that of an input or of a result.
struct MemorySlot {
  int buffer = 0;
  // The alignment that all steps that use the memory, also through views, accept.
  int64_t alignment_bytes = 1;
  void* data = nullptr;                   // in the host's memory
  tessera_device_position position = {};  // in that of a device
  size_t first_relocation = 0;            // index into the relocations of StepProgram
  size_t last_relocation = 0;             // one past
};

// Refers to the plan from which it was made, which must outlive this object and not move.
class StepProgram {
 public:
  // If `has_several_threads`, steps on one thread get segments of their own.
  StepProgram(const BuiltPlan& built, char* arena, bool has_several_threads);
  ~StepProgram();
  StepProgram(const StepProgram&) = delete;
  StepProgram& operator=(const StepProgram&) = delete;

  // All steps except views.
  std::span<const StepCall> calls() const { return calls_; }
  std::span<const StaticSegment> segments() const { return segments_; }
  // Work of devices that must be done before the run ends.
  std::span<const StaticSegment::Wait> last_waits() const { return last_waits_; }
  // By event: the device in whose queue it is recorded.
  std::span<const DeviceId> event_devices() const { return event_devices_; }
  // The plan's step of a call, and the arguments of the call.
  size_t step_of(size_t call) const { return steps_[call]; }
  std::span<const tessera_buffer> inputs_of(size_t call) const;
  std::span<const tessera_buffer> outputs_of(size_t call) const;

  // Rebinds every arena pointer to another arena, whose contents are undefined. Costs a store for
  // each argument and workspace, and nothing if it is the same arena.
  void move_arena(char* arena);
  // Same as move_arena(), for the arena of a device, by its handle.
  void move_device_arena(DeviceId device, void* handle);

  // Takes over the sizes and offsets of the plan, which PlanFamily::resize() has changed.
  void resize();

  // nullptr if the memory is the same in all runs. `buffer` must have its own memory.
  const MemorySlot* find_slot(int buffer) const;
  // Points all arguments in the slot's memory to `data`. Costs a store for each, and nothing if
  // they point there already.
  void point(const MemorySlot& slot, void* data);
  // Points all arguments in a slot in memory of a device to `position`.
  void point(const MemorySlot& slot, const tessera_device_position& position);
  // For a sparse value, whose size depends on the elements that it stores.
  void set_bytes(const MemorySlot& slot, int64_t bytes);
  // Sets the request of a call for an output: one of TESSERA_REQUEST_.
  void set_request(size_t call, size_t output, int32_t request);

  // Throws the failure of `call`.
  [[noreturn]] void fail(size_t call, const tessera_error& error) const;

 private:
  struct Relocation {
    size_t argument = 0;
    tessera_buffer* buffer = nullptr;
    int64_t offset = 0;
    bool is_whole = false;
  };

  void count_arguments();
  void prepare_devices();
  void add_slots();
  void add_call(size_t step);
  void resolve_call(size_t call);
  void set_function(size_t call);
  void add_to_segment(size_t call, bool has_several_threads);
  StridedCopy copy_of(const ExecutionStep& step) const;
  tessera_buffer make_argument(int buffer, int32_t request);
  StaticSegment::Wait wait_of(int step, DeviceId waiting, size_t before);
  int event_after(int step);
  // nullptr if there is no arena yet.
  char* in_arena(int64_t offset) const { return arena_ == nullptr ? nullptr : arena_ + offset; }
  void collect_relocations();
  void point_to_arena();

  const BuiltPlan& built_;
  char* arena_;
  std::vector<StepCall> calls_;
  std::vector<size_t> steps_;              // by call
  std::vector<tessera_buffer> arguments_;  // inputs, then outputs, of each call in order
  std::vector<int> buffers_;               // by argument
  std::vector<size_t> first_argument_;     // by call, and the end of the last
  std::vector<StridedCopy> copies_;        // by call; empty if it copies nothing
  std::vector<StaticSegment> segments_;
  std::vector<StaticSegment::Wait> last_waits_;
  std::vector<DeviceId> event_devices_;
  std::map<int, int> event_of_step_;
  // Positions in memory of devices, by argument and, after those, by call for its workspace; used
  // only for devices. Calls point to them.
  std::vector<tessera_device_position> positions_;
  std::vector<DeviceCopy> device_copies_;  // by device
  std::vector<void*> device_arenas_;       // by device: the handle to which positions refer
  std::vector<MemorySlot> slots_;
  std::vector<int> slot_of_buffer_;  // -1: none
  std::vector<Relocation> relocations_;
};

}  // namespace tessera
