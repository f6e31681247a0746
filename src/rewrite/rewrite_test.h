// Shared by tests of passes: runs a pass as the pipeline does, and runs graphs.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/tensor/tensors_test.h"
#include "graph/compact.h"
#include "infer/infer.h"
#include "ops/evaluate.h"
#include "ops/graph_test.h"
#include "rewrite/pipeline.h"

namespace tessera {

class PassTest : public testing::Test {
 protected:
  PassTest() {
    // Its value does not matter; it only must not be folded.
    registry_.add(
        {.name = "Coin",
         .versions = {1},
         .inputs = {{"X", "T", ops::Arity::Optional}},
         .outputs = {{"Y", "T"}},
         .type_variables = {{"T", ops::kFloatTypes}},
         .traits = ops::kRandom,
         .infer =
             [](ops::InferContext& context) { context.set_output(0, DataType::Float32, Shape{}); },
         .kernel = [](const ops::KernelCall&) {}});
  }

  GraphBuilder builder(int opset = 17) const { return GraphBuilder(registry_, opset); }

  // Infers types, runs the pass, compacts and verifies.
  Graph run(PassFunction pass, const GraphBuilder& builder) {
    return run(pass, infer_types(builder.graph(), registry_, log_));
  }
  Graph run(PassFunction pass, const Graph& graph) {
    changes_.clear();
    Graph result = compact(pass(graph, {registry_, pool_, changes_}));
    EXPECT_EQ(explain_illegal(result), "");
    return result;
  }

  // The graph's outputs for these inputs, computed node by node.
  std::vector<Tensor> outputs_of(const Graph& graph, const std::map<std::string, Tensor>& inputs) {
    std::vector<Tensor> tensors;
    for (const Value& value : graph.values) tensors.push_back(value.constant);
    const auto tensor = [&](ValueId id) -> Tensor& {
      return tensors[static_cast<size_t>(id.index)];
    };
    for (const ValueId id : graph.inputs) tensor(id) = inputs.at(graph[id].name);
    for (const Node& node : graph.nodes) {
      std::vector<Tensor> read;
      for (const ValueId id : node.inputs) read.push_back(id.is_none() ? Tensor() : tensor(id));
      const std::vector<Tensor> made = ops::evaluate(registry_.of(node), node, read, pool_);
      for (size_t index = 0; index < made.size(); ++index) {
        if (!node.outputs[index].is_none()) tensor(node.outputs[index]) = made[index];
      }
    }
    std::vector<Tensor> outputs;
    for (const ValueId id : graph.outputs) outputs.push_back(tensor(id));
    return outputs;
  }

  ops::Registry registry_ = ops::make_registry();
  ThreadPool pool_{2};
  Log log_{[](const std::string& message) { ADD_FAILURE() << message; }};
  std::vector<std::string> changes_;
};

inline Tensor bool_scalar(bool value) {
  const std::vector<uint8_t> values = {static_cast<uint8_t>(value)};
  return Tensor::from<uint8_t>(DataType::Bool, {}, values);
}

// Pseudo-random values, equal on every machine.
inline Tensor noise(std::vector<int64_t> dims, uint32_t seed, float low = -1, float high = 1) {
  Tensor tensor(DataType::Float32, std::move(dims));
  for (float& value : tensor.mutable_as<float>()) {
    seed = seed * 1664525U + 1013904223U;
    value = low + (high - low) * static_cast<float>(seed >> 8) / static_cast<float>(1U << 24);
  }
  return tensor;
}

}  // namespace tessera
