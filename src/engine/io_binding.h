// In whose memory the inputs and results of a run lie: in the caller's where he bound some, else in
// memory that is new in each run.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/built_plan.h"
#include "engine/step_program.h"
#include "tessera/tensor.h"

namespace tessera {

// A result that may be written over an input: what a network remembers from run to run.
struct StatePorts {
  size_t input = 0;   // of the graph
  size_t result = 0;  // of the plan
};

// Points the arguments of a program there. For one thread at a time. Inputs are only read, unless
// they are the memory of a state pair's result; where a result may not be written over its input
// while steps still read it, it is written elsewhere and copied at the end. So is what begins at an
// address that its kernels do not take.
class IoBinding {
 public:
  // Both must outlive this and stay where they are.
  IoBinding(const BuiltPlan& built, StepProgram& program, std::vector<StatePorts> pairs);
  IoBinding(const IoBinding&) = delete;
  IoBinding& operator=(const IoBinding&) = delete;

  // Memory for all later runs; an empty tensor ends that. The caller has checked types. Throws
  // InvalidArgument for a result whose size only running shows.
  void bind_input(size_t input, Tensor tensor);
  void bind_result(size_t result, Tensor tensor);
  bool is_input_bound(size_t input) const { return !inputs_[input].bound.is_empty(); }
  bool is_result_bound(size_t result) const { return !results_[result].bound.is_empty(); }

  // Before a run. `given` by input, empty ones as bound; or none at all, where everything is bound:
  // then nothing is allocated from the second run on. Throws InvalidArgument where memory overlaps
  // that may not.
  void begin(std::span<const Tensor> given);
  // After it: what has to be copied into bound memory.
  void finish();
  // Then: all results, `dynamic` being those whose size the run has shown, by buffer. Bound ones
  // are the tensors that were bound.
  std::vector<Tensor> results(std::span<const Tensor> dynamic);
  // Lets go of what belonged to one run.
  void end();

 private:
  struct Input {
    const MemorySlot* slot = nullptr;
    bool is_sparse = false;
    Tensor bound;
    Tensor staging;               // where the memory begins at an address that kernels do not take
    const Tensor* now = nullptr;  // of this run, as the caller gave it, or what is bound
    bool is_staged = false;
  };
  struct Result {
    int buffer = 0;
    int memory = -1;  // index into memories_; -1: an input, a constant, or of unknown size
    Tensor bound;
    Tensor staging;  // of an input that is a result written over another input
    bool is_staged = false;
  };
  // Of one or more results that are the same value.
  struct OutputMemory {
    const MemorySlot* slot = nullptr;
    std::vector<size_t> results;
    Tensor own;            // new in each run, or staging
    int direct = -1;       // the result in whose bound memory the steps write; -1: in `own`
    bool is_kept = false;  // `own` is staging, for all runs
  };
  // How a result may be written over its input.
  struct StateAccess {
    StatePorts pair;
    bool is_direct = false;    // all have read the input by then
    bool is_in_place = false;  // the one who writes is the last to read, and can do it in place
    size_t call = 0;           // then: who that is
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
  void check_overlaps() const;
  bool is_pair(size_t input, size_t result) const;
  Tensor new_memory(const OutputMemory& memory) const;
  const void* source_of(const Result& result) const;
  int input_of(const Result& result) const;
  std::string input_name(size_t input) const;
  std::string result_name(size_t result) const;

  const BuiltPlan& built_;
  StepProgram& program_;
  std::vector<Input> inputs_;
  std::vector<Result> results_;
  std::vector<OutputMemory> memories_;
  std::vector<StateAccess> states_;
  bool is_arranged_ = false;  // for what is bound alone, and nothing changed since
};

}  // namespace tessera
