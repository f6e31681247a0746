#include "engine/largest_buffers.h"

#include <algorithm>
#include <vector>

#include "base/containers/at.h"
#include "plan/arena_blocks.h"

namespace tessera {
namespace {

using Kind = PlanBuffer::Kind;

constexpr size_t kNamedBuffers = 3;

struct NamedBytes {
  std::string name;
  int64_t bytes = 0;
};

}  // namespace

std::string largest_buffers_text(const BuiltPlan& built) {
  std::vector<NamedBytes> all;
  for (const ArenaBlock& block : arena_blocks(built.plan)) {
    const bool is_workspace = block.buffer < 0;
    all.push_back(
        {is_workspace
             ? "the workspace of " + step_location(built, built.plan.steps[at(block.lower)])
             : "'" + built.graph[built.plan.buffers[at(block.buffer)].value].name + "'",
         block.bytes});
  }
  for (const PlanBuffer& buffer : built.plan.buffers) {
    if (buffer.kind != Kind::Output || buffer.owner >= 0) continue;
    all.push_back({"'" + built.graph[buffer.value].name + "'", buffer.bytes});
  }
  for (const PlanConstant& constant : built.plan.constants) {
    if (constant.pack == nullptr && constant.layout == kDefaultLayout) continue;
    all.push_back({"weight '" + built.graph[constant.value].name + "'", constant.bytes});
  }
  const size_t count = std::min(kNamedBuffers, all.size());
  std::partial_sort(
      all.begin(), all.begin() + static_cast<ptrdiff_t>(count), all.end(),
      [](const NamedBytes& left, const NamedBytes& right) { return left.bytes > right.bytes; });
  std::string text;
  for (size_t index = 0; index < count; ++index) {
    text += (index == 0 ? "" : ", ") + all[index].name + " with " +
            std::to_string(all[index].bytes) + " bytes";
  }
  return text.empty() ? "none" : text;
}

}  // namespace tessera
