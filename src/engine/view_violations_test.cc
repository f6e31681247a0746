// Tests what explain_violation() finds in plans in which values are parts of others.
#include <functional>
#include <utility>

#include "engine/shared_views_test.h"

namespace tessera {
namespace {

using testing_plugins::Kind;
using testing_plugins::SharedViews;

class ViewViolations : public SharedViews {
 protected:
  // A split of y, whose parts other steps read, and the halves of a joint value.
  ExecutionPlan sound() {
    input("x", {32});
    relu("x", "y");
    split("y", {"low", "high"}, {16, 16});
    relu("low", "a");
    relu("high", "b");
    concat({"a", "b"}, "joint");
    relu("joint", "last");
    builder_.output("last");
    run({});
    return plan_;
  }
  static size_t step_of(const ExecutionPlan& plan, Kind kind, int number) {
    for (size_t index = 0; index < plan.steps.size(); ++index) {
      if (plan.steps[index].kind == kind && number-- == 0) return index;
    }
    ADD_FAILURE();
    return 0;
  }
};

TEST_F(ViewViolations, AreFound) {
  const ExecutionPlan plan = sound();
  const size_t view = step_of(plan, Kind::View, 0);
  const size_t joint = step_of(plan, Kind::View, 1);
  const auto buffer = [](ExecutionPlan& of, int index) -> PlanBuffer& {
    return of.buffers[static_cast<size_t>(index)];
  };
  const int high = plan.steps[view].outputs[1].buffer;
  const int part = plan.steps[joint].inputs[1];
  const int whole = plan.steps[joint].outputs[0].buffer;
  const struct {
    const char* expected;
    std::function<void(ExecutionPlan&)> spoil;
  } cases[] = {
      {"elsewhere than it should", [&](auto& p) { buffer(p, high).offset += 4; }},
      // Overlaps the other part.
      {"unwritten", [&](auto& p) { buffer(p, part).offset -= 64; }},
      {"elsewhere than it should", [&](auto& p) { buffer(p, high).strides = {2}; }},
      {"outside of memory", [&](auto& p) { buffer(p, high).offset = p.arena_bytes; }},
      {"outside of memory", [&](auto& p) { buffer(p, part).bytes += p.arena_bytes; }},
      {"unwritten", [&](auto& p) { std::swap(p.steps[view], p.steps[view - 1]); }},
      // The joint value is complete before its second part is written.
      {"unwritten", [&](auto& p) { std::swap(p.steps[joint], p.steps[joint - 1]); }},
      // Another step overwrites a part before the whole value is complete.
      {"unwritten",
       [&](auto& p) {
         ExecutionStep copy;
         copy.kind = Kind::Copy;
         copy.inputs = {0};
         copy.outputs = {{static_cast<int>(p.buffers.size())}};
         PlanBuffer stray = buffer(p, part);
         stray.owner = -1;
         p.buffers.push_back(stray);
         p.steps.insert(p.steps.begin() + static_cast<std::ptrdiff_t>(joint), copy);
       }},
      {"leaves out part",
       [&](auto& p) {
         p.steps[joint].inputs[1] = p.steps[joint].inputs[0];
         p.steps[joint].parts[1] = p.steps[joint].parts[0];
       }},
      {"reach beyond",
       [&](auto& p) {
         buffer(p, high).bytes += 4;
         p.arena_bytes += 256;
       }},
      {"not belong", [&](auto& p) { p.steps[view].parts.pop_back(); }},
      {"cannot contain it", [&](auto& p) { buffer(p, part).owner = part; }},
      {"is in the arena", [&](auto& p) { p.results = {whole}; }},
  };
  for (const auto& [expected, spoil] : cases) {
    ExecutionPlan spoiled = plan;
    spoil(spoiled);
    EXPECT_THAT(explain_violation(spoiled), HasSubstr(expected));
  }
}

}  // namespace
}  // namespace tessera
