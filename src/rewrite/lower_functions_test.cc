#include <numeric>
#include <optional>

#include "ops/convert_elements.h"
#include "rewrite/passes.h"
#include "rewrite/rewrite_test.h"

namespace tessera {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

constexpr const char* kMicrosoft = "com.microsoft";

// A node with its inputs; an empty tensor is an omitted input.
struct Use {
  std::string domain;
  std::string op;
  std::vector<Tensor> inputs;
  size_t outputs = 1;
  Attributes attributes = {};
  std::vector<size_t> omitted = {};  // outputs
};

class LowerFunctions : public PassTest {
 protected:
  // The graph of one node "target", whose inputs are those of the graph.
  Graph graph_of(const Use& use, bool has_open_sizes = false) {
    Graph graph;
    const ops::Op* op = registry_.find(use.domain, use.op);
    if (op == nullptr) {
      ADD_FAILURE() << "no op " << use.op;
      return graph;
    }
    Node node;
    node.name = "target";
    node.op = use.op;
    node.domain = use.domain;
    const int opset = use.domain.empty() ? ops::kNewestOpset : 1;
    node.version = ops::version_in(*op, opset).value();
    node.attributes = use.attributes;
    for (size_t index = 0; index < use.inputs.size(); ++index) {
      const Tensor& tensor = use.inputs[index];
      if (tensor.is_empty()) {
        node.inputs.emplace_back();
        continue;
      }
      Shape shape = shape_from(tensor.dims());
      // Batch and positions are open, and equal in all inputs that have equal ones.
      for (size_t axis = 0; has_open_sizes && axis < shape.size(); ++axis) {
        const bool is_mask = use.op == "Attention" && index == 3;
        const bool is_open = axis == 0 || axis == (shape.size() == 4 ? 2 : 1) ||
                             (is_mask && axis + 1 == shape.size());
        if (is_open) shape[axis] = Dim::symbol("n" + std::to_string(shape[axis].value()));
      }
      node.inputs.push_back(
          add(graph, "i" + std::to_string(index), Type::tensor(tensor.type(), shape)));
      graph.inputs.push_back(node.inputs.back());
    }
    for (size_t index = 0; index < use.outputs; ++index) {
      const bool is_omitted = std::ranges::count(use.omitted, index) != 0;
      node.outputs.push_back(is_omitted ? ValueId()
                                        : add(graph, "o" + std::to_string(index), Type()));
      if (!is_omitted) graph.outputs.push_back(node.outputs.back());
    }
    ops::complete(*op, node);
    graph.nodes.push_back(std::move(node));
    return infer_types(graph, registry_, log_);
  }

  static ValueId add(Graph& graph, const std::string& name, Type type) {
    Value value;
    value.name = name;
    value.type = std::move(type);
    return add_value(graph, std::move(value));
  }

  std::vector<Tensor> run_graph(const Graph& graph, const Use& use) {
    std::map<std::string, Tensor> inputs;
    for (size_t index = 0; index < use.inputs.size(); ++index) {
      inputs.emplace("i" + std::to_string(index), use.inputs[index]);
    }
    return outputs_of(graph, inputs);
  }

  // The nodes in place of the op give what its reference kernel gives. Other ops than
  // products are written for open sizes, too.
  void expect_same(const Use& use, double tolerance = 2e-5) {
    SCOPED_TRACE(use.op);
    const Graph graph = graph_of(use);
    if (graph.nodes.empty()) return;
    const std::vector<Tensor> expected = run_graph(graph, use);
    for (const bool has_open_sizes : {false, true}) {
      if (has_open_sizes && use.op.starts_with("Fused")) continue;
      const Graph lowered = run(lower_functions, graph_of(use, has_open_sizes));
      EXPECT_THAT(ops_of(lowered), Not(Contains(use.op + "@" + use.domain)));
      if (has_open_sizes) continue;  // the interpreter of this test needs sizes
      const std::vector<Tensor> found = run_graph(lowered, use);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t index = 0; index < found.size(); ++index) {
        SCOPED_TRACE(index);
        EXPECT_EQ(found[index].type(), expected[index].type());
        EXPECT_EQ(found[index].dims(), expected[index].dims());
        EXPECT_THAT(doubles(found[index]),
                    Pointwise(testing::DoubleNear(tolerance), doubles(expected[index])));
      }
    }
  }

  // Not replaced.
  void expect_kept(const Use& use) {
    SCOPED_TRACE(use.op);
    EXPECT_THAT(ops_of(run(lower_functions, graph_of(use))),
                ElementsAre(use.op + "@" + use.domain));
  }

  static std::vector<std::string> ops_of(const Graph& graph) {
    std::vector<std::string> ops;
    for (const Node& node : graph.nodes) ops.push_back(node.op + "@" + node.domain);
    return ops;
  }

  static std::vector<double> doubles(const Tensor& tensor) {
    std::vector<double> values(static_cast<size_t>(tensor.elements()));
    ops::convert_elements(tensor.type(), tensor.data(), DataType::Float64, values.data(),
                          tensor.elements());
    return values;
  }

  static Tensor halves(const Tensor& tensor) {
    Tensor result(DataType::Float16, tensor.dims());
    ops::convert_elements(tensor.type(), tensor.data(), result.type(), result.mutable_data(),
                          tensor.elements());
    return result;
  }
};

TEST_F(LowerFunctions, LeavesOtherOpsAlone) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{2})).node("y", "Relu", {"x"}).output("y");
  EXPECT_EQ(run(lower_functions, graph).nodes.size(), 1);
  EXPECT_TRUE(changes_.empty());
}

TEST_F(LowerFunctions, FusedProducts) {
  const Tensor x = noise({1, 4, 5, 6}, 1);
  const Tensor w = noise({6, 2, 3, 2}, 2);
  const Tensor z = noise({1, 6, 5, 6}, 3);
  const auto padded = [](const char* activation, std::vector<float> parameters) {
    return attributes_of({{"activation", activation},
                          {"activation_params", std::move(parameters)},
                          {"group", 2},
                          {"pads", {1, 0, 1, 1}}});
  };
  expect_same({kMicrosoft, "FusedConv", {x, w}, 1, padded("Relu", {})});
  expect_same({kMicrosoft, "FusedConv", {x, w, noise({6}, 4), z}, 1, padded("Tanh", {})});
  expect_same({kMicrosoft, "FusedConv", {x, w, {}, z}, 1, padded("LeakyRelu", {0.25F})});
  expect_same({kMicrosoft, "FusedConv", {x, w}, 1, padded("Clip", {-0.5F, 0.75F})});
  expect_same({kMicrosoft, "FusedConv", {x, w}, 1, padded("HardSigmoid", {0.3F, 0.4F})});
  const Tensor a = noise({2, 3, 4, 5}, 5);
  for (const int turn : {0, 1}) {
    const Tensor b = turn == 0 ? noise({2, 3, 5, 7}, 6) : noise({2, 3, 7, 5}, 6);
    expect_same(
        {kMicrosoft, "FusedMatMul", {a, b}, 1, attributes_of({{"transB", turn}, {"alpha", 0.5F}})});
  }
  expect_same({kMicrosoft,
               "FusedMatMul",
               {noise({3, 2, 5, 4}, 7), noise({2, 5, 4, 7}, 8)},
               1,
               attributes_of({{"transBatchA", 1}})});
  expect_same(
      {kMicrosoft,
       "FusedGemm",
       {noise({3, 4}, 1), noise({5, 4}, 2), noise({5}, 3)},
       1,
       attributes_of({{"transB", 1}, {"activation", "LeakyRelu"}, {"activation_alpha", 0.2F}})});
}

TEST_F(LowerFunctions, Gelus) {
  const Tensor x = noise({2, 3, 8}, 1, -4, 4);
  expect_same({kMicrosoft, "Gelu", {x}});
  expect_same({kMicrosoft, "QuickGelu", {x}});
  expect_same({kMicrosoft, "FastGelu", {x}});
  for (const char* op : {"FastGelu", "BiasGelu", "BiasSplitGelu"}) {
    expect_same({kMicrosoft, op, {x, noise({8}, 2)}});
  }
  expect_same({kMicrosoft, "BiasAdd", {x, noise({8}, 2), noise({2, 3, 8}, 3)}});
}

TEST_F(LowerFunctions, Norms) {
  Tensor x = noise({2, 3, 4, 5}, 1);
  for (float& zero : x.mutable_as<float>().first(10)) zero = 0;
  for (const int64_t axis : {-1, 1, 3}) {
    for (const int64_t p : {1, 2}) {
      const Attributes attributes = attributes_of({{"axis", axis}, {"p", p}});
      expect_same({"", "LpNormalization", {x}, 1, attributes});
      expect_same({"", "LpNormalization", {halves(x)}, 1, attributes}, 2e-3);
    }
    expect_same({"", "Hardmax", {x}, 1, attributes_of({{"axis", axis}})});
  }
  expect_same({"", "Hardmax", {halves(x)}});
  for (const int64_t p : {1, 2}) {
    expect_same({"", "GlobalLpPool", {x}, 1, attributes_of({{"p", p}})});
  }
  expect_kept({"", "GlobalLpPool", {x}, 1, attributes_of({{"p", int64_t{3}}})});
  expect_same({"", "MeanVarianceNormalization", {x}, 1, attributes_of({{"axes", {0, 2, 3}}})});
  expect_same({"", "MeanVarianceNormalization", {x}, 1, attributes_of({{"axes", {-1}}})});
}

TEST_F(LowerFunctions, SixteenBitsInFloat32) {
  const std::vector<Use> uses = {
      {"", "MatMul", {halves(noise({2, 3, 4}, 1)), halves(noise({4, 5}, 2))}},
      {"", "Softmax", {halves(noise({2, 3, 8}, 3))}},
      {"",
       "MaxPool",
       {halves(noise({1, 2, 5, 5}, 4))},
       1,
       attributes_of({{"kernel_shape", {3, 3}}})},
      {"", "Conv", {halves(noise({1, 2, 5, 5}, 4)), halves(noise({3, 2, 3, 3}, 5))}},
  };
  for (const Use& use : uses) {
    SCOPED_TRACE(use.op);
    const std::vector<Tensor> expected = run_graph(graph_of(use), use);
    const Graph lowered = run(lower_functions, graph_of(use));
    EXPECT_EQ(lowered.nodes.size(), use.inputs.size() + 2);
    EXPECT_THAT(ops_of(lowered), Contains("Cast@"));
    const std::vector<Tensor> found = run_graph(lowered, use);
    ASSERT_EQ(found[0].type(), DataType::Float16);
    EXPECT_THAT(doubles(found[0]), Pointwise(testing::DoubleNear(4e-3), doubles(expected[0])));
  }
  const Use wide = {"", "MatMul", {noise({3, 4}, 1), noise({4, 5}, 2)}};
  expect_kept(wide);
}

TEST_F(LowerFunctions, OpsUnderAnotherName) {
  const Tensor w = noise({3, 2, 3, 3}, 2);
  const Attributes strides = attributes_of({{"strides", {2, 1}}});
  expect_same(
      {kMicrosoft, "ConvTransposeWithDynamicPads", {noise({1, 3, 4, 5}, 1), w}, 1, strides});
  // Pads of a run are no attribute.
  expect_kept({kMicrosoft,
               "ConvTransposeWithDynamicPads",
               {noise({1, 3, 4, 5}, 1), w, ints({4}, {1, 0, 0, 1})},
               1,
               strides});
  expect_same({kMicrosoft, "Trilu", {noise({2, 4, 5}, 1)}, 1, attributes_of({{"upper", 0}})}, 0);
}

TEST_F(LowerFunctions, PadsThatAreKnown) {
  GraphBuilder made = builder();
  made.input("x", float_type(Shape{1, 3, 4, 5})).constant("w", noise({3, 2, 3, 3}, 2));
  made.constant("pads", ints({4}, {1, 0, 0, 1}));
  made.node("y", "com.microsoft.ConvTransposeWithDynamicPads", {"x", "w", "pads"}).output("y");
  const std::map<std::string, Tensor> inputs = {{"x", noise({1, 3, 4, 5}, 1)}};
  const Tensor expected = outputs_of(infer_types(made.graph(), registry_, log_), inputs)[0];
  const Graph lowered = run(lower_functions, made);
  EXPECT_THAT(ops_of(lowered), ElementsAre("ConvTranspose@"));
  const Tensor found = outputs_of(lowered, inputs)[0];
  EXPECT_EQ(found.dims(), expected.dims());
  EXPECT_THAT(doubles(found), Pointwise(testing::DoubleNear(2e-5), doubles(expected)));
}

TEST_F(LowerFunctions, Normalisations) {
  const Tensor x = noise({2, 3, 8}, 1);
  const Tensor skip = noise({2, 3, 8}, 2);
  const Tensor scale = noise({8}, 3);
  const Tensor shift = noise({8}, 4);
  expect_same({"", "RMSNormalization", {x, scale}});
  expect_same({"", "RMSNormalization", {halves(x), halves(scale)}}, 2e-3);
  expect_same({"", "RMSNormalization", {x, noise({3, 8}, 3)}, 1, attributes_of({{"axis", 1}})});
  expect_same({"", "SimplifiedLayerNormalization", {x, scale}, 2});
  expect_same({kMicrosoft, "SkipLayerNormalization", {x, skip, scale, shift}});
  expect_same({kMicrosoft, "SkipLayerNormalization", {x, skip, scale, {}, shift}, 4, {}, {1, 2}});
  expect_same({kMicrosoft, "SkipLayerNormalization", {x, noise({3, 8}, 5), scale}});
  expect_same(
      {kMicrosoft, "SkipSimplifiedLayerNormalization", {x, skip, scale, shift}, 4, {}, {1, 2}});
  const Tensor words = ints({2, 3}, {0, 1, 2, 3, 4, 0});
  const Tensor segments = ints({2, 3}, {0, 1, 0, 1, 1, 0});
  const auto as_int32 = [](const Tensor& tensor) {
    Tensor result(DataType::Int32, tensor.dims());
    ops::convert_elements(tensor.type(), tensor.data(), result.type(), result.mutable_data(),
                          tensor.elements());
    return result;
  };
  expect_same({kMicrosoft,
               "EmbedLayerNormalization",
               {as_int32(words), as_int32(segments), noise({5, 8}, 6), noise({4, 8}, 7),
                noise({2, 8}, 8), scale, shift},
               3,
               {},
               {1}});
  expect_same({kMicrosoft,
               "EmbedLayerNormalization",
               {as_int32(words), {}, noise({5, 8}, 6), noise({4, 8}, 7), {}, scale, shift},
               2});
  const Tensor mask = ints({2, 3}, {1, 1, 0, 1, 2, 0});
  expect_same(
      {kMicrosoft,
       "EmbedLayerNormalization",
       {as_int32(words), {}, noise({5, 8}, 6), noise({4, 8}, 7), {}, scale, shift, as_int32(mask)},
       2});
}

TEST_F(LowerFunctions, SoftmaxCrossEntropy) {
  const Tensor scores = noise({4, 3, 2}, 1);
  const Tensor labels = ints({4, 2}, {0, 2, 1, 1, 2, 0, 0, 1});
  const auto use = [&](const Tensor& x, Attributes attributes, std::vector<Tensor> more = {}) {
    std::vector<Tensor> inputs = {x, labels};
    inputs.insert(inputs.end(), more.begin(), more.end());
    return Use{"", "SoftmaxCrossEntropyLoss", inputs, 2, std::move(attributes)};
  };
  expect_same(use(scores, {}));
  expect_same(use(scores, attributes_of({{"reduction", "none"}, {"ignore_index", 1}})));
  expect_same(use(scores, {}, {noise({3}, 2)}));
  expect_same(use(halves(scores), {}), 2e-3);
  expect_kept(use(scores, attributes_of({{"reduction", "sum"}})));
}

TEST_F(LowerFunctions, Attention) {
  const auto use = [](Tensor query, Tensor key, Tensor value, std::vector<Tensor> others = {},
                      Attributes attributes = {}, size_t outputs = 1) {
    std::vector<Tensor> inputs = {std::move(query), std::move(key), std::move(value)};
    inputs.insert(inputs.end(), others.begin(), others.end());
    return Use{"", "Attention", inputs, outputs, std::move(attributes)};
  };
  const Tensor query = noise({2, 4, 3, 8}, 1);
  const Tensor key = noise({2, 4, 5, 8}, 2);
  const Tensor value = noise({2, 4, 5, 6}, 3);
  expect_same(use(query, key, value));
  expect_same(use(query, key, value, {}, attributes_of({{"is_causal", 1}, {"scale", 0.5F}})));
  expect_same(use(query, key, value, {noise({3, 5}, 4)}));
  const Tensor mask = bools({3, 5}, {1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1});
  expect_same(use(query, key, value, {mask}));
  expect_same(use(query, key, value, {mask}, attributes_of({{"is_causal", 1}})));
  const std::vector<Tensor> past = {{}, noise({2, 4, 2, 8}, 5), noise({2, 4, 2, 6}, 6)};
  expect_same(use(query, key, value, past, attributes_of({{"is_causal", 1}}), 3));
  // Heads that share keys.
  const Tensor one_key = noise({2, 2, 5, 8}, 7);
  const Tensor one_value = noise({2, 2, 5, 6}, 8);
  expect_same(use(query, one_key, one_value, {}, attributes_of({{"is_causal", 1}})));
  expect_same(use(query, one_key, one_value, {noise({2, 1, 3, 5}, 9)}));
  expect_same(use(noise({2, 3, 32}, 1), noise({2, 5, 16}, 2), noise({2, 5, 12}, 3), {},
                  attributes_of({{"q_num_heads", 4}, {"kv_num_heads", 2}})));
  expect_same(use(halves(query), halves(key), halves(value), {halves(noise({3, 5}, 4))}), 2e-3);
}

TEST_F(LowerFunctions, AttentionInOtherForms) {
  const Tensor query = noise({2, 4, 3, 8}, 1);
  expect_kept({"", "Attention", {query, query, query}, 1, attributes_of({{"softcap", 2.0F}})});
  expect_kept({"", "Attention", {query, query, query}, 4});
  // A mask for fewer keys.
  expect_kept(
      {"", "Attention", {query, noise({2, 4, 5, 8}, 2), noise({2, 4, 5, 8}, 3), noise({3, 4}, 4)}});
}

TEST_F(LowerFunctions, MultiHeadAttention) {
  const auto use = [](std::vector<Tensor> inputs, size_t outputs = 1) {
    return Use{kMicrosoft, "MultiHeadAttention", std::move(inputs), outputs,
               attributes_of({{"num_heads", 4}})};
  };
  const Tensor query = noise({2, 3, 32}, 1);
  const Tensor key = noise({2, 5, 32}, 2);
  const Tensor value = noise({2, 5, 16}, 3);
  Tensor padding(DataType::Int32, {2, 5});
  std::ranges::fill(padding.mutable_as<int32_t>(), 1);
  padding.mutable_as<int32_t>()[4] = 0;
  padding.mutable_as<int32_t>()[8] = 0;
  expect_same(use({query, key, value}));
  expect_same(use({query, key, value, noise({80}, 4)}));
  expect_same(use({query, key, value, {}, padding}));
  expect_same(use({query, key, value, {}, {}, noise({1, 4, 3, 5}, 5)}));
  expect_same(
      use({query, key, value, {}, {}, {}, noise({2, 4, 2, 8}, 6), noise({2, 4, 2, 4}, 7)}, 3));
  expect_same(use({query, noise({2, 4, 5, 8}, 2), noise({2, 4, 5, 4}, 3)}));
}

}  // namespace
}  // namespace tessera
