#include "engine/plan_runner.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/memory.h"
#include "ops/work.h"
#include "tessera/error.h"

namespace tessera {
namespace {

using Kind = PlanBuffer::Kind;

constexpr auto kArenaAlignment = std::align_val_t{4096};

// What a run needs besides inputs and constants; results count, though each run has its own.
int64_t needed_bytes(const ExecutionPlan& plan) {
  int64_t total = plan.arena_bytes;
  for (const PlanBuffer& buffer : plan.buffers) {
    const bool is_result = buffer.kind == Kind::Output && buffer.owner < 0;
    if (is_result) total = ops::saturating_add(total, buffer.bytes);
  }
  return total;
}

void* allocate_arena(const ExecutionPlan& plan) {
  const int64_t available = available_memory_bytes();
  const int64_t needed = needed_bytes(plan);
  void* memory = nullptr;
  if (needed <= available) {
    // At least a byte, so that a null pointer always means "left out".
    memory = ::operator new(static_cast<size_t>(std::max<int64_t>(plan.arena_bytes, 1)),
                            kArenaAlignment, std::nothrow);
  }
  if (memory != nullptr) return memory;
  throw Error(ErrorKind::OutOfMemory, "inner values",
              "expected to need at most the " + std::to_string(available) +
                  " bytes that are available, found a need of " + std::to_string(needed) +
                  " bytes");
}

bool is_aligned(const Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.data()) % kTensorAlignmentBytes == 0;
}

// The buffer that has the memory.
size_t owner_of(const PlanBuffer& buffer, int index) {
  return static_cast<size_t>(buffer.owner < 0 ? index : buffer.owner);
}

bool differs_by_run(Kind kind) {
  return kind == Kind::Input || kind == Kind::Output || kind == Kind::Dynamic;
}

}  // namespace

std::string step_place(const BuiltPlan& built, const ExecutionStep& step) {
  if (step.candidate >= 0) {
    const auto& nodes = built.offers.candidates[static_cast<size_t>(step.candidate)].nodes;
    return place(built.graph[nodes.back()]);
  }
  const PlanBuffer& buffer = built.plan.buffers[static_cast<size_t>(step.inputs[0])];
  return "value '" + built.graph[buffer.value].name + "'";
}

PlanRunner::PlanRunner(BuiltPlan plan, int threads)
    : built_(std::move(plan)), pool_(threads), tensors_(built_.plan.buffers.size()) {
  arena_ = allocate_arena(built_.plan);
  steps_.resize(built_.plan.steps.size());
  for (size_t index = 0; index < steps_.size(); ++index) {
    prepare_step(index);
    if (built_.plan.steps[index].kind != ExecutionStep::Kind::View) running_.push_back(index);
  }
  const bool has_lonely_step =
      std::any_of(built_.plan.steps.begin(), built_.plan.steps.end(),
                  [](const ExecutionStep& step) { return step.threads == 1; });
  if (has_lonely_step && pool_.threads() > 1) one_ = std::make_unique<ThreadPool>(1);
}

PlanRunner::~PlanRunner() { ::operator delete(arena_, kArenaAlignment); }

tessera_buffer PlanRunner::face_of(int index, int32_t request) const {
  const PlanBuffer& buffer = built_.plan.buffers[static_cast<size_t>(index)];
  tessera_buffer face = {};
  face.request = request;
  face.bytes = buffer.bytes;
  if (buffer.type) {
    face.data_type = static_cast<int32_t>(buffer.type->element);
    face.rank = static_cast<int32_t>(buffer.type->dims.size());
    face.dims = buffer.type->dims.data();
  } else {
    face.data_type = static_cast<int32_t>(built_.graph[buffer.value].type.element);
    face.rank = -1;
  }
  if (!buffer.strides.empty()) face.strides = buffer.strides.data();
  if (buffer.kind == Kind::Arena) face.data = static_cast<char*>(arena_) + buffer.offset;
  if (buffer.kind == Kind::Constant) {
    const void* data = built_.constants[static_cast<size_t>(buffer.index)].get();
    face.data = static_cast<char*>(const_cast<void*>(data)) + buffer.offset;
  }
  return face;
}

void PlanRunner::prepare_step(size_t index) {
  const ExecutionStep& step = built_.plan.steps[index];
  StepBuffers& buffers = steps_[index];
  buffers.place = step_place(built_, step);
  const auto add = [&](std::vector<tessera_buffer>& faces, bool is_output, int buffer,
                       int32_t request) {
    const Kind kind = built_.plan.buffers[static_cast<size_t>(buffer)].kind;
    if (differs_by_run(kind)) buffers.patches.push_back({index, is_output, faces.size(), buffer});
    if (is_output && kind == Kind::Dynamic) buffers.has_dynamic_output = true;
    faces.push_back(face_of(buffer, request));
  };
  for (const int input : step.inputs) add(buffers.inputs, false, input, 0);
  for (const PlanOutput& output : step.outputs) {
    add(buffers.outputs, true, output.buffer, output.request);
  }
  if (step.kind == ExecutionStep::Kind::Copy) buffers.copy = prepare_copy(step);
}

StridedCopy PlanRunner::prepare_copy(const ExecutionStep& step) const {
  const PlanBuffer& from = built_.plan.buffers[static_cast<size_t>(step.inputs[0])];
  const PlanBuffer& to = built_.plan.buffers[static_cast<size_t>(step.outputs[0].buffer)];
  if (from.strides.empty() && to.strides.empty()) return plan_copy({to.bytes}, 1, {1}, {1});
  const std::optional<std::vector<int64_t>> dense =
      dense_strides(built_.layouts->name(from.layout), from.type->dims);
  TESSERA_CHECK(dense.has_value(), "strides are told in layouts that have them only");
  return plan_copy(from.type->dims, element_bytes(from.type->element),
                   from.strides.empty() ? *dense : from.strides,
                   to.strides.empty() ? *dense : to.strides);
}

void PlanRunner::bind_inputs(std::span<const Tensor> inputs) {
  TESSERA_CHECK(inputs.size() == built_.graph.inputs.size(), "one tensor for each graph input");
  for (size_t index = 0; index < tensors_.size(); ++index) {
    const PlanBuffer& buffer = built_.plan.buffers[index];
    if (buffer.owner >= 0) continue;
    if (buffer.kind == Kind::Input) {
      const Tensor& given = inputs[static_cast<size_t>(buffer.index)];
      // Backends are promised aligned memory; the caller's may be anywhere.
      tensors_[index] = given.is_empty() || is_aligned(given)
                            ? given
                            : Tensor::copy_of(given.type(), given.dims(), given.data(),
                                              static_cast<size_t>(given.bytes()));
    }
    if (buffer.kind == Kind::Output) {
      // A sparse one is told by its bytes.
      const bool is_sparse = built_.layouts->sparse_form(buffer.layout).has_value();
      tensors_[index] = is_sparse ? Tensor(DataType::UInt8, {buffer.bytes})
                                  : Tensor(buffer.type->element, buffer.type->dims);
    }
  }
}

void PlanRunner::patch(StepBuffers& buffers) {
  for (const Patch& patch : buffers.patches) {
    tessera_buffer& face = (patch.is_output ? buffers.outputs : buffers.inputs)[patch.position];
    const PlanBuffer& buffer = built_.plan.buffers[static_cast<size_t>(patch.buffer)];
    const Tensor& tensor = tensors_[owner_of(buffer, patch.buffer)];
    face.data = const_cast<void*>(tensor.data());
    if (buffer.offset > 0) face.data = static_cast<char*>(face.data) + buffer.offset;
    // One that is fed sparsely is as long as what it stores.
    if (buffer.kind == Kind::Input && buffer.owner < 0 && !tensor.is_empty()) {
      face.bytes = tensor.bytes();
    }
    const bool is_dynamic = buffer.kind == Kind::Dynamic;
    if (!is_dynamic || tensor.is_empty()) continue;
    face.rank = static_cast<int32_t>(tensor.rank());
    face.dims = tensor.dims().data();
    face.bytes = tensor.bytes();
  }
}

void* PlanRunner::allocate_dynamic(size_t step, int32_t output, std::span<const int64_t> dims) {
  const auto& outputs = built_.plan.steps[step].outputs;
  if (output < 0 || static_cast<size_t>(output) >= outputs.size()) return nullptr;
  const int buffer = outputs[static_cast<size_t>(output)].buffer;
  const PlanBuffer& described = built_.plan.buffers[static_cast<size_t>(buffer)];
  if (described.kind != Kind::Dynamic) return nullptr;
  const DataType element = built_.graph[described.value].type.element;
  std::vector<int64_t> sizes(dims.begin(), dims.end());
  if (tensor_bytes(element, sizes) > available_memory_bytes()) return nullptr;
  Tensor& tensor = tensors_[static_cast<size_t>(buffer)];
  tensor = Tensor(element, std::move(sizes));
  return tensor.mutable_data();
}

void PlanRunner::run_step(size_t index, RunContext& context) {
  const ExecutionStep& step = built_.plan.steps[index];
  StepBuffers& buffers = steps_[index];
  if (!buffers.patches.empty()) {
    for (const PlanOutput& output : step.outputs) {
      const bool is_dynamic =
          built_.plan.buffers[static_cast<size_t>(output.buffer)].kind == Kind::Dynamic;
      if (is_dynamic) tensors_[static_cast<size_t>(output.buffer)] = Tensor();
    }
    patch(buffers);
  }
  switch (step.kind) {
    case ExecutionStep::Kind::Kernel:
      context.set_workspace(static_cast<char*>(arena_) + step.workspace_offset,
                            step.workspace_bytes);
      if (buffers.has_dynamic_output) {
        context.set_allocator([this, index](int32_t output, std::span<const int64_t> dims) {
          return allocate_dynamic(index, output, dims);
        });
      }
      built_.kernels[index]->run(buffers.place, context, buffers.inputs.data(),
                                 buffers.outputs.data());
      break;
    case ExecutionStep::Kind::Convert:
      convert(step.conversion, buffers.place, context, buffers.inputs[0], buffers.outputs[0]);
      break;
    case ExecutionStep::Kind::Copy:
      tessera::run(buffers.copy, buffers.inputs[0].data, buffers.outputs[0].data, pool_);
      break;
    case ExecutionStep::Kind::View:
      break;
  }
  for (const PlanOutput& output : step.outputs) {
    const auto buffer = static_cast<size_t>(output.buffer);
    if (built_.plan.buffers[buffer].kind == Kind::Dynamic && tensors_[buffer].is_empty()) {
      throw Error(ErrorKind::DeviceFailed, buffers.place,
                  "its kernel asked for no memory for an output of unknown size");
    }
  }
  for (const int buffer : step.released) tensors_[static_cast<size_t>(buffer)] = Tensor();
}

bool PlanRunner::runs_alone(size_t step) const {
  return one_ != nullptr && built_.plan.steps[step].threads == 1;
}

void PlanRunner::run_range(size_t begin, size_t end, RunContext& context,
                           const PlanWatcher& watcher) {
  for (size_t place = begin; place < end; ++place) {
    const size_t index = running_[place];
    if (!watcher) {
      run_step(index, context);
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    run_step(index, context);
    watcher({index, steps_[index].inputs, steps_[index].outputs, start,
             std::chrono::steady_clock::now() - start});
  }
}

void PlanRunner::run_steps(const PlanWatcher& watcher) {
  const uint64_t seed = runs_++;
  RunContext context(pool_);
  context.set_random_seed(seed);
  size_t begin = 0;
  while (begin < running_.size()) {
    const bool is_alone = runs_alone(running_[begin]);
    size_t end = begin;
    while (end < running_.size() && runs_alone(running_[end]) == is_alone) ++end;
    if (is_alone) {
      RunContext alone(*one_);
      alone.set_random_seed(seed);
      one_->execute([&] { run_range(begin, end, alone, watcher); });
    } else {
      run_range(begin, end, context, watcher);
    }
    begin = end;
  }
}

Tensor PlanRunner::result_of(size_t index, std::span<const Tensor> inputs) const {
  const int number = built_.plan.results[index];
  const PlanBuffer& buffer = built_.plan.buffers[static_cast<size_t>(number)];
  if (buffer.kind == Kind::Constant) return built_.constant_results[index];
  // The caller's own tensor, not an aligned copy of it.
  if (buffer.kind == Kind::Input) return inputs[static_cast<size_t>(buffer.index)];
  const Tensor& tensor = tensors_[owner_of(buffer, number)];
  return buffer.owner < 0 ? tensor : tensor.reshaped(buffer.type->dims);
}

std::vector<Tensor> PlanRunner::run(std::span<const Tensor> inputs, const PlanWatcher& watcher) {
  bind_inputs(inputs);
  // Libraries on the same thread runtime then use this pool's threads and no others.
  pool_.execute([&] { run_steps(watcher); });
  std::vector<Tensor> results;
  for (size_t index = 0; index < built_.plan.results.size(); ++index) {
    results.push_back(result_of(index, inputs));
  }
  for (Tensor& tensor : tensors_) tensor = Tensor();
  return results;
}

}  // namespace tessera
