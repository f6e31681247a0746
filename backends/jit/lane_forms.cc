#include "lane_forms.h"

#include <algorithm>

namespace tessera::jit {

using plugin::FusedGroup;
using plugin::Instruction;

namespace {

// Memory decides the time of bodies up to this size.
constexpr int kSmallBody = 12;
// An operation takes about four cycles, and four can begin in each: many vectors keep all units
// busy, fewer suffice if an iteration is long.
constexpr int kMediumBody = 80;
constexpr int kLongBody = 120;
// Bodies of this many instructions or more have all vectors masked, if that costs nothing: this
// halves the code to compile.
constexpr int kLargeBody = 160;
// The largest number of instructions that may be compiled for one large body.
constexpr int kMaxRepeatedInstructions = 4'800;
constexpr int kMaxRepeatedBranches = 600;
// More live vectors than registers: constants and some values are read from memory.
constexpr int kLiveVectors = 64;
constexpr int kLiveVectorsOfFewRegisters = 16;

bool computes(const Instruction& instruction) {
  return instruction.operation != TESSERA_EXPRESSION_CONSTANT &&
         instruction.operation != TESSERA_EXPRESSION_OPERAND &&
         instruction.operation != TESSERA_EXPRESSION_BIT_CAST;
}

int power_of_two_below(int limit) {
  int power = 1;
  while (2 * power <= limit) power *= 2;
  return power;
}

// Chains of operations leave units idle; a body with branches fills them by itself.
int vectors_of_large_body(const LoopBody& body) {
  const bool is_chain = 5 * body.instructions < 6 * body.critical_path;
  const int limit = is_chain ? kMaxRepeatedInstructions : kMaxRepeatedBranches;
  const int most = is_chain ? 4 : 2;
  return power_of_two_below(std::clamp(limit / body.instructions, 1, most));
}

}  // namespace

LoopBody loop_body(const FusedGroup& group, const std::vector<bool>& is_in_body) {
  const size_t count = group.instructions.size();
  std::vector<size_t> last_use(count, 0);
  std::vector<int> path(count, 0);
  LoopBody body;
  for (size_t id = 0; id < count; ++id) {
    if (!is_in_body[id]) continue;
    const Instruction& instruction = group.instructions[id];
    for (int index = 0; index < plugin::argument_count(instruction.operation); ++index) {
      const auto argument = static_cast<size_t>(instruction.arguments[index]);
      last_use[argument] = id;
      path[id] = std::max(path[id], path[argument]);
    }
    if (!computes(instruction)) continue;
    ++body.instructions;
    body.critical_path = std::max(body.critical_path, ++path[id]);
  }
  std::vector<int> ends(count, 0);
  int live = 0;
  for (size_t id = 0; id < count; ++id) {
    if (!is_in_body[id]) continue;
    live -= ends[id];
    if (last_use[id] <= id) continue;
    ++ends[last_use[id]];
    body.live_values = std::max(body.live_values, ++live);
  }
  return body;
}

std::vector<LaneForm> lane_forms(const LoopBody& body, bool is_around_reductions,
                                 const Target& target) {
  const int size = body.instructions;
  int vectors = 1;
  if (size <= kSmallBody) {
    vectors = 4;
  } else if (size <= kMediumBody) {
    vectors = is_around_reductions ? 4 : 8;
  } else if (size <= kLongBody) {
    vectors = 4;
  } else if (size <= kLargeBody) {
    vectors = 2;
  } else {
    vectors = vectors_of_large_body(body);
  }
  const int live = target.has_masks() ? kLiveVectors : kLiveVectorsOfFewRegisters;
  vectors =
      std::min(vectors, power_of_two_below(std::max(1, live / std::max(1, body.live_values))));
  if (size > kLargeBody && target.has_masks()) return {{vectors, true}};
  std::vector<LaneForm> forms = {{vectors, false}};
  if (target.has_masks()) {
    forms.push_back({vectors > 4 ? 2 : 1, true});
  } else {
    if (vectors > 1) forms.push_back({1, false});
    forms.push_back({1, true});
  }
  return forms;
}

}  // namespace tessera::jit
