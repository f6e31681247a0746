#include "engine/io_binding.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "backend/device_memory/owned_storage.h"
#include "base/containers/at.h"
#include "base/errors/check.h"
#include "base/memory/alignment.h"
#include "plan/shared_memory.h"
#include "tessera/error.h"

namespace tessera {
namespace {

using Kind = PlanBuffer::Kind;

// Where elements begin: at an address of the host, or at an offset in memory of a device.
struct Place {
  explicit Place(const Tensor& tensor)
      : memory(tensor.device_storage() == nullptr ? nullptr : tensor.device_storage()->handle()),
        begin(tensor.device_storage() == nullptr ? reinterpret_cast<intptr_t>(tensor.data())
                                                 : tensor.offset_bytes()) {}
  bool operator==(const Place&) const = default;

  const void* memory;
  int64_t begin;
};

bool overlap(const Tensor& left, const Tensor& right) {
  if (left.is_empty() || right.is_empty() || left.bytes() == 0 || right.bytes() == 0) return false;
  const Place one(left);
  const Place other(right);
  return one.memory == other.memory && one.begin < other.begin + right.bytes() &&
         other.begin < one.begin + left.bytes();
}

std::string memory_of(std::string_view device) {
  return device == "cpu" ? "the host's memory" : "memory of device '" + std::string(device) + "'";
}

// Which calls use the memory of a state pair: the first one that writes the result, and the last
// one that reads the input.
struct Uses {
  size_t first_write = SIZE_MAX;
  size_t last_read = 0;
  int last_reads = 0;  // how often `last_read` has the input as an argument
  bool is_read = false;
};

}  // namespace

IoBinding::IoBinding(const BuiltPlan& built, StepProgram& program, ExecutionContext& context,
                     std::vector<StatePorts> pairs)
    : built_(built), program_(program), context_(context), inputs_(built.graph.inputs.size()) {
  for (size_t buffer = 0; buffer < built.plan.buffers.size(); ++buffer) {
    const PlanBuffer& described = built.plan.buffers[buffer];
    if (described.owner >= 0 || described.kind != Kind::Input) continue;
    Input& input = inputs_[at(described.index)];
    input.slot = program.find_slot(static_cast<int>(buffer));
    input.is_sparse = built.layouts->sparse_form(described.layout).has_value();
  }
  for (Input& input : inputs_) input.now = &input.bound;
  results_.resize(built.plan.results.size());
  std::unordered_map<const MemorySlot*, size_t> memory_of_slot;
  for (size_t result = 0; result < results_.size(); ++result) add_result(result, memory_of_slot);
  for (const StatePorts& pair : pairs) states_.push_back(access_of(pair));
}

void IoBinding::add_result(size_t index,
                           std::unordered_map<const MemorySlot*, size_t>& memory_of_slot) {
  Result& result = results_[index];
  result.buffer = built_.plan.results[index];
  const int owner = owner_of(built_.plan, result.buffer);
  if (built_.plan.buffers[at(owner)].kind != Kind::Output) return;
  const MemorySlot* slot = program_.find_slot(owner);
  const auto [memory, is_new] = memory_of_slot.try_emplace(slot, memories_.size());
  if (is_new) memories_.emplace_back().slot = slot;
  memories_[memory->second].results.push_back(index);
  result.memory = static_cast<int>(memory->second);
}

IoBinding::StateAccess IoBinding::access_of(const StatePorts& pair) const {
  StateAccess access{.pair = pair};
  const MemorySlot* input = inputs_[pair.input].slot;
  const Result& result = results_[pair.result];
  if (result.memory < 0 || input == nullptr) return access;
  const bool is_a_result_too =
      std::any_of(results_.begin(), results_.end(),
                  [&](const Result& other) { return other.buffer == input->buffer; });
  Uses uses;
  for (size_t call = 0; call < program_.calls().size(); ++call) {
    const ExecutionStep& step = built_.plan.steps[program_.step_of(call)];
    for (const int buffer : step.inputs) {
      if (owner_of(built_.plan, buffer) != input->buffer) continue;
      uses.last_reads = uses.is_read && uses.last_read == call ? uses.last_reads + 1 : 1;
      uses.last_read = call;
      uses.is_read = true;
    }
    for (size_t output = 0; output < step.outputs.size(); ++output) {
      const int owner = owner_of(built_.plan, step.outputs[output].buffer);
      if (owner != memories_[at(result.memory)].slot->buffer) continue;
      if (uses.first_write != SIZE_MAX) continue;
      uses.first_write = call;
      access.call = call;
      access.output = output;
    }
  }
  if (is_a_result_too || !is_on_one_device(access)) return access;
  access.is_direct = !uses.is_read || uses.last_read < uses.first_write;
  const bool writer_reads_last = uses.is_read && uses.last_read == uses.first_write;
  access.is_in_place =
      writer_reads_last && uses.last_reads == 1 && can_be_in_place(access, input->buffer);
  return access;
}

// Whether one device does all steps that use the memory of a state pair. Different devices keep to
// the order of steps only as far as add_waits() saw accesses to the same memory.
bool IoBinding::is_on_one_device(const StateAccess& access) const {
  const int input = inputs_[access.pair.input].slot->buffer;
  const int output = memories_[at(results_[access.pair.result].memory)].slot->buffer;
  std::optional<DeviceId> device;
  for (size_t call = 0; call < program_.calls().size(); ++call) {
    const ExecutionStep& step = built_.plan.steps[program_.step_of(call)];
    const auto is_of_pair = [&](int buffer) {
      const int owner = owner_of(built_.plan, buffer);
      return owner == input || owner == output;
    };
    const bool uses_it = std::ranges::any_of(step.inputs, is_of_pair) ||
                         std::ranges::any_of(step.outputs, is_of_pair, &PlanOutput::buffer);
    if (!uses_it) continue;
    if (device && *device != step.device) return false;
    device = step.device;
  }
  return true;
}

// A step that accesses the memory of `buffer`, for errors.
std::string IoBinding::step_at(int buffer) const {
  for (size_t call = 0; call < program_.calls().size(); ++call) {
    const ExecutionStep& step = built_.plan.steps[program_.step_of(call)];
    const auto is_it = [&](int used) { return owner_of(built_.plan, used) == buffer; };
    if (std::ranges::any_of(step.inputs, is_it) ||
        std::ranges::any_of(step.outputs, is_it, &PlanOutput::buffer)) {
      return step_location(built_, step);
    }
  }
  return "";
}

void IoBinding::check_memory(const Tensor& tensor, int buffer, const std::string& where) const {
  if (tensor.is_empty()) return;
  const DeviceId id = built_.plan.buffers[at(buffer)].device;
  const bool is_of_host = id == kHostDevice;
  const Device* const device = is_of_host ? nullptr : &built_.layouts->device(id);
  const bool is_there = is_of_host ? tensor.device_storage() == nullptr : is_on(tensor, *device);
  if (is_there) {
    if (is_of_host || tensor.offset_bytes() % device->alignment_bytes() == 0) return;
    throw Error(ErrorKind::InvalidArgument, where,
                "expected an offset in " + memory_of(device->name()) + " that is a multiple of " +
                    std::to_string(device->alignment_bytes()) + " bytes, found " +
                    std::to_string(tensor.offset_bytes()));
  }
  const std::string step = step_at(owner_of(built_.plan, buffer));
  const std::string expected = memory_of(is_of_host ? "cpu" : device->name()) +
                               (step.empty() ? "" : ", as " + step + " does");
  const bool has_same_name = !is_of_host && tensor.device() == device->name();
  const std::string advice =
      has_same_name ? " that other Backends opened; make it with the Backends of this model"
      : is_of_host  ? "; bind with the layout 'row_major@" + std::string(tensor.device()) +
                         "' for it, or copy it with to_host()"
                   : "; to_device() of Backends copies a tensor there";
  throw Error(
      ErrorKind::InvalidArgument, where,
      "expected a tensor in " + expected + ", found one in " + memory_of(tensor.device()) + advice);
}

bool IoBinding::can_be_in_place(const StateAccess& access, int input_buffer) const {
  const ExecutionStep& step = built_.plan.steps[program_.step_of(access.call)];
  if (step.kind != ExecutionStep::Kind::Kernel) return false;
  const CandidateOutput& port = built_.offers.candidates[at(step.candidate)].outputs[access.output];
  const PlanOutput& output = step.outputs[access.output];
  if ((port.requests & TESSERA_REQUEST_IN_PLACE) == 0 || port.in_place_input < 0 ||
      output.request != TESSERA_REQUEST_WRITE) {
    return false;
  }
  const PlanBuffer& from = built_.plan.buffers[at(step.inputs[at(port.in_place_input)])];
  const PlanBuffer& to = built_.plan.buffers[at(output.buffer)];
  const int owner = owner_of(built_.plan, step.inputs[at(port.in_place_input)]);
  return owner == input_buffer && from.bytes == to.bytes && from.strides.empty() &&
         to.strides.empty() && from.offset == 0 && to.offset == 0 &&
         from.bytes == built_.plan.buffers[at(input_buffer)].bytes;
}

void IoBinding::bind_input(size_t input, Tensor tensor) {
  const MemorySlot* const slot = inputs_[input].slot;
  if (slot != nullptr) check_memory(tensor, slot->buffer, "input '" + input_name(input) + "'");
  inputs_[input].bound = std::move(tensor);
  is_arranged_ = false;
}

void IoBinding::bind_result(size_t index, Tensor tensor) {
  Result& result = results_[index];
  const PlanBuffer& buffer = built_.plan.buffers[at(result.buffer)];
  if (buffer.kind == Kind::Dynamic && !tensor.is_empty()) {
    throw Error(ErrorKind::InvalidArgument, "output '" + result_name(index) + "'",
                "expected an output whose size is known before running, found one whose size is "
                "known only in the run: take it from the result of run()");
  }
  check_memory(tensor, result.buffer, "output '" + result_name(index) + "'");
  result.bound = std::move(tensor);
  is_arranged_ = false;
}

void IoBinding::forget_sizes() {
  for (Result& result : results_) result.staging = Tensor();
  for (OutputMemory& memory : memories_) memory.own = Tensor();
  // Accesses that the caller did not declare; a family has no others.
  states_.clear();
  is_arranged_ = false;
}

void IoBinding::begin(std::span<const Tensor> given) {
  const bool has_given = std::any_of(given.begin(), given.end(),
                                     [](const Tensor& tensor) { return !tensor.is_empty(); });
  if (!is_arranged_ || has_given) arrange(given);
  for (Input& input : inputs_) {
    if (!input.is_staged) continue;
    copy_elements(*input.now, input.staging);
  }
}

void IoBinding::arrange(std::span<const Tensor> given) {
  bool is_all_bound = true;
  for (size_t index = 0; index < inputs_.size(); ++index) {
    const bool is_given = index < given.size() && !given[index].is_empty();
    const MemorySlot* const slot = inputs_[index].slot;
    // Nearly all inputs are in the host's memory and are given there.
    const bool is_plain = !is_given || slot == nullptr ||
                          (built_.plan.buffers[at(slot->buffer)].device == kHostDevice &&
                           given[index].device_storage() == nullptr);
    if (!is_plain) check_memory(given[index], slot->buffer, "input '" + input_name(index) + "'");
    inputs_[index].now = is_given ? &given[index] : &inputs_[index].bound;
    is_all_bound = is_all_bound && !is_given;
  }
  check_overlaps();
  for (Input& input : inputs_) arrange_input(input);
  for (const StateAccess& state : states_) {
    // The previous arrangement may have changed the request.
    if (state.is_in_place) {
      program_.set_request(state.call, state.output, TESSERA_REQUEST_WRITE);
    }
  }
  for (OutputMemory& memory : memories_) {
    arrange_memory(memory);
    is_all_bound = is_all_bound && (memory.direct >= 0 || memory.is_kept);
  }
  for (size_t result = 0; result < results_.size(); ++result) arrange_input_result(result);
  is_arranged_ = is_all_bound;
}

void IoBinding::arrange_input(Input& input) {
  input.is_staged = false;
  if (input.slot == nullptr) return;
  if (built_.plan.buffers[at(input.slot->buffer)].device != kHostDevice) {
    program_.point(*input.slot,
                   input.now->is_empty() ? tessera_device_position{} : position_of(*input.now));
    return;
  }
  // A kernel only reads through inputs.
  void* data = const_cast<void*>(input.now->data());
  if (!input.now->is_empty() && !is_aligned_to(data, input.slot->alignment_bytes)) {
    input.is_staged = true;
    if (input.staging.is_empty() || input.staging.bytes() != input.now->bytes()) {
      input.staging = new_staging(*input.now);
    }
    data = input.staging.mutable_data();
  }
  program_.point(*input.slot, data);
  if (input.is_sparse && !input.now->is_empty())
    program_.set_bytes(*input.slot, input.now->bytes());
}

void IoBinding::point(const MemorySlot& slot, Tensor& memory) {
  if (memory.device_storage() != nullptr) {
    program_.point(slot, position_of(memory));
  } else {
    program_.point(slot, memory.mutable_data());
  }
}

// Steps write to the first bound result whose memory they can write to directly.
void IoBinding::arrange_memory(OutputMemory& memory) {
  memory.direct = -1;
  bool is_bound = false;
  for (const size_t result : memory.results) {
    if (results_[result].bound.is_empty()) continue;
    is_bound = true;
    if (memory.direct < 0 && is_direct(result, *memory.slot)) {
      memory.direct = static_cast<int>(result);
    }
  }
  const bool was_kept = std::exchange(memory.is_kept, is_bound && memory.direct < 0);
  if (memory.direct >= 0) {
    memory.own = Tensor();
    point(*memory.slot, results_[at(memory.direct)].bound);
    return;
  }
  if (!memory.is_kept || !was_kept || memory.own.is_empty()) memory.own = new_memory(memory);
  point(*memory.slot, memory.own);
}

// A result that is an input, written over another input or elsewhere over itself, is copied only
// after all steps have read these inputs. If it is bound to no memory, it is copied before another
// result is written over it.
void IoBinding::arrange_input_result(size_t index) {
  Result& result = results_[index];
  const int source = input_of(result);
  result.is_staged = false;
  if (source < 0) return;
  const Tensor& from = *inputs_[at(source)].now;
  if (result.bound.is_empty()) {
    result.is_staged = std::ranges::any_of(
        results_, [&](const Result& other) { return overlap(from, other.bound); });
    if (result.is_staged && result.staging.is_empty()) result.staging = new_staging(from);
    return;
  }
  for (size_t input = 0; input < inputs_.size(); ++input) {
    const bool is_itself =
        static_cast<int>(input) == source && Place(*inputs_[input].now) == Place(result.bound);
    if (is_itself || !overlap(*inputs_[input].now, result.bound)) continue;
    result.is_staged = true;
  }
  if (result.is_staged && result.staging.is_empty()) {
    result.staging = new_staging(result.bound);
  }
}

bool IoBinding::is_direct(size_t index, const MemorySlot& slot) {
  Result& result = results_[index];
  // check_memory() has refused offsets that a device does not take.
  bool is_direct = result.bound.device_storage() != nullptr ||
                   is_aligned_to(result.bound.data(), slot.alignment_bytes);
  const StateAccess* written_in_place = nullptr;
  for (const StateAccess& state : states_) {
    if (state.pair.result != index) continue;
    const Input& input = inputs_[state.pair.input];
    const bool is_over_input = overlap(*input.now, result.bound) && !input.is_staged;
    const bool is_same = Place(*input.now) == Place(result.bound);
    const bool is_in_place = is_direct && is_over_input && is_same && state.is_in_place;
    if (is_in_place) written_in_place = &state;
    if (is_over_input && !is_in_place && !state.is_direct) is_direct = false;
  }
  if (is_direct && written_in_place != nullptr) {
    program_.set_request(written_in_place->call, written_in_place->output,
                         TESSERA_REQUEST_IN_PLACE);
  }
  return is_direct;
}

bool IoBinding::is_pair(size_t input, size_t result) const {
  return std::any_of(states_.begin(), states_.end(), [&](const StateAccess& state) {
    return state.pair.input == input && state.pair.result == result;
  });
}

// Finds the results that are written over inputs, whether the caller declared them or not.
void IoBinding::check_overlaps() {
  for (size_t result = 0; result < results_.size(); ++result) {
    const Tensor& output = results_[result].bound;
    if (output.is_empty()) continue;
    const std::string where = "output '" + result_name(result) + "'";
    for (size_t input = 0; input < inputs_.size(); ++input) {
      if (!overlap(output, *inputs_[input].now) || is_pair(input, result)) continue;
      states_.push_back(access_of({.input = input, .result = result}));
    }
    for (size_t other = 0; other < result; ++other) {
      if (!overlap(output, results_[other].bound)) continue;
      throw Error(ErrorKind::InvalidArgument, where,
                  "expected memory that no other output uses, found that it overlaps output '" +
                      result_name(other) + "'; bind other memory");
    }
  }
}

Tensor IoBinding::new_memory(OutputMemory& memory) const {
  const PlanBuffer& buffer = built_.plan.buffers[at(memory.slot->buffer)];
  if (buffer.device != kHostDevice) {
    return new_tensor(built_.layouts->device(buffer.device), buffer.type->element,
                      buffer.type->dims);
  }
  // The size of sparse storage is known in bytes.
  const bool is_sparse = built_.layouts->sparse_form(buffer.layout).has_value();
  return is_sparse ? Tensor(DataType::UInt8, {buffer.bytes})
                   : memory.runs.take(buffer.type->element, buffer.type->dims);
}

// Of the same size, and in the same memory.
Tensor IoBinding::new_staging(const Tensor& like) const {
  if (like.device_storage() == nullptr) return Tensor(DataType::UInt8, {like.bytes()});
  const std::optional<DeviceId> id = built_.layouts->find_device(like.device_storage()->device());
  return new_tensor(built_.layouts->device(*id), DataType::UInt8, {like.bytes()});
}

// Both are in one memory. Copies on a device are complete after finish_copies().
void IoBinding::copy_elements(const Tensor& from, Tensor& to) {
  if (from.bytes() == 0 || Place(from) == Place(to)) return;
  if (from.device_storage() == nullptr) {
    std::memcpy(to.mutable_data(), from.data(), static_cast<size_t>(from.bytes()));
    return;
  }
  const std::optional<DeviceId> id = built_.layouts->find_device(from.device_storage()->device());
  const Device& device = built_.layouts->device(*id);
  DeviceContext& context = context_.device(device);
  device.copy(context.queue(), position_of(from), position_of(to), from.bytes());
  if (std::ranges::find(copying_, &context) == copying_.end()) copying_.push_back(&context);
}

// The elements of `from` as a tensor of the type and dimensions of `like`.
Tensor IoBinding::copy_of(const Tensor& from, const Tensor& like) {
  if (from.device_storage() == nullptr) {
    return Tensor::copy_of(like.type(), like.dims(), from.data(),
                           static_cast<size_t>(like.bytes()));
  }
  const std::optional<DeviceId> id = built_.layouts->find_device(from.device_storage()->device());
  Tensor copy = new_tensor(built_.layouts->device(*id), like.type(), like.dims());
  copy_elements(from, copy);
  return copy;
}

void IoBinding::finish_copies() {
  for (DeviceContext* const context : std::exchange(copying_, {})) context->synchronise();
}

int IoBinding::input_of(const Result& result) const {
  const PlanBuffer& buffer = built_.plan.buffers[at(result.buffer)];
  return buffer.kind == Kind::Input ? buffer.index : -1;
}

// The elements of the result after the run, before anything is copied.
const Tensor& IoBinding::source_of(const Result& result) const {
  if (result.memory >= 0) {
    const OutputMemory& memory = memories_[at(result.memory)];
    return memory.direct >= 0 ? results_[at(memory.direct)].bound : memory.own;
  }
  const int input = input_of(result);
  if (input >= 0) return *inputs_[at(input)].now;
  const auto index = static_cast<size_t>(&result - results_.data());
  return built_.constant_results[index];
}

bool IoBinding::enqueue_copies(DeviceId device) {
  copied_on_ = device;
  copy_results([&](const Result& result) { return device_of(result) == device; });
  return !std::exchange(copying_, {}).empty();
}

void IoBinding::finish() {
  const std::optional<DeviceId> done = std::exchange(copied_on_, std::nullopt);
  copy_results([&](const Result& result) { return device_of(result) != done; });
  finish_copies();
}

template <class Which>
void IoBinding::copy_results(const Which& which) {
  for (Result& result : results_) {
    if (result.is_staged && which(result)) copy_elements(source_of(result), result.staging);
  }
  // Results that are inputs come first, because others may be written over these inputs.
  for (const bool is_input : {true, false}) {
    for (Result& result : results_) {
      if (result.bound.is_empty() || (input_of(result) >= 0) != is_input || result.is_staged ||
          !which(result)) {
        continue;
      }
      copy_elements(source_of(result), result.bound);
    }
  }
  for (Result& result : results_) {
    if (!result.is_staged || result.bound.is_empty() || !which(result)) continue;
    copy_elements(result.staging, result.bound);
  }
}

DeviceId IoBinding::device_of(const Result& result) const {
  return built_.plan.buffers[at(result.buffer)].device;
}

std::vector<Tensor> IoBinding::results(std::span<const Tensor> dynamic) {
  std::vector<Tensor> given;
  given.reserve(results_.size());
  for (size_t index = 0; index < results_.size(); ++index) {
    const Result& result = results_[index];
    const PlanBuffer& buffer = built_.plan.buffers[at(result.buffer)];
    const int input = input_of(result);
    if (!result.bound.is_empty()) {
      given.push_back(result.bound);
    } else if (result.memory >= 0) {
      const OutputMemory& memory = memories_[at(result.memory)];
      // The next run writes to bound memory and to staging memory.
      const bool is_shared = memory.direct >= 0 || memory.is_kept;
      Tensor tensor = memory.direct >= 0 ? results_[at(memory.direct)].bound : memory.own;
      if (is_shared) tensor = copy_of(tensor, tensor);
      given.push_back(buffer.owner < 0 ? tensor : tensor.reshaped(buffer.type->dims));
    } else if (input >= 0 && result.is_staged) {
      given.push_back(copy_of(result.staging, *inputs_[at(input)].now));
    } else if (input >= 0) {
      // The caller's own tensor, not an aligned copy of it.
      given.push_back(*inputs_[at(input)].now);
    } else if (buffer.kind == Kind::Constant) {
      given.push_back(built_.constant_results[index]);
    } else {
      const Tensor& tensor = dynamic[at(owner_of(built_.plan, result.buffer))];
      given.push_back(buffer.owner < 0 ? tensor : tensor.reshaped(buffer.type->dims));
    }
  }
  finish_copies();
  return given;
}

void IoBinding::end() {
  if (is_arranged_) return;
  for (Input& input : inputs_) input.now = &input.bound;
  for (OutputMemory& memory : memories_) {
    if (!memory.is_kept) memory.own = Tensor();
  }
}

std::string IoBinding::input_name(size_t input) const {
  return built_.graph[built_.graph.inputs[input]].name;
}

std::string IoBinding::result_name(size_t result) const {
  const Graph& graph = built_.graph;
  if (result < graph.outputs.size()) return graph[graph.outputs[result]].name;
  return graph[built_.plan.buffers[at(results_[result].buffer)].value].name;
}

}  // namespace tessera
