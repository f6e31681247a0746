#include "assemble/release_weights.h"

#include <unordered_map>
#include <vector>

#include "backend/packs.h"

namespace tessera {
namespace {

void release(Value& value) {
  if (!value.digest) value.digest = digest_of(value.constant);
  value.constant = value.constant.without_elements();
}

// Clears `is_packed` for constants that a step reads unpacked.
void clear_unpacked_reads(const BuiltPlan& built, std::vector<bool>& is_packed) {
  for (const PlanConstant& constant : built.plan.constants) {
    if (constant.pack == nullptr && constant.layout == kDefaultLayout) {
      is_packed[static_cast<size_t>(constant.value.index)] = false;
    }
  }
}

// By value: whether steps read it as a constant, and only in packed form.
std::vector<bool> packed_only(const BuiltPlan& built) {
  std::vector<bool> is_packed(built.graph.values.size(), false);
  for (const PlanConstant& constant : built.plan.constants) {
    is_packed[static_cast<size_t>(constant.value.index)] = true;
  }
  clear_unpacked_reads(built, is_packed);
  return is_packed;
}

bool is_releasable(const Value& value) {
  return value.is_constant() && value.constant.has_elements() && !value.is_state &&
         is_floating(value.constant.type()) &&
         value.constant.bytes() > TESSERA_SMALL_CONSTANT_BYTES;
}

}  // namespace

int64_t release_packed_constants(Graph& graph, BuiltPlan& built, const BuiltPlan* other) {
  std::unordered_map<std::string, ValueId> by_name;
  for (size_t index = 0; index < graph.values.size(); ++index) {
    by_name.emplace(graph.values[index].name, ValueId{static_cast<int32_t>(index)});
  }
  std::vector<bool> is_packed = packed_only(built);
  if (other != nullptr) clear_unpacked_reads(*other, is_packed);
  int64_t bytes = 0;
  for (size_t index = 0; index < is_packed.size(); ++index) {
    Value& value = built.graph.values[index];
    if (!is_packed[index] || !is_releasable(value)) continue;
    const auto found = by_name.find(value.name);
    // A constant that a pass made for these shapes is only in `built`; the model's own constants
    // are in `graph` too.
    if (found != by_name.end() && is_releasable(graph[found->second]) &&
        graph[found->second].constant.data() == value.constant.data()) {
      bytes += value.constant.bytes();
      if (!graph[found->second].digest) graph[found->second].digest = value.digest;
      release(graph[found->second]);
      value.digest = graph[found->second].digest;
    }
    release(value);
  }
  return bytes;
}

}  // namespace tessera
