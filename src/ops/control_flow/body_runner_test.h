// Shared by tests of value kernels: nodes whose nested graphs are only types, and runs of them in
// which a function takes the place of the nested graphs.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/op_test.h"

namespace tessera::ops {

using BodyFunction =
    std::function<std::vector<Tensor>(size_t body, std::span<const Tensor> inputs)>;

// Calls a function instead of running a nested graph.
class FakeBodyRunner : public BodyRunner {
 public:
  explicit FakeBodyRunner(BodyFunction function, bool can_repeat = false)
      : function_(std::move(function)), can_repeat_(can_repeat) {}

  std::vector<Tensor> run(size_t body, std::span<const Tensor> inputs) override {
    return function_(body, inputs);
  }

  std::unique_ptr<RepeatedRuns> repeat(size_t body, std::span<const Tensor> inputs,
                                       std::span<const Tensor> outputs) override {
    if (!can_repeat_) return nullptr;
    auto runs = std::make_unique<Repeated>();
    runs->function = [this, body](std::span<const Tensor> given) { return function_(body, given); };
    for (const Tensor& input : inputs) runs->inputs.push_back(input.without_elements());
    for (const Tensor& output : outputs) runs->outputs.push_back(output.without_elements());
    return runs;
  }

 private:
  // Passes copies of the elements, and copies the results to where they should be.
  struct Repeated : RepeatedRuns {
    void run(std::span<const void* const> from, std::span<void* const> to) override {
      ASSERT_EQ(from.size(), inputs.size());
      ASSERT_EQ(to.size(), outputs.size());
      std::vector<Tensor> given;
      for (size_t index = 0; index < from.size(); ++index) {
        given.push_back(Tensor::copy_of(inputs[index].type(), inputs[index].dims(), from[index],
                                        static_cast<size_t>(inputs[index].bytes())));
        for (const void* output : to) EXPECT_NE(from[index], output);
      }
      const std::vector<Tensor> results = function(given);
      for (size_t index = 0; index < to.size(); ++index) {
        EXPECT_EQ(results[index].dims(), outputs[index].dims());
        std::memcpy(to[index], results[index].data(), static_cast<size_t>(results[index].bytes()));
      }
    }

    std::function<std::vector<Tensor>(std::span<const Tensor>)> function;
    std::vector<Tensor> inputs;   // types and dimensions
    std::vector<Tensor> outputs;  // the same
  };

  BodyFunction function_;
  bool can_repeat_;
};

// A nested graph that has inputs and outputs of these types, but no nodes: rules read nothing else.
inline Body typed_body(const std::string& attribute, const std::vector<Type>& inputs,
                       const std::vector<Type>& outputs) {
  Body body;
  body.attribute = attribute;
  const auto add = [&](const std::string& prefix, const std::vector<Type>& types,
                       std::vector<ValueId>& ids) {
    for (const Type& type : types) {
      Value value;
      value.name = prefix + std::to_string(ids.size());
      value.type = type;
      ids.push_back(add_value(body.graph, std::move(value)));
    }
  };
  add("in", inputs, body.graph.inputs);
  add("out", outputs, body.graph.outputs);
  return body;
}

// make_node() with nested graphs, which import adds after it has checked the node.
inline Node node_with_bodies(const std::string& op, int opset, Attributes attributes,
                             const std::vector<bool>& inputs_given, size_t output_count,
                             std::vector<Body> bodies) {
  Node node = make_node(all_ops(), op, opset, std::move(attributes), inputs_given, output_count);
  node.bodies = std::move(bodies);
  return node;
}

inline std::vector<Tensor> run_values(const Node& node, const std::vector<Tensor>& inputs,
                                      BodyFunction function = nullptr, int64_t max_iterations = 0,
                                      bool can_repeat = false) {
  FakeBodyRunner bodies(std::move(function), can_repeat);
  std::vector<Tensor> outputs(node.outputs.size());
  run_on_values(all_ops().of(node),
                {node, inputs, outputs, node.bodies.empty() ? nullptr : &bodies, max_iterations});
  return outputs;
}

inline std::vector<Tensor> run_values(const std::string& op, int opset, Attributes attributes,
                                      const std::vector<Tensor>& inputs) {
  std::vector<bool> is_given;
  for (const Tensor& input : inputs) is_given.push_back(!input.is_empty());
  return run_values(make_node(all_ops(), op, opset, std::move(attributes), is_given, 1), inputs);
}

// The types that the rule of `node` gives to its outputs, as text. An input of an unknown type is
// present; nullopt stands for an omitted one.
inline std::vector<std::string> inferred_texts(const Node& node,
                                               const std::vector<std::optional<Type>>& inputs) {
  std::vector<InferInput> known;
  for (const std::optional<Type>& type : inputs) {
    InferInput& input = known.emplace_back();
    input.is_present = type.has_value();
    if (type) input.type = *type;
  }
  std::vector<std::string> texts;
  for (const InferOutput& output : infer(all_ops().of(node), node, std::move(known))) {
    texts.push_back(text(output.type));
  }
  return texts;
}

inline std::vector<std::string> body_input_texts(const Node& node,
                                                 const std::vector<Type>& inputs) {
  std::vector<std::string> texts;
  for (const Type& type : all_ops().of(node).body_rule(node, inputs, 0).inputs) {
    texts.push_back(text(type));
  }
  return texts;
}

inline Type floats_of(std::optional<Shape> shape = std::nullopt) {
  return Type::tensor(DataType::Float32, std::move(shape));
}

inline Type integers_of(std::optional<Shape> shape = std::nullopt) {
  return Type::tensor(DataType::Int64, std::move(shape));
}

inline Type bools_of(std::optional<Shape> shape = std::nullopt) {
  return Type::tensor(DataType::Bool, std::move(shape));
}

// A tensor whose elements are in memory of the caller.
inline Tensor borrowed(const Tensor& tensor) {
  return {tensor.type(), tensor.dims(), nullptr, tensor.data()};
}

}  // namespace tessera::ops
