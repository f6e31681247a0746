// Graphs in which values are parts of others, planned and run on kernels that accept strides and
// odd addresses, or do not. plan_runner_views_test.cc runs them, view_violations_test.cc breaks the
// plans.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "backend/test_plugins.h"
#include "base/errors/log.h"
#include "base/tensor/tensors_test.h"
#include "engine/plan_runner.h"
#include "infer/infer.h"
#include "ops/graph_test.h"
#include "place/placement.h"

namespace tessera::testing_plugins {

using Kind = ExecutionStep::Kind;
using plugin::Part;
using Dims = std::vector<int64_t>;

// The requirements of a kernel's ports.
struct Needs {
  int64_t alignment_bytes = TESSERA_ALIGNMENT_BYTES;
  bool accepts_strides = false;
  bool may_be_in_place = false;
};
inline constexpr Needs kEasy{.alignment_bytes = 4, .accepts_strides = true};
inline constexpr Needs kOdd{.alignment_bytes = 4};
inline constexpr Needs kInPlace{.may_be_in_place = true};

// Calls `use` for all elements in row-major order, with the index of each by the buffer's strides.
template <class Use>
void for_each_offset(const Buffer& buffer, Use use) {
  const size_t rank = static_cast<size_t>(buffer.rank);
  Dims strides(rank, 1);
  for (size_t axis = rank; axis-- > 1;) strides[axis - 1] = strides[axis] * buffer.dims[axis];
  if (buffer.strides != nullptr) strides.assign(buffer.strides, buffer.strides + rank);
  for (int64_t number = 0; number < buffer.elements(); ++number) {
    int64_t rest = number;
    int64_t offset = 0;
    for (size_t axis = rank; axis-- > 0;) {
      offset += rest % buffer.dims[axis] * strides[axis];
      rest /= buffer.dims[axis];
    }
    use(offset);
  }
}

// output = input + 1, with the strides of the buffers.
inline Candidate plus_one(const plugin::Node& node, const Needs& needs) {
  Candidate candidate = relu_candidate(node, TESSERA_LAYOUT_DEFAULT, needs.may_be_in_place);
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
      for_each_offset(inputs[0],
                      [&](int64_t offset) { values.push_back(inputs[0].as<float>()[offset] + 1); });
      auto next = values.begin();
      for_each_offset(outputs[0],
                      [&](int64_t offset) { outputs[0].as<float>()[offset] = *next++; });
    });
  };
  return candidate;
}

// The parts along `axis` of a row-major tensor, in the order of the values.
inline std::vector<Part> parts_along(size_t axis, const Dims& whole,
                                     const std::vector<Dims>& parts) {
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

inline Candidate sharing(const plugin::Node& node) {
  Candidate candidate = plugin::candidate_for(node);
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
  // A Relu from each of the names to the next one.
  void relus(const std::vector<std::string>& names) {
    for (size_t index = 1; index < names.size(); ++index) relu(names[index - 1], names[index]);
  }
  void split(const std::string& from, const std::vector<std::string>& to, const Dims& sizes,
             int64_t axis = 0) {
    builder_.constant("sizes_" + to[0], ints(sizes));
    builder_.node("split_" + to[0], "Split", {from, "sizes_" + to[0]}, to, axis_at(axis));
  }
  void concat(const std::vector<std::string>& from, const std::string& to, int64_t axis = 0) {
    builder_.node("concat_" + to, "Concat", from, {to}, axis_at(axis));
  }
  void reshape(const std::string& from, const std::string& to, const Dims& dims) {
    builder_.constant("dims_" + to, ints(dims));
    builder_.node("reshape_" + to, "Reshape", {from, "dims_" + to}, {to});
  }

  // Every Relu becomes a kernel with these requirements that adds one; Add adds to its second
  // input; the other ops become views and joint values.
  BuiltPlan build(const Needs& needs) {
    BuiltPlan built;
    built.graph = infer_types(builder_.graph(), registry_, Log());
    built.registry = &registry_;
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
    EXPECT_EQ(explain_violation(built.plan), "");
    plan_ = built.plan;
    for (const ExecutionStep& step : plan_.steps) {
      const auto candidate = static_cast<size_t>(std::max(step.candidate, 0));
      built.kernels.push_back(
          step.kind == Kind::Kernel
              ? std::make_shared<const tessera::Kernel>(built.offers.candidates[candidate].build(1))
              : nullptr);
    }
    for (const PlanConstant& constant : plan_.constants) {
      const auto held = std::make_shared<const Tensor>(built.graph[constant.value].constant);
      built.constants.push_back({held, held->data()});
    }
    built.constant_results.resize(plan_.results.size());
    for (size_t result = 0; result < plan_.results.size(); ++result) {
      const PlanBuffer& buffer = plan_.buffers[static_cast<size_t>(plan_.results[result])];
      if (buffer.kind != PlanBuffer::Kind::Constant) continue;
      built.constant_results[result] = built.graph[buffer.value].constant;
    }
    return built;
  }

  // Runs the graph twice, and compares each output with evaluate().
  void run(const Needs& needs) {
    BuiltPlan built = build(needs);
    const tessera::Graph graph = built.graph;
    PlanRunner runner(std::move(built), 1);
    runner.run(inputs_);
    results_ = runner.run(inputs_);
    const std::vector<Tensor> expected = evaluate(graph);
    for (size_t index = 0; index < results_.size(); ++index) {
      EXPECT_THAT(values(results_[index]), testing::ElementsAreArray(values(expected[index])))
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

  ops::Registry registry_ = ops::make_registry();
  GraphBuilder builder_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> results_;
  ExecutionPlan plan_;

 private:
  static Attributes axis_at(int64_t axis) { return attributes_of({{"axis", axis}}); }

  // Evaluates node by node, each value in its own memory. Relu stands for adding one.
  std::vector<Tensor> evaluate(const tessera::Graph& graph) const {
    std::vector<std::vector<float>> computed(graph.values.size());
    const auto of = [&](ValueId id) -> std::vector<float>& {
      return computed[static_cast<size_t>(id.index)];
    };
    const auto dims_of = [&](ValueId id) { return dims_from(*graph[id].type.shape); };
    for (size_t index = 0; index < inputs_.size(); ++index) {
      of(graph.inputs[index]) = values(inputs_[index]);
    }
    for (size_t index = 0; index < computed.size(); ++index) {
      const Tensor& constant = graph.values[index].constant;
      if (constant.type() == DataType::Float32) computed[index] = values(constant);
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
        auto offset = of(whole).begin();
        for (int64_t row = 0; row < rows; ++row) {
          for (const ValueId part : parts) {
            const int64_t length = element_count(dims_of(part)) / rows;
            if (is_concat) {
              std::copy_n(of(part).begin() + row * length, length, offset);
            } else {
              of(part).insert(of(part).end(), offset, offset + length);
            }
            offset += length;
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

}  // namespace tessera::testing_plugins
