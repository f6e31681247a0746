#include "engine/step_program.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "backend/contract/run_context.h"
#include "backend/contract/status.h"
#include "base/containers/at.h"
#include "base/errors/check.h"
#include "plan/shared_memory.h"

namespace tessera {
namespace {

using Kind = PlanBuffer::Kind;

// The place of a failure of a kernel: the node of its group that the message begins with, else the
// place of the step.
std::string failed_location(const BuiltPlan& built, const ExecutionStep& step,
                            std::string_view message) {
  if (message.empty()) return step_location(built, step);
  for (const NodeId node : built.offers.candidates[at(step.candidate)].nodes) {
    std::string location = location_of(built.graph[node]);
    // A message that is too long is cut.
    if (message.starts_with(location + ": ") || location.starts_with(message)) return location;
  }
  return step_location(built, step);
}

bool differs_by_run(Kind kind) { return kind == Kind::Input || kind == Kind::Output; }

// A StepCall::run; `self` is the StridedCopy.
int32_t run_copy(void* self, tessera_run_context* context, const tessera_buffer* inputs,
                 const tessera_buffer* outputs, tessera_error* error) {
  return serve_plugin(error, [&] {
    run(*static_cast<const StridedCopy*>(self), inputs[0].data, outputs[0].data,
        RunContext::pool_of(context));
  });
}

}  // namespace

StepProgram::StepProgram(const BuiltPlan& built, char* arena, bool has_several_threads)
    : built_(built), arena_(arena), slot_of_buffer_(built.plan.buffers.size(), -1) {
  count_arguments();
  add_slots();
  for (size_t step = 0; step < built_.plan.steps.size(); ++step) {
    if (built_.plan.steps[step].kind != ExecutionStep::Kind::View) add_call(step);
  }
  first_argument_.push_back(buffers_.size());
  const bool has_devices = uses_devices(built_.plan);
  if (has_devices) prepare_devices();
  for (size_t call = 0; call < calls_.size(); ++call) {
    resolve_call(call);
    add_to_segment(call, has_several_threads);
  }
  for (const int wait : built_.plan.last_waits) {
    last_waits_.push_back(wait_of(wait, kHostDevice, built_.plan.steps.size()));
  }
  collect_relocations();
}

// Calls point to positions and copies, so these vectors must not reallocate. Events must be known
// before the segments are made.
void StepProgram::prepare_devices() {
  const ExecutionPlan& plan = built_.plan;
  positions_.resize(buffers_.size() + calls_.size());
  device_arenas_.resize(built_.layouts->device_count() - 1, nullptr);
  for (size_t device = 1; device < built_.layouts->device_count(); ++device) {
    device_copies_.push_back(
        {&built_.layouts->device(DeviceId{static_cast<int32_t>(device)}).abi()});
  }
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    for (const int wait : plan.steps[index].waits) wait_of(wait, plan.steps[index].device, index);
  }
  for (const int wait : plan.last_waits) wait_of(wait, kHostDevice, plan.steps.size());
}

// The wait of a step of device `waiting`, at index `before`, for an earlier step.
StaticSegment::Wait StepProgram::wait_of(int step, DeviceId waiting, size_t before) {
  const DeviceId device = built_.plan.steps[at(step)].device;
  const auto is_of_device = [&](const ExecutionStep& other) {
    return other.device == device && other.kind != ExecutionStep::Kind::View;
  };
  const auto first = built_.plan.steps.begin();
  const bool is_last =
      std::none_of(first + step + 1, first + static_cast<ptrdiff_t>(before), is_of_device);
  // If nothing was enqueued after the step, the host can wait for the whole queue.
  if (waiting == kHostDevice && is_last) return {device, -1};
  return {device, event_after(step)};
}

int StepProgram::event_after(int step) {
  const auto [event, is_new] =
      event_of_step_.try_emplace(step, static_cast<int>(event_devices_.size()));
  if (is_new) event_devices_.push_back(built_.plan.steps[at(step)].device);
  return event->second;
}

StepProgram::~StepProgram() = default;

// Calls point to their arguments and copies, so these vectors must not reallocate.
void StepProgram::count_arguments() {
  size_t count = 0;
  for (const ExecutionStep& step : built_.plan.steps) {
    if (step.kind != ExecutionStep::Kind::View) count += step.inputs.size() + step.outputs.size();
  }
  arguments_.reserve(count);
  calls_.reserve(built_.plan.steps.size());
  copies_.reserve(built_.plan.steps.size());
}

void StepProgram::add_slots() {
  const ExecutionPlan& plan = built_.plan;
  for (size_t buffer = 0; buffer < plan.buffers.size(); ++buffer) {
    if (plan.buffers[buffer].owner >= 0 || !differs_by_run(plan.buffers[buffer].kind)) continue;
    slot_of_buffer_[buffer] = static_cast<int>(slots_.size());
    slots_.push_back({.buffer = static_cast<int>(buffer)});
  }
  const auto note = [&](const ExecutionStep& step, bool is_output, size_t position, int buffer) {
    const int slot = slot_of_buffer_[at(owner_of(plan, buffer))];
    if (slot < 0) return;
    int64_t& alignment = slots_[at(slot)].alignment_bytes;
    alignment = std::max(alignment,
                         requirements_of(step, built_.offers, is_output, position).alignment_bytes);
  };
  for (const ExecutionStep& step : plan.steps) {
    for (size_t position = 0; position < step.inputs.size(); ++position) {
      note(step, false, position, step.inputs[position]);
    }
    for (size_t position = 0; position < step.outputs.size(); ++position) {
      note(step, true, position, step.outputs[position].buffer);
    }
  }
}

void StepProgram::add_call(size_t step) {
  steps_.push_back(step);
  calls_.emplace_back();
  first_argument_.push_back(buffers_.size());
  const ExecutionStep& planned = built_.plan.steps[step];
  for (const int input : planned.inputs) buffers_.push_back(input);
  for (const PlanOutput& output : planned.outputs) buffers_.push_back(output.buffer);
}

void StepProgram::set_function(size_t index) {
  const ExecutionStep& step = built_.plan.steps[steps_[index]];
  StepCall& call = calls_[index];
  StridedCopy& copy = copies_.emplace_back();
  switch (step.kind) {
    case ExecutionStep::Kind::Kernel: {
      const tessera_kernel& kernel = built_.kernels[steps_[index]]->abi();
      call.run = kernel.run;
      call.self = kernel.self;
      break;
    }
    case ExecutionStep::Kind::Convert:
      call.run = step.conversion.convert;
      call.self = step.conversion.self;
      break;
    case ExecutionStep::Kind::Copy:
      if (step.device != kHostDevice) {
        call.run = copy_on_device;
        call.self = &device_copies_[at(step.device.index - 1)];
        break;
      }
      copy = copy_of(step);
      call.run = run_copy;
      call.self = &copy;
      break;
    case ExecutionStep::Kind::Values:
      // PlanRunner runs it; measuring the overhead of calls does not.
      call.run = [](void*, tessera_run_context*, const tessera_buffer*, const tessera_buffer*,
                    tessera_error*) -> int32_t { return TESSERA_OK; };
      break;
    case ExecutionStep::Kind::View:
      TESSERA_CHECK(false, "views are no calls");
  }
}

void StepProgram::resolve_call(size_t index) {
  const ExecutionStep& step = built_.plan.steps[steps_[index]];
  StepCall& call = calls_[index];
  call.inputs = arguments_.data() + arguments_.size();
  for (const int input : step.inputs) arguments_.push_back(make_argument(input, 0));
  call.outputs = arguments_.data() + arguments_.size();
  for (const PlanOutput& output : step.outputs) {
    arguments_.push_back(make_argument(output.buffer, output.request));
  }
  call.workspace = in_arena(step.workspace_offset);
  if (step.device != kHostDevice) {
    tessera_device_position& workspace = positions_[buffers_.size() + index];
    workspace.offset_bytes = step.workspace_offset;
    call.workspace = &workspace;
  }
  call.workspace_bytes = step.workspace_bytes;
  set_function(index);
}

// Of the argument that is added next.
tessera_buffer StepProgram::make_argument(int index, int32_t request) {
  const PlanBuffer& buffer = built_.plan.buffers[at(index)];
  tessera_buffer argument = {};
  argument.request = request;
  argument.bytes = buffer.bytes;
  if (buffer.type) {
    argument.data_type = static_cast<int32_t>(buffer.type->element);
    argument.rank = static_cast<int32_t>(buffer.type->dims.size());
    argument.dims = buffer.type->dims.data();
  } else {
    argument.data_type = static_cast<int32_t>(built_.graph[buffer.value].type.element);
    argument.rank = -1;
  }
  if (!buffer.strides.empty()) argument.strides = buffer.strides.data();
  if (buffer.device != kHostDevice) {
    tessera_device_position& position = positions_[arguments_.size()];
    position.offset_bytes = buffer.offset;
    if (buffer.kind == Kind::Constant) {
      position.handle = const_cast<void*>(built_.constants[at(buffer.index)].get());
    }
    argument.data = &position;
    argument.device = built_.layouts->device(buffer.device).index() + 1;
    return argument;
  }
  if (buffer.kind == Kind::Arena) argument.data = in_arena(buffer.offset);
  if (buffer.kind == Kind::Constant) {
    const void* data = built_.constants[at(buffer.index)].get();
    argument.data = static_cast<char*>(const_cast<void*>(data)) + buffer.offset;
  }
  return argument;
}

StridedCopy StepProgram::copy_of(const ExecutionStep& step) const {
  const PlanBuffer& from = built_.plan.buffers[at(step.inputs[0])];
  const PlanBuffer& to = built_.plan.buffers[at(step.outputs[0].buffer)];
  if (from.strides.empty() && to.strides.empty()) return plan_copy({to.bytes}, 1, {1}, {1});
  const std::optional<std::vector<int64_t>> dense =
      dense_strides(built_.layouts->name(from.layout), from.type->dims);
  TESSERA_CHECK(dense.has_value(), "strides are told in layouts that have them only");
  return plan_copy(from.type->dims, element_bytes(from.type->element),
                   from.strides.empty() ? *dense : from.strides,
                   to.strides.empty() ? *dense : to.strides);
}

void StepProgram::add_to_segment(size_t index, bool has_several_threads) {
  const ExecutionPlan& plan = built_.plan;
  const ExecutionStep& step = plan.steps[steps_[index]];
  const bool is_single_threaded =
      has_several_threads && step.threads == 1 && step.device == kHostDevice;
  const bool makes_dynamic =
      std::any_of(step.outputs.begin(), step.outputs.end(), [&](const PlanOutput& output) {
        return plan.buffers[at(output.buffer)].kind == Kind::Dynamic;
      });
  const bool runs_on_values = step.kind == ExecutionStep::Kind::Values;
  std::unique_ptr<const ArgumentCheck> check = ArgumentCheck::of(built_, step);
  const bool continues =
      !segments_.empty() && segments_.back().device == step.device && step.waits.empty() &&
      segments_.back().event < 0 && segments_.back().is_single_threaded == is_single_threaded &&
      !segments_.back().makes_dynamic && segments_.back().released.empty() && !makes_dynamic &&
      check == nullptr && !runs_on_values && !segments_.back().runs_on_values;
  if (!continues) {
    segments_.push_back({.begin = index,
                         .device = step.device,
                         .is_single_threaded = is_single_threaded,
                         .makes_dynamic = makes_dynamic,
                         .runs_on_values = runs_on_values,
                         .check = std::move(check)});
  }
  StaticSegment& segment = segments_.back();
  segment.end = index + 1;
  for (const int wait : step.waits) {
    segment.waits.push_back(wait_of(wait, step.device, steps_[index]));
  }
  const auto event = event_of_step_.find(static_cast<int>(steps_[index]));
  if (event != event_of_step_.end()) segment.event = event->second;
  segment.released = step.released;
  for (size_t position = 0; position < step.inputs.size(); ++position) {
    const PlanBuffer& buffer = plan.buffers[at(step.inputs[position])];
    if (buffer.kind != Kind::Dynamic) continue;
    segment.arguments.push_back({.buffer = &arguments_[first_argument_[index] + position],
                                 .owner = owner_of(plan, step.inputs[position]),
                                 .offset = buffer.owner < 0 ? 0 : buffer.offset});
  }
}

void StepProgram::move_arena(char* arena) {
  if (arena == arena_) return;
  arena_ = arena;
  point_to_arena();
}

// Arguments refer to the dimensions of the plan, and no argument of a plan with a family has an
// offset in memory that differs from run to run.
void StepProgram::resize() {
  for (size_t argument = 0; argument < arguments_.size(); ++argument) {
    arguments_[argument].bytes = built_.plan.buffers[at(buffers_[argument])].bytes;
  }
  for (size_t call = 0; call < calls_.size(); ++call) {
    const ExecutionStep& step = built_.plan.steps[steps_[call]];
    calls_[call].workspace_bytes = step.workspace_bytes;
    if (step.kind == ExecutionStep::Kind::Copy) copies_[call] = copy_of(step);
  }
  point_to_arena();
}

void StepProgram::point_to_arena() {
  for (size_t argument = 0; argument < arguments_.size(); ++argument) {
    const PlanBuffer& buffer = built_.plan.buffers[at(buffers_[argument])];
    const bool is_of_host = buffer.device == kHostDevice;
    if (buffer.kind == Kind::Arena && is_of_host) {
      arguments_[argument].data = in_arena(buffer.offset);
    }
  }
  for (size_t call = 0; call < calls_.size(); ++call) {
    const ExecutionStep& step = built_.plan.steps[steps_[call]];
    if (step.device == kHostDevice) calls_[call].workspace = in_arena(step.workspace_offset);
  }
}

void StepProgram::move_device_arena(DeviceId device, void* handle) {
  void*& current = device_arenas_[at(device.index - 1)];
  if (current == handle) return;
  current = handle;
  for (size_t argument = 0; argument < arguments_.size(); ++argument) {
    const PlanBuffer& buffer = built_.plan.buffers[at(buffers_[argument])];
    const bool is_in_arena = buffer.kind == Kind::Arena && buffer.device == device;
    if (is_in_arena) positions_[argument].handle = handle;
  }
  for (size_t call = 0; call < calls_.size(); ++call) {
    const bool is_of_device = built_.plan.steps[steps_[call]].device == device;
    if (is_of_device) positions_[buffers_.size() + call].handle = handle;
  }
}

// The relocations of one slot are contiguous.
void StepProgram::collect_relocations() {
  std::vector<std::vector<size_t>> arguments_of(slots_.size());
  for (size_t argument = 0; argument < arguments_.size(); ++argument) {
    const int slot = slot_of_buffer_[at(owner_of(built_.plan, buffers_[argument]))];
    if (slot >= 0) arguments_of[at(slot)].push_back(argument);
  }
  for (size_t index = 0; index < slots_.size(); ++index) {
    MemorySlot& slot = slots_[index];
    slot.first_relocation = relocations_.size();
    for (const size_t argument : arguments_of[index]) {
      const PlanBuffer& buffer = built_.plan.buffers[at(buffers_[argument])];
      const bool is_whole = buffer.owner < 0;
      relocations_.push_back(
          {argument, &arguments_[argument], is_whole ? 0 : buffer.offset, is_whole});
    }
    slot.last_relocation = relocations_.size();
  }
}

std::span<const tessera_buffer> StepProgram::inputs_of(size_t call) const {
  return {calls_[call].inputs, calls_[call].outputs};
}

std::span<const tessera_buffer> StepProgram::outputs_of(size_t call) const {
  return {calls_[call].outputs, built_.plan.steps[steps_[call]].outputs.size()};
}

const MemorySlot* StepProgram::find_slot(int buffer) const {
  const int slot = slot_of_buffer_[at(buffer)];
  return slot < 0 ? nullptr : &slots_[at(slot)];
}

void StepProgram::point(const MemorySlot& slot, void* data) {
  if (slot.data == data) return;
  slots_[at(slot_of_buffer_[at(slot.buffer)])].data = data;
  for (size_t index = slot.first_relocation; index < slot.last_relocation; ++index) {
    const Relocation& relocation = relocations_[index];
    relocation.buffer->data =
        data == nullptr ? nullptr : static_cast<char*>(data) + relocation.offset;
  }
}

void StepProgram::point(const MemorySlot& slot, const tessera_device_position& position) {
  slots_[at(slot_of_buffer_[at(slot.buffer)])].position = position;
  for (size_t index = slot.first_relocation; index < slot.last_relocation; ++index) {
    const Relocation& relocation = relocations_[index];
    positions_[relocation.argument] = {position.handle, position.offset_bytes + relocation.offset};
  }
}

void StepProgram::set_bytes(const MemorySlot& slot, int64_t bytes) {
  for (size_t index = slot.first_relocation; index < slot.last_relocation; ++index) {
    if (relocations_[index].is_whole) relocations_[index].buffer->bytes = bytes;
  }
}

void StepProgram::set_request(size_t call, size_t output, int32_t request) {
  const size_t inputs = inputs_of(call).size();
  arguments_[first_argument_[call] + inputs + output].request = request;
}

void StepProgram::fail(size_t call, const tessera_error& error) const {
  const ExecutionStep& step = built_.plan.steps[steps_[call]];
  if (step.kind == ExecutionStep::Kind::Kernel) {
    built_.kernels[steps_[call]]->fail(failed_location(built_, step, error.message), error);
  }
  const std::string location = step_location(built_, step);
  const Plugin* plugin = step.kind == ExecutionStep::Kind::Convert ? step.conversion.plugin
                         : step.device != kHostDevice
                             ? &built_.layouts->device(step.device).plugin()
                             : nullptr;
  fail_conversion(plugin, location, Status{error.kind, error.message});
}

}  // namespace tessera
