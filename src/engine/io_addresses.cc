// IoBinding for runs on addresses alone, as those of a loop: nothing is bound, checked or
// allocated.
#include <algorithm>
#include <cstring>

#include "base/containers/at.h"
#include "base/memory/alignment.h"
#include "engine/io_binding.h"
#include "plan/shared_memory.h"

namespace tessera {

bool IoBinding::takes_addresses() const {
  const auto is_plain = [&](int index) {
    const PlanBuffer& buffer = built_.plan.buffers[at(owner_of(built_.plan, index))];
    return buffer.type.has_value() && buffer.device == kHostDevice &&
           !built_.layouts->sparse_form(buffer.layout);
  };
  const auto takes_one = [&](const Input& input) {
    return input.slot == nullptr || is_plain(input.slot->buffer);
  };
  return std::ranges::all_of(inputs_, takes_one) &&
         std::ranges::all_of(results_, is_plain, &Result::buffer);
}

void IoBinding::begin_at(std::span<const void* const> inputs, std::span<void* const> results) {
  is_arranged_ = false;
  for (size_t index = 0; index < inputs.size(); ++index) {
    Input& input = inputs_[index];
    if (input.slot == nullptr) continue;
    // A kernel only reads through inputs.
    void* data = const_cast<void*>(inputs[index]);
    if (!is_aligned_to(data, input.slot->alignment_bytes)) {
      const int64_t bytes = built_.plan.buffers[at(input.slot->buffer)].bytes;
      if (input.staging.is_empty() || input.staging.bytes() != bytes) {
        input.staging = Tensor(DataType::UInt8, {bytes});
      }
      std::memcpy(input.staging.mutable_data(), data, static_cast<size_t>(bytes));
      data = input.staging.mutable_data();
    }
    program_.point(*input.slot, data);
  }
  for (OutputMemory& memory : memories_) {
    void* data = results[memory.results.front()];
    if (!is_aligned_to(data, memory.slot->alignment_bytes)) {
      if (memory.own.is_empty()) memory.own = new_memory(memory);
      data = memory.own.mutable_data();
    }
    program_.point(*memory.slot, data);
  }
}

void IoBinding::finish_at(std::span<const void* const> inputs, std::span<void* const> results) {
  for (size_t index = 0; index < results_.size(); ++index) {
    const Result& result = results_[index];
    const int input = input_of(result);
    const void* made = nullptr;
    if (result.memory >= 0) {
      made = memories_[at(result.memory)].slot->data;
    } else if (input < 0) {
      made = built_.constant_results[index].data();
    } else {
      made = at(input) < inputs.size() ? inputs[at(input)] : inputs_[at(input)].bound.data();
    }
    const auto bytes = static_cast<size_t>(built_.plan.buffers[at(result.buffer)].bytes);
    if (made != results[index] && bytes > 0) std::memcpy(results[index], made, bytes);
  }
}

}  // namespace tessera
