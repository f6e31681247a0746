// Decides in which memory the inputs and results of a run are: in memory that the caller bound, or
// in memory that nobody else refers to: new, or that of an earlier result that was dropped.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/memory/reused_memory.h"
#include "engine/built_plan.h"
#include "engine/execution_context.h"
#include "engine/step_program.h"
#include "tessera/tensor.h"

namespace tessera {

// A result that is written over an input: for example state that a network keeps from run to run.
struct StatePorts {
  size_t input = 0;   // of the graph
  size_t result = 0;  // of the plan
};

// Points the arguments of a program to the memory of inputs and results. Not thread-safe. Inputs
// are only read, unless they share memory with a result. If that must not be written over the input
// because steps still read the input, or because only a part of the memory is the same, it is
// written elsewhere and copied at the end. Host memory at an address that the kernels do not accept
// is replaced by an aligned copy.
class IoBinding {
 public:
  // All must outlive this object and not move. `context` has the queues for copies on devices.
  IoBinding(const BuiltPlan& built, StepProgram& program, ExecutionContext& context,
            std::vector<StatePorts> pairs);
  IoBinding(const IoBinding&) = delete;
  IoBinding& operator=(const IoBinding&) = delete;

  // Binds memory for all later runs; an empty tensor removes the binding. The caller has checked
  // the types. Throws InvalidArgument for a result whose size is known only in the run, and for
  // memory of another device than the plan expects.
  void bind_input(size_t input, Tensor tensor);
  void bind_result(size_t result, Tensor tensor);
  bool is_input_bound(size_t input) const { return !inputs_[input].bound.is_empty(); }
  bool is_result_bound(size_t result) const { return !results_[result].bound.is_empty(); }

  // Must be called after the sizes of the plan have changed. Nothing may be bound but inputs that
  // have their new sizes.
  void forget_sizes();

  // Must be called before a run. `given` has a tensor for each input, an empty one if the input is
  // bound; or `given` itself is empty if everything is bound: then nothing is allocated from the
  // second run on. Throws InvalidArgument if the memory of two results overlaps.
  void begin(std::span<const Tensor> given);
  // Enqueues what has to be copied into bound memory of `device`, after all work that writes its
  // results was enqueued in its queue. Returns whether there is anything: then the caller waits for
  // the queue before finish().
  bool enqueue_copies(DeviceId device);
  // The tensor of an input in the active run.
  const Tensor& input(size_t input) const { return *inputs_[input].now; }

  // Whether begin_at() is possible: inputs and results are dense, in the host's memory, and have
  // known sizes.
  bool takes_addresses() const;
  // In place of begin() and finish(), for a run whose elements are at these addresses; inputs that
  // are missing in the list stay where they were. Nothing may be bound but those. A result must not
  // overlap an input.
  void begin_at(std::span<const void* const> inputs, std::span<void* const> results);
  void finish_at(std::span<const void* const> inputs, std::span<void* const> results);

  // Must be called after the run. Copies what else has to be copied into bound memory.
  void finish();
  // Returns all results; must be called after finish(). `dynamic` has, by buffer, the results whose
  // sizes became known in the run. For a bound result, returns the bound tensor.
  std::vector<Tensor> results(std::span<const Tensor> dynamic);
  // Releases the memory of the run.
  void end();

 private:
  struct Input {
    const MemorySlot* slot = nullptr;
    bool is_sparse = false;
    Tensor bound;
    Tensor staging;               // an aligned copy, if kernels do not accept the address
    const Tensor* now = nullptr;  // of this run: given by the caller, or `bound`
    bool is_staged = false;
  };
  struct Result {
    int buffer = 0;
    int memory = -1;  // index into memories_; -1: an input, a constant, or of unknown size
    Tensor bound;
    Tensor staging;  // a copy, if the result is an input and memory of inputs is written to
    bool is_staged = false;
  };
  // The memory of one or more results that are the same value.
  struct OutputMemory {
    const MemorySlot* slot = nullptr;
    std::vector<size_t> results;
    Tensor own;            // of this run alone, or staging
    RecycledMemory runs;   // from which `own` is taken
    int direct = -1;       // the result to whose bound memory the steps write; -1: to `own`
    bool is_kept = false;  // `own` is staging memory for all runs
  };
  // How a result may be written over the input of its state pair.
  struct StateAccess {
    StatePorts pair;
    bool is_direct = false;    // all steps have read the input before
    bool is_in_place = false;  // the writing step is the last reader and can work in place
    size_t call = 0;           // if so: the call that writes, and its output
    size_t output = 0;
  };

  void add_result(size_t result, std::unordered_map<const MemorySlot*, size_t>& memory_of_slot);
  StateAccess access_of(const StatePorts& pair) const;
  bool can_be_in_place(const StateAccess& access, int input_buffer) const;
  void arrange(std::span<const Tensor> given);
  void arrange_input(Input& input);
  void arrange_memory(OutputMemory& memory);
  void arrange_input_result(size_t result);
  bool is_direct(size_t result, const MemorySlot& slot);
  void check_overlaps();
  bool is_pair(size_t input, size_t result) const;
  Tensor new_memory(OutputMemory& memory) const;
  Tensor new_staging(const Tensor& like) const;
  const Tensor& source_of(const Result& result) const;
  bool is_on_one_device(const StateAccess& access) const;
  void check_memory(const Tensor& tensor, int buffer, const std::string& where) const;
  std::string step_at(int buffer) const;
  void point(const MemorySlot& slot, Tensor& memory);
  void copy_elements(const Tensor& from, Tensor& to);
  Tensor copy_of(const Tensor& from, const Tensor& like);
  void finish_copies();
  template <class Which>
  void copy_results(const Which& which);
  DeviceId device_of(const Result& result) const;
  int input_of(const Result& result) const;
  std::string input_name(size_t input) const;
  std::string result_name(size_t result) const;

  const BuiltPlan& built_;
  StepProgram& program_;
  ExecutionContext& context_;
  std::vector<Input> inputs_;
  std::vector<Result> results_;
  std::vector<OutputMemory> memories_;
  std::vector<StateAccess> states_;
  std::vector<DeviceContext*> copying_;  // devices in whose queues copies were enqueued
  std::optional<DeviceId> copied_on_;    // by enqueue_copies() in this run
  bool is_arranged_ = false;             // for bound memory alone, and unchanged since then
};

}  // namespace tessera
