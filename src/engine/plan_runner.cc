#include "engine/plan_runner.h"

#include <algorithm>
#include <utility>

#include "backend/contract/status.h"
#include "base/containers/at.h"
#include "base/errors/check.h"
#include "base/memory/memory.h"
#include "plan/shared_memory.h"
#include "tessera/error.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = PlanBuffer::Kind;

constexpr size_t kDispatchRuns = 1001;
constexpr std::chrono::milliseconds kDispatchTime{50};

// nullptr if no step asks for one thread, or the pool has only one.
ThreadPool* one_thread(const ExecutionPlan& plan, ExecutionContext& context) {
  const bool has_single_threaded_step =
      std::any_of(plan.steps.begin(), plan.steps.end(),
                  [](const ExecutionStep& step) { return step.threads == 1; });
  return has_single_threaded_step ? context.one_thread() : nullptr;
}

// Must be called before anything refers to the arena.
ExecutionContext& with_reserved_arena(ExecutionContext& context, const BuiltPlan& built) {
  context.reserve_arena(built);
  return context;
}

}  // namespace

std::string step_location(const BuiltPlan& built, const ExecutionStep& step) {
  if (step.candidate >= 0) {
    const auto& nodes = built.offers.candidates[at(step.candidate)].nodes;
    return location_of(built.graph[nodes.back()]);
  }
  const PlanBuffer& buffer = built.plan.buffers[at(step.inputs[0])];
  return "value '" + built.graph[buffer.value].name + "'";
}

PlanRunner::PlanRunner(BuiltPlan plan, ExecutionContext& context,
                       std::vector<StatePorts> state_pairs)
    : PlanRunner(std::move(plan), nullptr, &context, std::move(state_pairs)) {}

PlanRunner::PlanRunner(BuiltPlan plan, RunnerOptions options)
    : PlanRunner(std::move(plan),
                 std::make_unique<ExecutionContext>(options.threads, options.denormals), nullptr,
                 std::move(options.state_pairs)) {
  max_bulk_steps_ = options.max_bulk_steps;
}

PlanRunner::PlanRunner(BuiltPlan plan, std::unique_ptr<ExecutionContext> own,
                       ExecutionContext* context, std::vector<StatePorts> state_pairs)
    : built_(std::move(plan)),
      own_(std::move(own)),
      execution_context_(with_reserved_arena(own_ ? *own_ : *context, built_)),
      one_(one_thread(built_.plan, execution_context_)),
      program_(built_, execution_context_.arena(), one_ != nullptr),
      io_binding_(built_, program_, execution_context_, std::move(state_pairs)),
      context_(execution_context_.pool(), execution_context_.scratch()),
      dynamic_(built_.plan.buffers.size()) {
  error_.struct_size = sizeof(error_);
  value_steps_.resize(built_.plan.steps.size());
  for (size_t step = 0; step < value_steps_.size(); ++step) {
    if (built_.plan.steps[step].kind != ExecutionStep::Kind::Values) continue;
    value_steps_[step] = std::make_unique<ValueStep>(built_, step);
  }
  const auto allocate = [this](int32_t output, std::span<const int64_t> dims) {
    return allocate_dynamic(output, dims);
  };
  context_.set_allocator(allocate);
  if (uses_devices(built_.plan)) add_devices();
  if (one_ == nullptr) return;
  single_thread_context_.emplace(*one_, execution_context_.scratch());
  single_thread_context_->set_allocator(allocate);
}

PlanRunner::~PlanRunner() {
  // Enqueued work may still use constants and the arena.
  for (const auto& run : devices_) {
    if (run->device.explain_unusable().empty()) run->device.abandon_work();
  }
}

std::vector<Tensor> PlanRunner::run(std::span<const Tensor> inputs, const PlanWatcher& watcher) {
  TESSERA_CHECK(inputs.size() == built_.graph.inputs.size(), "one tensor for each graph input");
  io_binding_.begin(inputs);
  run_steps(watcher);
  io_binding_.finish();
  std::vector<Tensor> results = io_binding_.results(dynamic_);
  for (Tensor& tensor : dynamic_) tensor = Tensor();
  io_binding_.end();
  return results;
}

void PlanRunner::run_bound(const PlanWatcher& watcher) {
  io_binding_.begin({});
  run_steps(watcher);
  io_binding_.finish();
  io_binding_.end();
}

void PlanRunner::run_at(std::span<const void* const> inputs, std::span<void* const> results,
                        const PlanWatcher& watcher) {
  io_binding_.begin_at(inputs, results);
  run_steps(watcher);
  io_binding_.finish_at(inputs, results);
}

bool PlanRunner::checks_arguments() const {
  return std::ranges::any_of(program_.segments(),
                             [](const StaticSegment& segment) { return segment.check != nullptr; });
}

bool PlanRunner::resize(PlanFamily& family, PlanFamily::ValueDims dims) {
  if (!family.resize(dims, built_.plan)) return false;
  program_.resize();
  io_binding_.forget_sizes();
  if (built_.plan.arena_bytes > execution_context_.arena_bytes()) {
    execution_context_.reserve_arena(built_);
  }
  return true;
}

void PlanRunner::note_types(PlanFamily::ValueDims dims) {
  for (size_t value = 0; value < dims.size(); ++value) {
    std::optional<Shape>& shape = built_.graph.values[value].type.shape;
    if (!shape || shape->size() != dims[value].size()) continue;
    for (size_t axis = 0; axis < shape->size(); ++axis) {
      if ((*shape)[axis].is_known()) (*shape)[axis] = Dim(dims[value][axis]);
    }
  }
}

void PlanRunner::run_steps(const PlanWatcher& watcher) {
  const ExecutionContext::ActiveRun turn(execution_context_);
  // Another plan may have needed a larger arena since the last run.
  program_.move_arena(execution_context_.arena());
  context_.set_random_seed(execution_context_.seed());
  if (single_thread_context_) single_thread_context_->set_random_seed(execution_context_.seed());
  if (execution_context_.is_nested() && devices_.empty()) {
    // The run is in the pool already.
    context_.set_pool(execution_context_.pool());
    run_segments(watcher);
    return;
  }
  // Libraries that use the same thread runtime then use only the threads of this pool.
  if (devices_.empty()) {
    execution_context_.pool().execute([&] { run_segments(watcher); });
    return;
  }
  prepare_devices();
  try {
    execution_context_.pool().execute([&] {
      run_segments(watcher);
      // One device does its work in order, so copies of its results need no wait before them.
      const bool has_one_device = devices_.size() == 1;
      if (has_one_device && io_binding_.enqueue_copies(devices_[0]->id)) {
        wait_on_host(*devices_[0], nullptr);
      } else {
        wait_for(program_.last_waits(), kHostDevice);
      }
    });
  } catch (...) {
    // Inputs and arena must not be released while enqueued work uses them.
    for (const auto& run : devices_) run->device.abandon_work();
    throw;
  }
}

void PlanRunner::run_segments(const PlanWatcher& watcher) {
  for (const StaticSegment& segment : program_.segments()) {
    if (!segment.waits.empty()) wait_for(segment.waits, segment.device);
    if (segment.device != kHostDevice) {
      run_bulk(segment, watcher);
      continue;
    }
    if (!segment.is_single_threaded) {
      run_segment(segment, context_, watcher);
      continue;
    }
    one_->execute([&] { run_segment(segment, *single_thread_context_, watcher); });
  }
}

void PlanRunner::run_segment(const StaticSegment& segment, RunContext& context,
                             const PlanWatcher& watcher) {
  prepare_dynamic(segment);
  if (segment.check != nullptr) segment.check->run(program_.inputs_of(segment.begin));
  if (segment.runs_on_values) {
    run_on_values(segment, watcher);
    for (const int buffer : segment.released) dynamic_[at(buffer)] = Tensor();
    return;
  }
  if (watcher || execution_context_.has_time_limit()) {
    run_watched(segment.begin, segment.end, context, watcher);
  } else {
    run_calls(segment.begin, segment.end, context);
  }
  if (segment.makes_dynamic) {
    const size_t step = program_.step_of(segment.begin);
    for (const PlanOutput& output : built_.plan.steps[step].outputs) {
      const bool is_dynamic = built_.plan.buffers[at(output.buffer)].kind == Kind::Dynamic;
      if (!is_dynamic || !dynamic_[at(output.buffer)].is_empty()) continue;
      throw Error(ErrorKind::DeviceFailed, step_location(built_, built_.plan.steps[step]),
                  "its kernel asked for no memory for an output of unknown size");
    }
  }
  for (const int buffer : segment.released) dynamic_[at(buffer)] = Tensor();
}

void PlanRunner::run_on_values(const StaticSegment& segment, const PlanWatcher& watcher) {
  const size_t call = segment.begin;
  const Clock::time_point start = Clock::now();
  const bool is_late =
      execution_context_.has_time_limit() && execution_context_.is_past_deadline(start);
  if (is_late || !execution_context_.is_running()) stop_at(call);
  const size_t step = program_.step_of(call);
  value_steps_[step]->run(program_.inputs_of(call), program_.outputs_of(call), dynamic_,
                          io_binding_, execution_context_);
  if (!watcher) return;
  watcher({step, program_.inputs_of(call), program_.outputs_of(call), start, Clock::now() - start});
}

// Sets the arguments of the segment whose sizes became known in this run, and clears the values
// that the segment will make.
void PlanRunner::prepare_dynamic(const StaticSegment& segment) {
  for (const StaticSegment::DynamicArgument& argument : segment.arguments) {
    const Tensor& tensor = dynamic_[at(argument.owner)];
    argument.buffer->data = static_cast<char*>(const_cast<void*>(tensor.data())) + argument.offset;
    argument.buffer->rank = static_cast<int32_t>(tensor.rank());
    argument.buffer->dims = tensor.dims().data();
    argument.buffer->bytes = tensor.bytes();
  }
  if (!segment.makes_dynamic) return;
  dynamic_step_ = program_.step_of(segment.begin);
  for (const PlanOutput& output : built_.plan.steps[dynamic_step_].outputs) {
    dynamic_[at(output.buffer)] = Tensor();
  }
}

PlanRunner::Stop PlanRunner::call_all(std::span<const StepCall> calls, RunContext& context) {
  tessera_run_context* const c_context = context.abi();
  error_.kind = TESSERA_INTERNAL;
  error_.message[0] = '\0';
  int32_t status = TESSERA_OK;
  const StepCall* call = calls.data();
  const StepCall* const last = call + calls.size();
  try {
    for (; call != last; ++call) {
      if (!execution_context_.is_running()) break;
      c_context->workspace = call->workspace;
      c_context->workspace_bytes = call->workspace_bytes;
      status = call->run(call->self, c_context, call->inputs, call->outputs, &error_);
      if (status != TESSERA_OK || context.has_failed()) break;
    }
  } catch (...) {
    status = report(&error_, TESSERA_INTERNAL, "an exception left its kernel");
  }
  status = context.checked(status, &error_);
  return {static_cast<size_t>(call - calls.data()), status};
}

void PlanRunner::run_calls(size_t begin, size_t end, RunContext& context) {
  const Stop stop = call_all(program_.calls().subspan(begin, end - begin), context);
  if (stop.status != TESSERA_OK) program_.fail(begin + stop.call, error_);
  if (begin + stop.call != end) stop_at(begin + stop.call);
}

// Like run_calls(), but call by call, with the time of each.
void PlanRunner::run_watched(size_t begin, size_t end, RunContext& context,
                             const PlanWatcher& watcher) {
  for (size_t call = begin; call < end; ++call) {
    const Clock::time_point start = Clock::now();
    if (execution_context_.has_time_limit() && execution_context_.is_past_deadline(start))
      stop_at(call);
    run_calls(call, call + 1, context);
    if (!watcher) continue;
    watcher({program_.step_of(call), program_.inputs_of(call), program_.outputs_of(call), start,
             Clock::now() - start});
  }
}

double PlanRunner::measure_dispatch_ns() {
  std::vector<StepCall> calls(program_.calls().begin(), program_.calls().end());
  if (calls.empty()) return 0;
  for (StepCall& call : calls) {
    call.run = [](void*, tessera_run_context*, const tessera_buffer*, const tessera_buffer*,
                  tessera_error*) -> int32_t { return TESSERA_OK; };
  }
  const ExecutionContext::ActiveRun turn(execution_context_);
  std::vector<double> times;
  const Clock::time_point begin = Clock::now();
  while (times.size() < kDispatchRuns && Clock::now() - begin < kDispatchTime) {
    const Clock::time_point start = Clock::now();
    call_all(calls, context_);
    times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  }
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle / static_cast<double>(calls.size());
}

void PlanRunner::stop_at(size_t call) const {
  const std::string where = step_location(built_, built_.plan.steps[program_.step_of(call)]);
  if (execution_context_.is_cancelled()) {
    throw Error(ErrorKind::Cancelled, where, "the run was cancelled before this step");
  }
  throw Error(
      ErrorKind::Cancelled, where,
      "expected the run to end within " +
          std::to_string(std::chrono::duration<double>(execution_context_.time_limit()).count()) +
          " s, found this step still to do");
}

void* PlanRunner::allocate_dynamic(int32_t output, std::span<const int64_t> dims) {
  const auto& outputs = built_.plan.steps[dynamic_step_].outputs;
  if (output < 0 || static_cast<size_t>(output) >= outputs.size()) return nullptr;
  const int buffer = outputs[static_cast<size_t>(output)].buffer;
  const PlanBuffer& described = built_.plan.buffers[at(buffer)];
  if (described.kind != Kind::Dynamic) return nullptr;
  const DataType element = built_.graph[described.value].type.element;
  std::vector<int64_t> sizes(dims.begin(), dims.end());
  if (!memory_check_.allows(tensor_bytes(element, sizes))) return nullptr;
  Tensor& tensor = dynamic_[at(buffer)];
  tensor = Tensor(element, std::move(sizes));
  return tensor.mutable_data();
}

}  // namespace tessera
