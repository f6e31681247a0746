// A plan's steps as runs execute them: arrays whose arguments are resolved before the first run.
// plan_runner.h goes through them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/argument_check.h"
#include "engine/built_plan.h"
#include "engine/strided_copy.h"
#include "tessera/backend_abi.h"
#include "tessera/tensor.h"

namespace tessera {

// One step: a function of its kernel, of its conversion, or of a copy, with all that it gets.
struct StepCall {
  int32_t (*run)(void* self, tessera_run_context* context, const tessera_buffer* inputs,
                 const tessera_buffer* outputs, tessera_error* error) = nullptr;
  void* self = nullptr;
  const tessera_buffer* inputs = nullptr;
  const tessera_buffer* outputs = nullptr;
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
};

// Calls in a row between which nothing has to be done. One that makes a value whose size only
// running shows is alone in its region, and so ends the one before; so does one whose arguments
// have to be checked.
struct StaticSegment {
  // An argument that is a value of such a size, made before the region.
  struct DynamicArgument {
    tessera_buffer* face = nullptr;
    int owner = 0;  // the buffer that has the memory
    int64_t offset = 0;
  };

  size_t begin = 0;  // of StepProgram::calls()
  size_t end = 0;
  bool is_alone = false;  // on one thread, where the pool has more
  bool makes_dynamic = false;
  // Of the first call, before it is made; null where all was known when it was planned.
  std::unique_ptr<const ArgumentCheck> check;
  std::vector<DynamicArgument> arguments;
  std::vector<int> released;  // buffers that nothing reads any more
};

// Memory that differs from run to run: of an input, or of a result.
struct MemorySlot {
  int buffer = 0;
  // That all steps and views can live with which use the memory.
  int64_t alignment_bytes = 1;
  void* data = nullptr;
  size_t first_patch = 0;  // of StepProgram's patches
  size_t last_patch = 0;   // one past
};

class BranchStep;

// Refers to the plan that it was made of, which must outlive it and stay where it is.
class StepProgram {
 public:
  // `has_several_threads`: steps that are for one thread then are regions of their own.
  StepProgram(const BuiltPlan& built, char* arena, bool has_several_threads);
  ~StepProgram();
  StepProgram(const StepProgram&) = delete;
  StepProgram& operator=(const StepProgram&) = delete;

  // Those that do something: all steps but views.
  std::span<const StepCall> calls() const { return calls_; }
  std::span<const StaticSegment> regions() const { return regions_; }
  // Of a call, the plan's step and its arguments.
  size_t step_of(size_t call) const { return steps_[call]; }
  std::span<const tessera_buffer> inputs_of(size_t call) const;
  std::span<const tessera_buffer> outputs_of(size_t call) const;

  // Has all that lies in the arena lie in another one, whose contents are of no use. A store for
  // each argument and workspace, and none where it does so already.
  void move_arena(char* arena);

  // Null for a buffer whose memory does not differ. By the buffer that has the memory.
  const MemorySlot* find_slot(int buffer) const;
  // Has all arguments that lie in a slot's memory point there: a store for each, and none where it
  // does so already.
  void point(const MemorySlot& slot, void* data);
  // For a sparse one, which is as long as what it stores.
  void set_bytes(const MemorySlot& slot, int64_t bytes);
  // What a call shall do with an output: one of TESSERA_REQUEST_.
  void set_request(size_t call, size_t output, int32_t request);

  // Throws the failure that `call` ended with.
  [[noreturn]] void fail(size_t call, const tessera_error& error) const;

 private:
  struct Relocation {
    tessera_buffer* face = nullptr;
    int64_t offset = 0;
    bool is_whole = false;
  };

  void count_arguments();
  void add_slots();
  void add_call(size_t step);
  void add_argument(int buffer, int32_t request);
  void resolve_call(size_t call);
  void add_to_region(size_t call, bool has_several_threads);
  StridedCopy copy_of(const ExecutionStep& step) const;
  tessera_buffer face_of(int buffer, int32_t request) const;
  // Null where there is no arena yet.
  char* in_arena(int64_t offset) const { return arena_ == nullptr ? nullptr : arena_ + offset; }
  void collect_patches();

  const BuiltPlan& built_;
  char* arena_;
  std::vector<StepCall> calls_;
  std::vector<size_t> steps_;          // by call
  std::vector<tessera_buffer> faces_;  // inputs, then outputs, of all calls in order
  std::vector<int> buffers_;           // by face
  std::vector<size_t> first_faces_;    // by call, and one more
  std::vector<StridedCopy> copies_;    // by call; empty for those that copy nothing
  std::vector<std::unique_ptr<BranchStep>> branches_;
  std::vector<StaticSegment> regions_;
  std::vector<MemorySlot> slots_;
  std::vector<int> slot_of_buffer_;  // -1: none
  std::vector<Relocation> relocations_;
};

}  // namespace tessera
