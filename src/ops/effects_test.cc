#include "ops/effects.h"

#include <string>
#include <utility>
#include <vector>

#include "ops/graph_test.h"

namespace tessera::ops {
namespace {

using Given = std::vector<std::pair<std::string, Attribute>>;

struct Row {
  const char* op;
  int opset;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  Given attributes;
  // The attributes, then the inputs, that have an effect.
  std::vector<std::string> expected;
};

std::vector<std::string> effects_of(const Row& row) {
  Attributes attributes;
  for (const auto& [name, value] : row.attributes) attributes.set(name, value);
  GraphBuilder builder(all_ops(), row.opset);
  for (const std::string& input : row.inputs) {
    if (!input.empty()) builder.input(input, float_type());
  }
  const Graph graph =
      builder.node("node", row.op, row.inputs, row.outputs, attributes).output("y").graph();
  const Node& node = graph.nodes[0];
  const Op& op = all_ops().of(node);
  std::vector<std::string> found;
  for (const auto& [name, value] : node.attributes.all()) {
    if (attribute_has_effect(op, node, name)) found.push_back(name);
  }
  for (size_t index = 0; index < node.inputs.size(); ++index) {
    if (input_has_effect(op, node, index)) {
      found.push_back(parameters_of(op.inputs, node.version)[index].name);
    }
  }
  return found;
}

TEST(Effects, AreThoseOfAttributesThatChangeElements) {
  using Ints = std::vector<int64_t>;
  const Row rows[] = {
      {"SpaceToDepth", 28, {"x"}, {"y"}, {{"blocksize", int64_t{2}}}, {}},
      {"SpaceToDepth",
       28,
       {"x"},
       {"y"},
       {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}},
       {"mode"}},
      {"Gelu", 20, {"x"}, {"y"}, {{"approximate", std::string("none")}}, {}},
      {"Gelu", 20, {"x"}, {"y"}, {{"approximate", std::string("tanh")}}, {"approximate"}},
      {"LeakyRelu", 16, {"x"}, {"y"}, {{"alpha", 0.01F}}, {}},
      {"LeakyRelu", 16, {"x"}, {"y"}, {{"alpha", -0.01F}}, {"alpha"}},
      // The default of an older version.
      {"Softmax", 11, {"x"}, {"y"}, {{"axis", int64_t{1}}}, {}},
      {"Softmax", 13, {"x"}, {"y"}, {{"axis", int64_t{1}}}, {"axis"}},
      {"ReduceSum", 11, {"x"}, {"y"}, {{"axes", Ints{1}}, {"keepdims", int64_t{0}}}, {"axes"}},
      {"MaxPool",
       22,
       {"x"},
       {"y"},
       {{"kernel_shape", Ints{2, 2}},
        {"strides", Ints{1, 1}},
        {"dilations", Ints{1, 1}},
        {"pads", Ints{0, 0, 0, 0}},
        {"storage_order", int64_t{1}}},
       {"kernel_shape"}},
      {"MaxPool",
       22,
       {"x"},
       {"y", "i"},
       {{"kernel_shape", Ints{2, 2}},
        {"strides", Ints{1, 2}},
        {"dilations", Ints{2, 1}},
        {"pads", Ints{0, 0, 0, 1}},
        {"storage_order", int64_t{1}}},
       {"dilations", "kernel_shape", "pads", "storage_order", "strides"}},
      {"Clip", 13, {"x", "low"}, {"y"}, {}, {"min"}},
      {"Clip", 13, {"x", "", "high"}, {"y"}, {}, {"max"}},
      {"Split", 13, {"x", "sizes"}, {"y", "z"}, {}, {}},
      {"Add", 6, {"x", "z"}, {"y"}, {{"broadcast", int64_t{1}}, {"axis", int64_t{0}}}, {"axis"}},
      {"Resize", 13, {"x", "region", "factors"}, {"y"}, {}, {"scales"}},
      {"Resize",
       13,
       {"x", "region", "", "sizes"},
       {"y"},
       {{"coordinate_transformation_mode", std::string("tf_crop_and_resize")}},
       {"coordinate_transformation_mode", "roi"}},
      {"GRU",
       14,
       {"x", "w", "r", "", "lengths"},
       {"y"},
       {{"hidden_size", int64_t{2}}, {"linear_before_reset", int64_t{1}}},
       {"linear_before_reset", "sequence_lens"}},
  };
  for (const Row& row : rows) EXPECT_EQ(effects_of(row), row.expected) << row.op;
}

TEST(Effects, OfOpsOfOtherDomainsAreThoseOfEveryAttribute) {
  Op op;
  op.name = "Reduce";
  op.domain = "org.test";
  op.attributes = {{"keepdims", AttributeKind::Int, int64_t{1}}};
  Node node;
  node.op = "Reduce";
  node.version = 1;
  node.attributes.set("keepdims", int64_t{1});
  EXPECT_FALSE(attribute_has_effect(op, node, "keepdims"));
  node.attributes.set("keepdims", int64_t{0});
  EXPECT_TRUE(attribute_has_effect(op, node, "keepdims"));
}

}  // namespace
}  // namespace tessera::ops
