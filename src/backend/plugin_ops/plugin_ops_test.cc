#include "backend/plugin_ops/plugin_ops.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/plugin_ops/scale_op_test.h"
#include "base/errors/error_test.h"
#include "base/matchers_test.h"
#include "base/tensor/tensors_test.h"
#include "import/onnx/import.h"
#include "infer/infer.h"
#include "onnx.pb.h"
#include "ops/evaluate.h"
#include "ops/registry.h"
#include "ops/schema.h"

namespace tessera {
namespace {

ops::Op op_of(plugin::Op op) { return std::move(Opened(std::move(op)).ops().at(0)); }

Node node_for(const ops::Op& op, size_t inputs, size_t outputs = 1) {
  Node node;
  node.name = "n";
  node.op = op.name;
  node.domain = op.domain;
  node.version = op.versions.front();
  int32_t next = 0;
  for (size_t index = 0; index < inputs; ++index) node.inputs.push_back({next++});
  for (size_t index = 0; index < outputs; ++index) node.outputs.push_back({next++});
  ops::complete(op, node);
  return node;
}

ops::InferInput input_of(std::optional<Shape> shape, DataType element = DataType::Float32) {
  ops::InferInput input;
  input.is_present = true;
  input.type = Type::tensor(element, std::move(shape));
  return input;
}

// The inferred type of the first output.
std::string inferred(const ops::Op& op, std::vector<ops::InferInput> inputs) {
  const Node node = node_for(op, inputs.size());
  return text(ops::infer(op, node, std::move(inputs))[0].type);
}

TEST(MakeOps, SchemaIsThatOfTheTable) {
  const ops::Op op = op_of(scale_op());
  EXPECT_EQ(op.domain, kDomain);
  EXPECT_EQ(op.name, "Scale");
  EXPECT_THAT(op.versions, ElementsAre(1));
  ASSERT_EQ(op.inputs.size(), 2U);
  EXPECT_EQ(op.inputs[1].arity, ops::Arity::Optional);
  ASSERT_EQ(op.type_variables.size(), 1U);
  EXPECT_EQ(op.type_variables[0].types.text(), "float32");
  EXPECT_EQ(op.traits, ops::kElementwise);
  EXPECT_EQ(node_for(op, 1).attributes.get_float("factor"), 2);
}

TEST(MakeOps, RuleAndReferenceRun) {
  const ops::Op op = op_of(scale_op());
  ThreadPool pool(2);
  const std::vector<Tensor> x = {floats({2, 2}, {1, 2, 3, 4})};
  EXPECT_THAT(ops::evaluate(op, node_for(op, 1), x, pool)[0].as<float>(), ElementsAre(2, 4, 6, 8));
  Node node = node_for(op, 2);
  node.attributes.set("factor", 3.0F);
  const std::vector<Tensor> both = {x[0], floats({}, {10})};
  EXPECT_THAT(ops::evaluate(op, node, both, pool)[0].as<float>(), ElementsAre(13, 16, 19, 22));
}

TEST(MakeOps, WithoutAReferenceThereIsNoKernel) {
  plugin::Op without = scale_op();
  without.reference = nullptr;
  const ops::Op op = op_of(without);
  EXPECT_TRUE(op.kernel == nullptr);
  ThreadPool pool(1);
  const std::vector<Tensor> x = {floats({1}, {1})};
  EXPECT_EQ(error_of([&] { ops::evaluate(op, node_for(op, 1), x, pool); }),
            "Unsupported: node 'n' (Scale): its op has no reference kernel");
}

TEST(MakeOps, RulesMayNotLeaveASizeOpenWhenAllIsKnown) {
  plugin::Op op = scale_op();
  op.is_elementwise = false;
  op.infer = [](plugin::InferContext& context) { context.set_output(0, {TESSERA_FLOAT32, {-1}}); };
  const ops::Op made = op_of(op);
  ThreadPool pool(1);
  const std::vector<Tensor> x = {floats({1}, {1})};
  EXPECT_EQ(error_of([&] { ops::evaluate(made, node_for(made, 1), x, pool); }),
            "Unsupported: node 'n' (Scale): the type rule of op 'Scale' of domain 'org.example' "
            "leaves output 0 open although every input is known, found float32 ?n.0.0");
}

TEST(MakeOps, UnknownDimensionsGoInAsMinusOneAndComeOutAsSymbols) {
  const Dim batch = Dim::symbol("batch");
  const ops::Op elementwise = op_of(scale_op());
  EXPECT_EQ(inferred(elementwise, {input_of(Shape{batch, 3})}), "float32 batchx3");
  EXPECT_EQ(inferred(elementwise, {input_of(std::nullopt)}), "float32 ?");
  plugin::Op other = scale_op();
  other.is_elementwise = false;
  EXPECT_EQ(inferred(op_of(other), {input_of(Shape{batch, 3})}), "float32 ?n.0.0x3");
}

TEST(MakeOps, RulesSeeConstantsAndWhatIsLeftOut) {
  plugin::Op repeat = scale_op();
  repeat.is_elementwise = false;
  repeat.inputs = {{"X"},
                   {.name = "counts",
                    .type_variable = "I",
                    .data_types = {TESSERA_INT64},
                    .arity = TESSERA_ARITY_OPTIONAL}};
  repeat.infer = [](plugin::InferContext& context) {
    plugin::Type type = context.input(0);
    const auto* counts = static_cast<const int64_t*>(context.constant(1));
    EXPECT_EQ(context.input_count(), 2U);
    EXPECT_EQ(context.input(1).data_type,
              counts == nullptr ? int32_t{TESSERA_UNDEFINED} : int32_t{TESSERA_INT64});
    if (counts != nullptr) type.dims[0] *= *counts;
    context.set_output(0, type);
  };
  const ops::Op op = op_of(repeat);
  EXPECT_EQ(inferred(op, {input_of(Shape{5})}), "float32 5");
  const Tensor count = ints({1}, {3});
  EXPECT_EQ(inferred(op, {input_of(Shape{5}), ops::infer_input(count)}), "float32 15");
  ops::InferInput elements = input_of(Shape{1}, DataType::Int64);
  elements.elements = std::vector<Dim>{4};
  EXPECT_EQ(inferred(op, {input_of(Shape{5}), elements}), "float32 20");
}

TEST(MakeOps, OutputsThatNobodyReadsAreNotThere) {
  plugin::Op two = scale_op();
  two.outputs = {{"Y"}, {.name = "Z", .arity = TESSERA_ARITY_OPTIONAL}};
  two.infer = [](plugin::InferContext& context) {
    context.set_output(0, context.input(0));
    context.set_output(1, context.input(0));
  };
  two.reference = [](const plugin::Attributes&, plugin::RunContext&,
                     std::span<const plugin::Buffer> inputs,
                     std::span<const plugin::Buffer> outputs) {
    ASSERT_EQ(outputs.size(), 2U);
    EXPECT_FALSE(outputs[1].is_present());
    EXPECT_EQ(outputs[1].request, TESSERA_REQUEST_NONE);
    EXPECT_EQ(outputs[0].request, TESSERA_REQUEST_WRITE);
    *outputs[0].as<float>() = *inputs[0].as<float>();
  };
  const ops::Op op = op_of(two);
  ThreadPool pool(1);
  const std::vector<Tensor> x = {floats({1}, {7})};
  EXPECT_THAT(ops::evaluate(op, node_for(op, 1, 1), x, pool)[0].as<float>(), ElementsAre(7));
}

// --- Rules that are wrong ------------------------------------------------------------------------

using Rule = std::function<void(plugin::InferContext&)>;
using RawRule = int32_t (*)(void* self, tessera_infer_context* context, tessera_error* error);

std::string error_of_rule(Rule rule, bool is_elementwise = true) {
  plugin::Op op = scale_op();
  op.infer = std::move(rule);
  op.is_elementwise = is_elementwise;
  const ops::Op made = op_of(op);
  return error_of([&] { inferred(made, {input_of(Shape{2, 3})}); });
}

std::string error_of_raw_rule(RawRule rule) {
  Opened opened(scale_op());
  tessera_op op = opened.abi.ops[0];
  op.infer = rule;
  op.is_elementwise = 0;
  opened.abi.ops = &op;
  const ops::Op made = opened.ops().at(0);
  return error_of([&] { inferred(made, {input_of(Shape{2, 3})}); });
}

constexpr const char* kFault =
    "DeviceFailed: node 'n' (Scale): the type rule of backend 'mylib' is at fault: ";

TEST(MakeOps, RulesThatLieAreFoundOut) {
  const auto set = [](const plugin::Type& type) -> Rule {
    return [type](plugin::InferContext& context) { context.set_output(0, type); };
  };
  const plugin::Type negative(TESSERA_FLOAT32, {-2, 3});
  const plugin::Type huge(TESSERA_FLOAT32, {int64_t{1} << 40, int64_t{1} << 40});
  const std::pair<Rule, const char*> cases[] = {
      {[](plugin::InferContext&) {}, "it gave output 0 no type"},
      {set(plugin::Type()), "it gave output 0 no data type"},
      {set({99, {2, 3}}), "it gave output 0 the data type 99, which does not exist"},
      {set({TESSERA_INT64, {2, 3}}),
       "it gave output 0 elements of int64, but the op declares float32"},
      {set(negative), "it gave output 0 the dimension -2"},
      {set(huge), "it gave output 0 a shape that cannot be"},
      {set({TESSERA_FLOAT32, {2, 3, 1}}),
       "the op is elementwise and its inputs have the shape 2x3, but it gave output 0 the shape "
       "2x3x1"},
      {[](plugin::InferContext& context) { context.set_output(1, context.input(0)); },
       "it gave a type for output 1 of 1"},
      {[](plugin::InferContext&) { throw std::runtime_error("oops"); }, "oops"},
      {[](plugin::InferContext&) { throw 7; }, "threw something that is no std::exception"},
  };
  for (const auto& [rule, expected] : cases) {
    EXPECT_THAT(error_of_rule(rule), HasSubstr(std::string(kFault) + expected));
  }
  EXPECT_EQ(error_of_rule(set({TESSERA_FLOAT32, {2, 3, 1}}), false), "");
}

TEST(MakeOps, RulesThatBreakTheContractOfCAreFoundOut) {
  EXPECT_EQ(error_of_raw_rule([](void*, tessera_infer_context* context, tessera_error*) -> int32_t {
              const tessera_type type = {TESSERA_FLOAT32, 2, nullptr};
              context->set_output(context, 0, &type);
              return TESSERA_OK;
            }),
            std::string(kFault) + "it gave output 0 the rank 2 without dimensions");
  EXPECT_EQ(error_of_raw_rule([](void*, tessera_infer_context* context, tessera_error*) -> int32_t {
              const tessera_type type = {TESSERA_FLOAT32, -5, nullptr};
              context->set_output(context, 0, &type);
              return TESSERA_OK;
            }),
            std::string(kFault) + "it gave output 0 the rank -5");
  EXPECT_EQ(error_of_raw_rule([](void*, tessera_infer_context* context, tessera_error*) -> int32_t {
              context->set_output(context, 0, nullptr);
              context->set_output(context, -1, nullptr);
              return TESSERA_OK;
            }),
            std::string(kFault) + "it gave a type for output -1 of 1");
  EXPECT_THAT(error_of_raw_rule(
                  [](void*, tessera_infer_context*, tessera_error*) -> int32_t { return 4711; }),
              HasSubstr(kFault));
  EXPECT_THAT(error_of_raw_rule([](void*, tessera_infer_context*, tessera_error*) -> int32_t {
                throw std::runtime_error("through the border");
              }),
              HasSubstr("through the border"));
}

TEST(MakeOps, VerdictsOnTheModelAreNoFaults) {
  const auto error = [](int32_t kind) {
    return error_of_rule([kind](plugin::InferContext&) {
      throw plugin::Failure(kind, "expected an even number of rows, found 5");
    });
  };
  const std::string text =
      ": node 'n' (Scale): expected an even number of rows, found 5 (says the type rule of backend "
      "'mylib')";
  EXPECT_EQ(error(TESSERA_INVALID_MODEL), "InvalidModel" + text);
  EXPECT_EQ(error(TESSERA_UNSUPPORTED), "Unsupported" + text);
}

TEST(MakeOps, FailuresOfTheReferenceNameNodeAndBackend) {
  plugin::Op op = scale_op();
  const auto error = [&](int32_t kind) {
    op.reference = [kind](const plugin::Attributes&, plugin::RunContext&,
                          std::span<const plugin::Buffer>,
                          std::span<const plugin::Buffer>) { throw plugin::Failure(kind, "no"); };
    const ops::Op made = op_of(op);
    ThreadPool pool(1);
    const std::vector<Tensor> x = {floats({1}, {1})};
    return error_of([&] { ops::evaluate(made, node_for(made, 1), x, pool); });
  };
  EXPECT_EQ(error(TESSERA_INVALID_ARGUMENT),
            "InvalidArgument: node 'n' (Scale): no (says the reference kernel of backend 'mylib')");
  EXPECT_EQ(error(TESSERA_INTERNAL),
            "DeviceFailed: node 'n' (Scale): the reference kernel of backend 'mylib' is at fault: "
            "no");
}

TEST(MakeOps, EveryRuleKeepsThePluginOpen) {
  auto token = std::make_shared<int>(0);
  Opened opened(scale_op());
  std::vector<ops::Op> ops = make_ops(opened.abi, token);
  EXPECT_EQ(token.use_count(), 2) << "one for the op";
  const ops::Op copy = ops[0];
  ops.clear();
  EXPECT_EQ(token.use_count(), 2);
}

TEST(MakeOps, RefusesIllegalOnesByName) {
  plugin::Op op = scale_op();
  op.outputs.clear();
  EXPECT_EQ(error_of([&] { op_of(op); }),
            "Unsupported: backend 'mylib': op 'Scale': it has no outputs");
  Opened opened(scale_op());
  const tessera_op twice[] = {opened.abi.ops[0], opened.abi.ops[0]};
  opened.abi.ops = twice;
  opened.abi.op_count = 2;
  EXPECT_EQ(error_of([&] { opened.ops(); }),
            "Unsupported: backend 'mylib': op 'Scale': it is listed twice");
}

// --- In a model ----------------------------------------------------------------------------------

TEST(MakeOps, ModelsMayUseThem) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::OperatorSetIdProto& opset = *model.add_opset_import();
  opset.set_domain(kDomain);
  opset.set_version(1);
  onnx::GraphProto& graph = *model.mutable_graph();
  onnx::ValueInfoProto& input = *graph.add_input();
  input.set_name("x");
  onnx::TypeProto::Tensor& type = *input.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_param("batch");
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("Scale");
  node.set_domain(kDomain);
  node.add_input("x");
  node.add_output("y");
  graph.add_output()->set_name("y");
  const auto load = [&](const ops::Registry& registry) {
    const Log log([](const std::string& message) { ADD_FAILURE() << message; });
    return infer_types(
        import_onnx_bytes(model.SerializeAsString(), "/nonexistent", registry, log).graph, registry,
        log);
  };

  ops::Registry registry = ops::make_registry();
  EXPECT_EQ(error_of([&] { load(registry); }),
            "Unsupported: node 'y' (Scale): Scale of org.example is not in this build (the model "
            "imports version 1 of domain 'org.example')");
  for (ops::Op& op : Opened(scale_op()).ops()) registry.add(std::move(op));
  const Graph loaded = load(registry);
  EXPECT_EQ(text(loaded[loaded.outputs[0]].type), "float32 batch");
  ThreadPool pool(1);
  const std::vector<Tensor> x = {floats({3}, {1, 2, 3})};
  const Node& made = loaded.nodes[0];
  EXPECT_THAT(ops::evaluate(registry.of(made), made, x, pool)[0].as<float>(), ElementsAre(2, 4, 6));

  node.set_op_type("Scales");
  EXPECT_THAT(error_of([&] { load(registry); }), HasSubstr("did you mean 'Scale'?"));
  node.set_op_type("Scale");
  model.mutable_opset_import(1)->set_domain("org.other");
  EXPECT_THAT(error_of([&] { load(registry); }),
              HasSubstr("its domain 'org.example' is not among"));
}

}  // namespace
}  // namespace tessera
