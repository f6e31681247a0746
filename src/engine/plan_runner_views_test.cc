// Plans in which values are parts of others: what is copied, what is not, and that nothing is lost.
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "backend/test_plugins.h"
#include "base/log.h"
#include "engine/plan_runner.h"
#include "infer/infer.h"
#include "ops/graph_test.h"
#include "place/placement.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using namespace testing_plugins;
using Dims = std::vector<int64_t>;
using Kind = ExecutionStep::Kind;
using plugin::Part;

// What the ports of a kernel ask for.
struct Needs {
  int64_t alignment_bytes = TESSERA_ALIGNMENT_BYTES;
  bool accepts_strides = false;
  bool may_be_in_place = false;
};
constexpr Needs kEasy{.alignment_bytes = 4, .accepts_strides = true};
constexpr Needs kOdd{.alignment_bytes = 4};
constexpr Needs kInPlace{.may_be_in_place = true};

// Calls use(index of the element with the buffer's strides) for all elements in row-major order.
template <class Use>
void for_each_place(const Buffer& buffer, Use use) {
  const size_t rank = static_cast<size_t>(buffer.rank);
  Dims strides(rank, 1);
  for (size_t axis = rank; axis-- > 1;) strides[axis - 1] = strides[axis] * buffer.dims[axis];
  if (buffer.strides != nullptr) strides.assign(buffer.strides, buffer.strides + rank);
  for (int64_t number = 0; number < buffer.elements(); ++number) {
    int64_t rest = number;
    int64_t place = 0;
    for (size_t axis = rank; axis-- > 0;) {
      place += rest % buffer.dims[axis] * strides[axis];
      rest /= buffer.dims[axis];
    }
    use(place);
  }
}

// output = input + 1, with strides where it is given some.
plugin::Candidate plus_one(const plugin::Node& node, const Needs& needs) {
  plugin::Candidate candidate = relu_candidate(node, TESSERA_LAYOUT_DEFAULT, needs.may_be_in_place);
  candidate.inputs[0].alignment_bytes = needs.alignment_bytes;
  candidate.inputs[0].accepts_strides = needs.accepts_strides;
  candidate.outputs[0].alignment_bytes = needs.alignment_bytes;
  candidate.outputs[0].accepts_strides = needs.accepts_strides;
  candidate.build = [needs](const plugin::BuildOptions&) {
    return plugin::make_kernel([needs](plugin::RunContext&, std::span<const Buffer> inputs,
                                       std::span<const Buffer> outputs) {
      for (const Buffer& buffer : {inputs[0], outputs[0]}) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data) %
                      static_cast<uintptr_t>(needs.alignment_bytes),
                  0U);
        EXPECT_TRUE(needs.accepts_strides || buffer.strides == nullptr);
      }
      std::vector<float> values;
      for_each_place(inputs[0],
                     [&](int64_t place) { values.push_back(inputs[0].as<float>()[place] + 1); });
      auto next = values.begin();
      for_each_place(outputs[0], [&](int64_t place) { outputs[0].as<float>()[place] = *next++; });
    });
  };
  return candidate;
}

// The parts along `axis` of a row-major tensor, in the order of the values.
std::vector<Part> parts_along(size_t axis, const Dims& whole, const std::vector<Dims>& parts) {
  Dims strides(whole.size(), 1);
  for (size_t at = whole.size(); at-- > 1;) strides[at - 1] = strides[at] * whole[at];
  std::vector<Part> places;
  int64_t first = 0;
  for (const Dims& dims : parts) {
    places.push_back({.offset_bytes = first * strides[axis] * 4, .strides = strides});
    first += dims[axis];
  }
  return places;
}

plugin::Candidate sharing(const plugin::Node& node) {
  plugin::Candidate candidate = plugin::candidate_for(node);
  const auto axis = static_cast<size_t>(node.attributes().get_int("axis", 0));
  std::vector<Dims> dims;
  if (node.op() == "Concat") {
    candidate.flags = TESSERA_CANDIDATE_JOINT;
    for (size_t index = 0; index < node.input_count(); ++index) {
      dims.push_back(node.input(index).type().dims);
    }
    const std::vector<Part> parts = parts_along(axis, node.output(0).type().dims, dims);
    for (size_t index = 0; index < parts.size(); ++index) {
      candidate.inputs[index].part = parts[index];
    }
    return candidate;
  }
  candidate.flags = TESSERA_CANDIDATE_VIEW;
  candidate.inputs.resize(1);
  if (node.op() != "Split") return candidate;
  for (size_t index = 0; index < node.output_count(); ++index) {
    dims.push_back(node.output(index).type().dims);
  }
  const std::vector<Part> parts = parts_along(axis, node.input(0).type().dims, dims);
  for (size_t index = 0; index < parts.size(); ++index)
    candidate.outputs[index].part = parts[index];
  return candidate;
}

class SharedViews : public testing::Test {
 protected:
  SharedViews() : builder_(registry_) {}

  void input(const std::string& name, const Dims& dims) {
    builder_.input(name, float_type(shape_from(dims)));
    inputs_.push_back(counted(dims, static_cast<float>(100 * inputs_.size() + 100)));
  }
  void relu(const std::string& from, const std::string& to) {
    builder_.node("make_" + to, "Relu", {from}, {to});
  }
  void split(const std::string& from, const std::vector<std::string>& to, const Dims& sizes,
             int64_t axis = 0) {
    builder_.constant("sizes_" + to[0], integers(sizes));
    builder_.node("split_" + to[0], "Split", {from, "sizes_" + to[0]}, to, axis_at(axis));
  }
  void concat(const std::vector<std::string>& from, const std::string& to, int64_t axis = 0) {
    builder_.node("concat_" + to, "Concat", from, {to}, axis_at(axis));
  }
  void reshape(const std::string& from, const std::string& to, const Dims& dims) {
    builder_.constant("dims_" + to, integers(dims));
    builder_.node("reshape_" + to, "Reshape", {from, "dims_" + to}, {to});
  }

  // Every Relu adds one with these needs; Add adds to its second input; the rest shares memory.
  // Runs it twice, and checks each output by `evaluate`.
  void run(const Needs& needs) {
    BuiltPlan built;
    built.graph = infer_types(builder_.graph(), registry_, Log());
    built.plugins = {open_mirror([needs](const plugin::Graph& graph, Proposals& proposals) {
      for (int32_t id = 0; id < graph.node_count(); ++id) {
        const plugin::Node node = graph.node(id);
        if (node.op() == "Relu") {
          proposals.add(plus_one(node, needs));
        } else if (node.op() == "Add") {
          proposals.add(adding_candidate(node));
        } else {
          proposals.add(sharing(node));
        }
      }
    })};
    built.layouts = std::make_shared<const LayoutTable>(built.plugins);
    const tessera_graph view(built.graph, registry_);
    built.offers = collect_offers(view, built.plugins, *built.layouts, {});
    for (const Refusal& refusal : built.offers.refusals) ADD_FAILURE() << refusal.reason;
    Placement placement;
    for (size_t index = 0; index < built.offers.candidates.size(); ++index) {
      placement.chosen.push_back(static_cast<int>(index));
    }
    built.plan = make_plan(built.graph, built.offers, placement, *built.layouts, {});
    ASSERT_EQ(explain_violation(built.plan), "");
    plan_ = built.plan;
    for (const ExecutionStep& step : plan_.steps) {
      const auto candidate = static_cast<size_t>(std::max(step.candidate, 0));
      built.kernels.push_back(step.kind == Kind::Kernel
                                  ? built.offers.candidates[candidate].build(1)
                                  : tessera::Kernel());
    }
    for (const PlanConstant& constant : plan_.constants) {
      const auto held = std::make_shared<const Tensor>(built.graph[constant.value].constant);
      built.constants.push_back({held, held->data()});
    }
    built.constant_results.resize(plan_.results.size());
    const tessera::Graph graph = built.graph;
    PlanRunner runner(std::move(built), 1);
    runner.run(inputs_);
    results_ = runner.run(inputs_);
    const std::vector<Tensor> expected = evaluate(graph);
    for (size_t index = 0; index < results_.size(); ++index) {
      EXPECT_THAT(elements(results_[index]), testing::ElementsAreArray(elements(expected[index])))
          << graph[graph.outputs[index]].name;
    }
  }

  long copies() const {
    return std::count_if(plan_.steps.begin(), plan_.steps.end(),
                         [](const ExecutionStep& step) { return step.kind == Kind::Copy; });
  }

  static Tensor counted(const Dims& dims, float first) {
    Tensor tensor(DataType::Float32, dims);
    std::iota(tensor.mutable_as<float>().begin(), tensor.mutable_as<float>().end(), first);
    return tensor;
  }

  static std::vector<float> elements(const Tensor& tensor) {
    return {tensor.as<float>().begin(), tensor.as<float>().end()};
  }

  ops::Registry registry_ = ops::make_registry();
  GraphBuilder builder_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> results_;
  ExecutionPlan plan_;

 private:
  static Tensor integers(const Dims& values) {
    return Tensor::from<int64_t>(DataType::Int64, {static_cast<int64_t>(values.size())}, values);
  }
  static Attributes axis_at(int64_t axis) {
    Attributes attributes;
    attributes.set("axis", axis);
    return attributes;
  }

  // Node by node, each value with memory of its own. Relu stands for adding one.
  std::vector<Tensor> evaluate(const tessera::Graph& graph) const {
    std::vector<std::vector<float>> values(graph.values.size());
    const auto of = [&](ValueId id) -> std::vector<float>& {
      return values[static_cast<size_t>(id.index)];
    };
    const auto dims_of = [&](ValueId id) { return dims_from(*graph[id].type.shape); };
    for (size_t index = 0; index < inputs_.size(); ++index) {
      of(graph.inputs[index]) = elements(inputs_[index]);
    }
    for (size_t index = 0; index < values.size(); ++index) {
      const Tensor& constant = graph.values[index].constant;
      if (constant.type() == DataType::Float32) values[index] = elements(constant);
    }
    for (const tessera::Node& node : graph.nodes) {
      std::vector<float>& first = of(node.inputs[0]);
      if (node.op == "Relu") {
        for (const float value : first) of(node.outputs[0]).push_back(value + 1);
      } else if (node.op == "Add") {
        const std::vector<float>& second = of(node.inputs[1]);
        for (size_t at = 0; at < first.size(); ++at) {
          of(node.outputs[0]).push_back(first[at] + second[at]);
        }
      } else if (node.op == "Reshape") {
        of(node.outputs[0]) = first;
      } else {
        const bool is_concat = node.op == "Concat";
        const std::vector<ValueId>& parts = is_concat ? node.inputs : node.outputs;
        const ValueId whole = is_concat ? node.outputs[0] : node.inputs[0];
        const auto axis = static_cast<size_t>(node.attributes.get_int("axis"));
        const Dims dims = dims_of(whole);
        int64_t rows = 1;
        for (size_t at = 0; at < axis; ++at) rows *= dims[at];
        of(whole).resize(static_cast<size_t>(element_count(dims)));
        auto place = of(whole).begin();
        for (int64_t row = 0; row < rows; ++row) {
          for (const ValueId part : parts) {
            const int64_t length = element_count(dims_of(part)) / rows;
            if (is_concat) {
              std::copy_n(of(part).begin() + row * length, length, place);
            } else {
              of(part).insert(of(part).end(), place, place + length);
            }
            place += length;
          }
        }
      }
    }
    std::vector<Tensor> outputs;
    for (const ValueId id : graph.outputs) {
      outputs.push_back(Tensor::from<float>(DataType::Float32, dims_of(id), of(id)));
    }
    return outputs;
  }
};

TEST_F(SharedViews, CostNothingWhereEverybodyTakesThem) {
  input("x", {4, 6});
  relu("x", "y");
  split("y", {"left", "right"}, {1, 3});
  split("right", {"up", "down"}, {5, 1}, 1);
  relu("left", "left1");
  relu("up", "up1");
  relu("down", "down1");
  for (const char* name : {"left1", "up1", "down1"}) builder_.output(name);
  run(kEasy);
  EXPECT_EQ(copies(), 0);
}

TEST_F(SharedViews, AreCopiedForWhoTakesNeitherStridesNorOddAddresses) {
  input("x", {4, 6});
  relu("x", "y");
  split("y", {"left", "right"}, {1, 3});
  relu("left", "left1");
  relu("right", "right1");  // at byte 24
  relu("right", "right2");  // of the same copy
  split("y", {"a", "b"}, {2, 4}, 1);
  relu("a", "a1");
  relu("b", "b1");
  for (const char* name : {"left1", "right1", "right2", "a1", "b1"}) builder_.output(name);
  run({});
  EXPECT_EQ(copies(), 3);
  run(kOdd);
  EXPECT_EQ(copies(), 2);
}

TEST_F(SharedViews, OfInputsConstantsAndOutputsBecomeTheCallersOwn) {
  input("x", {4, 6});
  builder_.constant("c", counted({4, 6}, 1));
  split("x", {"x0", "x1"}, {2, 2});
  split("c", {"c0", "c1"}, {1, 3});
  reshape("x1", "flat", {12});
  relu("c0", "r0");
  relu("x", "y");
  reshape("y", "z", {24});
  split("z", {"z0", "z1"}, {4, 20});
  for (const char* name : {"x0", "flat", "c1", "r0", "y", "z", "z1"}) builder_.output(name);
  run(kOdd);
  std::vector<const void*> begins;
  for (const Tensor& result : results_) {
    for (const Tensor& given : inputs_) {
      const auto* first = static_cast<const char*>(given.data());
      const auto* begin = static_cast<const char*>(result.data());
      EXPECT_FALSE(begin >= first && begin < first + given.bytes());
    }
    begins.push_back(result.data());
  }
  std::sort(begins.begin(), begins.end());
  EXPECT_EQ(std::adjacent_find(begins.begin(), begins.end()), begins.end());
  // One of y, z has the memory that the kernel wrote.
  EXPECT_EQ(copies(), 5);
}

TEST_F(SharedViews, OfAnInnerValueAreHandedOutWithoutACopy) {
  input("x", {4, 6});
  relu("x", "y");
  reshape("y", "z", {24});
  builder_.output("z");
  run({});
  EXPECT_EQ(copies(), 0);
  EXPECT_THAT(results_[0].dims(), ElementsAre(24));
}

TEST_F(SharedViews, KeepMemoryFromBeingOverwritten) {
  input("x", {32});
  relu("x", "y");
  split("y", {"low", "high"}, {16, 16});
  relu("y", "first");  // may not be in place: high is read later
  relu("high", "second");
  concat({"first", "second"}, "out");
  relu("out", "last");
  builder_.output("last").output("low");
  run(kInPlace);
}

TEST_F(SharedViews, LetKernelsWriteStraightIntoJointValues) {
  input("x", {2, 16});
  relu("x", "a");
  relu("a", "b");
  relu("b", "c");
  concat({"a", "b", "c"}, "joint");
  relu("joint", "last");
  builder_.output("last");
  run({});
  EXPECT_EQ(copies(), 0);
  run(kInPlace);
  EXPECT_EQ(copies(), 0);
}

TEST_F(SharedViews, CopyWhatCannotBeWrittenWhereItBelongs) {
  input("x", {1, 3});
  input("w", {1, 5});
  builder_.constant("c", counted({1, 2}, 50));
  relu("x", "a");
  relu("w", "b");
  concat({"a", "b", "x", "c"}, "joint", 1);
  relu("joint", "last");
  builder_.output("last");
  run({});
  EXPECT_EQ(copies(), 3);  // b at byte 12, x and c
  run(kOdd);
  EXPECT_EQ(copies(), 2);
}

TEST_F(SharedViews, WriteStridesIntoJointValues) {
  input("x", {3, 4});
  relu("x", "a");
  relu("a", "b");
  concat({"a", "b"}, "joint", 1);
  relu("joint", "last");
  builder_.output("last");
  run(kEasy);
  EXPECT_EQ(copies(), 0);
  run(kOdd);
  EXPECT_EQ(copies(), 2);
}

TEST_F(SharedViews, PutJointValuesIntoLargerOnes) {
  input("x", {1, 16});
  relu("x", "a");
  relu("a", "b");
  concat({"a", "b"}, "ab");
  relu("ab", "ab1");
  split("ab1", {"c", "d"}, {1, 1});
  concat({"a", "b", "c"}, "abc");  // c is part of what has to stay whole
  relu("abc", "abc1");
  relu("c", "e");
  concat({"abc", "e"}, "all");
  relu("all", "last");
  for (const char* name : {"last", "abc1", "d"}) builder_.output(name);
  run({});
  EXPECT_EQ(copies(), 2);  // c, and the result d
}

TEST_F(SharedViews, TakeSumsIntoJointValues) {
  input("x", {1, 16});
  relu("x", "a");
  relu("a", "b");
  builder_.node("add", "Add", {"a", "b"}, {"sum"});  // adds a to what b holds
  relu("x", "c");
  concat({"c", "sum"}, "joint");
  relu("joint", "last");
  builder_.output("last");
  run({});
  EXPECT_EQ(copies(), 0);
}

TEST_F(SharedViews, AreHeldInMemoryUntilTheirLastReader) {
  input("x", {64});
  relu("x", "y");
  split("y", {"low", "high"}, {32, 32});
  relu("low", "a");
  // These could have y's memory if nobody minded `high`.
  relu("a", "b");
  relu("b", "c");
  relu("c", "d");
  relu("high", "e");
  concat({"d", "e"}, "last");
  builder_.output("last");
  run(kInPlace);
  EXPECT_EQ(copies(), 0);
}

// --- What explain_violation() finds --------------------------------------------------------------

class ViewViolations : public SharedViews {
 protected:
  // A split of y, read by others, and the halves of a joint value.
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
      // Over the other part.
      {"unwritten", [&](auto& p) { buffer(p, part).offset -= 64; }},
      {"elsewhere than it should", [&](auto& p) { buffer(p, high).strides = {2}; }},
      {"outside of memory", [&](auto& p) { buffer(p, high).offset = p.arena_bytes; }},
      {"outside of memory", [&](auto& p) { buffer(p, part).bytes += p.arena_bytes; }},
      {"unwritten", [&](auto& p) { std::swap(p.steps[view], p.steps[view - 1]); }},
      // Joint before its second part is written.
      {"unwritten", [&](auto& p) { std::swap(p.steps[joint], p.steps[joint - 1]); }},
      // Something writes over a part between it and the whole.
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
      {"none such", [&](auto& p) { buffer(p, part).owner = part; }},
      {"is in the arena", [&](auto& p) { p.results = {whole}; }},
  };
  for (const auto& [expected, spoil] : cases) {
    ExecutionPlan spoiled = plan;
    spoil(spoiled);
    EXPECT_THAT(explain_violation(spoiled), testing::HasSubstr(expected));
  }
}

}  // namespace
}  // namespace tessera
