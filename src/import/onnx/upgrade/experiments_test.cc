#include "base/errors/error_test.h"
#include "import/onnx/upgrade/upgrade_test.h"

namespace tessera::onnx_import {
namespace {

void set_alpha_and_beta(onnx::NodeProto& node) {
  attribute(node, "alpha").set_f(2);
  attribute(node, "beta").set_f(3);
}

const UpgradeCase kExperimentCases[] = {
    {"broadcasts by attribute",
     "Affine",
     1,
     [](auto& node, auto&) { set_alpha_and_beta(node); },
     {"Mul 6 broadcast=1 (x, float32 [2])", "Add 6 broadcast=1 (n#product, float32 [3])"}},
    {"broadcasts as NumPy",
     "Affine",
     9,
     [](auto& node, auto&) { set_alpha_and_beta(node); },
     {"Mul 7 (x, float32 [2])", "Add 7 (n#product, float32 [3])"}},
    {"of other elements",
     "Scale",
     7,
     [](auto& node, auto& graph) {
       set_type(*graph.add_input(), "d", {2}, onnx::TensorProto::FLOAT16);
       add_node(graph, "Relu", {"d"}, {"e"}, "relu");
       node.set_input(0, "e");
     },
     {"Relu 6 (d)", "Mul 7 (e, float16 ...)"}},
    {"of elements of a Cast",
     "Scale",
     7,
     [](auto& node, auto& graph) {
       attribute(add_node(graph, "Cast", {"x"}, {"d"}, "cast"), "to").set_i(11);
       node.set_input(0, "d");
     },
     {"Cast 6 to=11 (x)", "Mul 7 (d, float64 ...)"}},
    {"of elements that have no fractions",
     "Scale",
     7,
     [](auto& node, auto& graph) {
       set_type(*graph.add_input(), "d", {2}, onnx::TensorProto::STRING);
       node.set_input(0, "d");
     },
     {"Mul 7 (d, float32 [1])"}},
    {"fills a shape",
     "ConstantFill",
     4,
     [](auto& node, auto&) {
       node.clear_input();
       set_ints(node, "shape", {2, 3});
       attribute(node, "value").set_f(4);
     },
     {"ConstantOfShape 9 value=float32 1 [4] (int64 2 [2 3])"}},
    {"fills the shape of its input",
     "ConstantFill",
     4,
     [](auto& node, auto&) { attribute(node, "dtype").set_i(7); },
     {"Shape 1 (x)", "ConstantOfShape 9 value=int64 1 [0] (n#sizes)"}},
    {"fills what its input says, and more",
     "ConstantFill",
     4,
     [](auto& node, auto&) {
       attribute(node, "input_as_shape").set_i(1);
       set_ints(node, "extra_shape", {5});
     },
     {"Cast 6 to=7 (x)", "Concat 4 axis=0 (n#sizes, int64 1 [5])",
      "ConstantOfShape 9 value=float32 1 [0] (n#all_sizes)"}},
    {"borders",
     "Crop",
     1,
     [](auto& node, auto&) { set_ints(node, "border", {1, 2, 0, 3}); },
     {"Slice 1 axes=[2 3] ends=[-3 9223372036854775807] starts=[2 1] (x)"}},
    {"a size",
     "Crop",
     1,
     [](auto& node, auto&) {
       set_ints(node, "border", {1, 2, 0, 3});
       set_ints(node, "scale", {5, 6});
     },
     {"Slice 1 axes=[2 3] ends=[7 7] starts=[2 1] (x)"}},
    {"positions as inputs",
     "DynamicSlice",
     1,
     [](auto& node, auto& graph) {
       for (const char* name : {"starts", "ends"}) {
         set_type(*graph.add_input(), name, {1}, onnx::TensorProto::INT64);
         node.add_input(name);
       }
     },
     {"Slice 10 (x, starts, ends)"}},
    {"a bias of each channel",
     "ImageScaler",
     6,
     [](auto& node, auto&) {
       attribute(node, "scale").set_f(2);
       onnx::AttributeProto& bias = attribute(node, "bias");
       for (const float number : {1.0F, 2.0F, 3.0F}) bias.add_floats(number);
     },
     {"Mul 6 broadcast=1 (x, float32 [2])",
      "Add 6 axis=1 broadcast=1 (n#product, float32 3 [1 2 3])"}},
    {"the same with NumPy's broadcasting",
     "ImageScaler",
     8,
     [](auto& node, auto&) { attribute(node, "bias").add_floats(1); },
     {"Mul 7 (x, float32 [1])", "Add 7 (n#product, float32 1 1 1 [1])"}},
    {"only the mean",
     "MeanVarianceNormalization",
     1,
     [](auto& node, auto&) { attribute(node, "normalize_variance").set_i(0); },
     {"ReduceMean 1 axes=[0 2 3] keepdims=1 (x)", "Sub 7 (x, n#mean)"}},
    {"functions of scaled inputs",
     "ScaledTanh",
     1,
     [](auto& node, auto&) { set_alpha_and_beta(node); },
     {"Mul 6 broadcast=1 (x, float32 [3])", "Tanh 6 (n#product)",
      "Mul 6 broadcast=1 (n#function, float32 [2])"}},
    {"another function",
     "ParametricSoftplus",
     7,
     [](auto& node, auto&) { set_alpha_and_beta(node); },
     {"Mul 7 (x, float32 [3])", "Softplus 1 (n#product)", "Mul 7 (n#function, float32 [2])"}},
    {"an op of later operator sets",
     "ThresholdedRelu",
     1,
     [](auto& node, auto&) { attribute(node, "alpha").set_f(0.5); },
     {"ThresholdedRelu 10 alpha=0.5 (x)"}},
};

TEST(Experiments, BecomeNodesOfOperatorSets) {
  for (const UpgradeCase& row : kExperimentCases) {
    SCOPED_TRACE(std::string(row.op) + ": " + row.what);
    if (row.op == std::string("MeanVarianceNormalization") &&
        all_ops().find("", row.op) == nullptr) {
      continue;
    }
    const ImportedModel model = import_with_all_ops(model_of(row));
    EXPECT_EQ(node_texts(model.graph), row.expected);
    EXPECT_EQ(explain_illegal(model.graph), "");
  }
}

TEST(Experiments, WrongNodesAreRefused) {
  const auto error_of_node = [](const char* op, int opset, void (*change)(onnx::NodeProto& node)) {
    UpgradeCase row = {"", op, opset, [](auto&, auto&) {}, {}};
    onnx::ModelProto model = model_of(row);
    change(*model.mutable_graph()->mutable_node(0));
    return error_of([&] { import_with_all_ops(model); });
  };
  EXPECT_THAT(error_of_node("Affine", 10, [](auto&) {}),
              testing::HasSubstr("ONNX had it as an experiment until version 9, but the model "
                                 "imports version 10 of domain 'ai.onnx'"));
  EXPECT_THAT(error_of_node("GRUUnit", 1, [](auto&) {}),
              testing::HasSubstr("ONNX had it as an experiment, in no operator set"));
  EXPECT_THAT(error_of_node("ScaledTanh", 1, [](auto&) {}),
              testing::HasSubstr("ScaledTanh version 1 requires it"));
  EXPECT_THAT(error_of_node("Crop", 1, [](auto& node) { set_ints(node, "border", {1, -1, 0, 0}); }),
              testing::HasSubstr("expected 4 sizes in 'border' (left, top, right, bottom), found "
                                 "[1, -1, 0, 0]"));
  EXPECT_THAT(error_of_node("Crop", 1,
                            [](auto& node) {
                              set_ints(node, "border", {0, 0, 0, 0});
                              set_ints(node, "scale", {1});
                            }),
              testing::HasSubstr("expected a height and a width in 'scale', found [1]"));
  EXPECT_THAT(
      error_of_node("ConstantFill", 1, [](auto& node) { attribute(node, "dtype").set_i(27); }),
      testing::HasSubstr("elements of float6e2m3 are not supported"));
}

}  // namespace
}  // namespace tessera::onnx_import
