// FlexAttention of ai.onnx.preview: attention whose scores and weights nested graphs may change.
#include <memory_resource>
#include <string>
#include <utility>
#include <vector>

#include "ops/attention/heads.h"
#include "ops/attention/scaled_dot_product.h"
#include "ops/check_shape.h"
#include "ops/control_flow/bodies.h"
#include "ops/onnx_types.h"
#include "ops/op.h"
#include "tessera/error.h"

namespace tessera::ops {
namespace {

// The type of the softmax, and of the tensors that nested graphs take and give; Undefined if the
// node asks for no floating type.
DataType flex_softmax_type(const Node& node, DataType type) {
  const int64_t* precision = node.attributes.find_int("softmax_precision");
  if (precision == nullptr) return type == DataType::Float64 ? type : DataType::Float32;
  const OnnxType* wanted = find_onnx_type(*precision);
  return wanted != nullptr && is_floating(wanted->type) ? wanted->type : DataType::Undefined;
}

// --- Rules ---------------------------------------------------------------------------------------

// The shape of the scores; nullopt if a rank is unknown or wrong, which the rule of the node
// reports.
std::optional<Shape> score_shape(const Type& query, const Type& key) {
  if (!query.shape || !key.shape || query.shape->size() != 4 || key.shape->size() != 4) {
    return std::nullopt;
  }
  return Shape{merged((*query.shape)[0], (*key.shape)[0]), (*query.shape)[1], (*query.shape)[2],
               (*key.shape)[2]};
}

BodyTypes modifier_types(const Node& node, std::span<const Type> inputs, size_t body) {
  const Graph& graph = body_of(node, body);
  if (graph.inputs.size() != 1 || graph.outputs.size() != 1) {
    fail_body(node, body,
              "expected 1 input and 1 output, found " + std::to_string(graph.inputs.size()) +
                  " and " + std::to_string(graph.outputs.size()));
  }
  const DataType type = flex_softmax_type(node, inputs[0].element);
  return {.inputs = {Type::tensor(type, score_shape(inputs[0], inputs[1]))}};
}

void check_modifiers(const InferContext& context, const Type& expected) {
  const Node& node = context.node();
  for (size_t body = 0; body < node.bodies.size(); ++body) {
    const Type& found = body_output_type(node, body, 0);
    if (found.kind == Type::Kind::Unknown) continue;
    const bool fits =
        found.is_tensor() &&
        (found.element == DataType::Undefined || found.element == expected.element) &&
        (!found.shape || !expected.shape || can_be_equal(*found.shape, *expected.shape));
    if (!fits) {
      fail_body(node, body,
                "expected an output of the type of its input (" + text(expected) + "), found " +
                    text(found));
    }
  }
}

void infer_flex_attention(InferContext& context) {
  for (size_t index = 0; index < 3; ++index) {
    const Type& type = context.input(index).type;
    if (type.kind == Type::Kind::Unknown || type.is_tensor()) continue;
    context.fail_input(index, "expected a tensor, found " + text(type));
  }
  const DataType element = context.element(0);
  const DataType softmax = flex_softmax_type(context.node(), element);
  if (softmax == DataType::Undefined) {
    context.fail("attribute 'softmax_precision': expected 1, 10, 11 or 16, found " +
                 std::to_string(context.node().attributes.get_int("softmax_precision")));
  }
  context.set_output(0, element);
  const char* meaning = "batch, heads, positions, head size";
  const Shape* query = shape_of_rank(context, 0, 4, meaning);
  const Shape* key = shape_of_rank(context, 1, 4, meaning);
  const Shape* value = shape_of_rank(context, 2, 4, meaning);
  check_modifiers(context,
                  Type::tensor(softmax, score_shape(context.input(0).type, context.input(1).type)));
  if (query == nullptr || key == nullptr || value == nullptr) return;
  const Dim batch = merged((*query)[0], merged((*key)[0], (*value)[0]));
  const Dim key_heads = merged((*key)[1], (*value)[1]);
  check_groups(context, (*query)[1], key_heads);
  check_dim(context, 0, 0, batch);
  check_shape(context, 1, {batch, key_heads, merged((*key)[2], (*value)[2]), (*query)[3]});
  check_shape(context, 2, {batch, key_heads, merged((*key)[2], (*value)[2]), (*value)[3]});
  context.set_output(0, element, Shape{batch, (*query)[1], (*query)[2], (*value)[3]});
}

// --- Kernels -------------------------------------------------------------------------------------

AttentionProblem flex_problem(const KernelCall& call) {
  const TensorView& query = call.inputs[0];
  const TensorView& key = call.inputs[1];
  const float* scale = call.node.attributes.find_float("scale");
  return {.batch = query.dims[0],
          .query_heads = query.dims[1],
          .key_heads = key.dims[1],
          .queries = query.dims[2],
          .keys = key.dims[2],
          .head_size = query.dims[3],
          .value_size = call.inputs[2].dims[3],
          .scale = scale == nullptr ? default_scale(query.dims[3]) : double{*scale},
          .query = heads_first(query),
          .key = {heads_first(key)},
          .value = {heads_first(call.inputs[2])},
          .output = heads_first(call.outputs[0])};
}

// Of a node without nested graphs.
void run_flex_attention(const KernelCall& call) {
  if (!has_output_elements(call)) return;
  const DataType type = call.inputs[0].type;
  const DataType rounding = softmax_rounding(type, flex_softmax_type(call.node, type));
  attend(call, flex_problem(call), [&](const ScoreRow& row) {
    round_to_type(row.scores, rounding);
    softmax_in_place(row.scores);
    round_to_type(row.scores, rounding);
  });
}

TensorView view_of_tensor(const Tensor& tensor) {
  return {tensor.type(), tensor.dims(), tensor.data(), tensor.elements()};
}

MutableTensorView mutable_view_of(Tensor& tensor) {
  return {tensor.type(), tensor.dims(), tensor.mutable_data(), tensor.elements()};
}

// The rows of all scores as vectors of heads.
MutableHeadView score_rows(Tensor& scores) { return heads_first(mutable_view_of(scores)); }

// Replaces `scores` by the output of the nested graph of this name, if the node has it.
void modify_scores(const ValueCall& call, const std::string& name, Tensor& scores) {
  for (size_t body = 0; body < call.node.bodies.size(); ++body) {
    if (call.node.bodies[body].attribute != name) continue;
    std::vector<Tensor> results = call.bodies->run(body, std::span(&scores, 1));
    const Tensor& result = results.front();
    if (result.type() != scores.type() || result.dims() != scores.dims()) {
      call.fail(name + ": expected " + std::string(tessera::name(scores.type())) + " " +
                dims_text(scores.dims()) + ", found " + std::string(tessera::name(result.type())) +
                " " + dims_text(result.dims()));
    }
    scores = result.owned();
  }
}

// Calls visit(block, scores) with the elements of `scores`, and writes what it leaves there.
void for_each_block_of(const KernelCall& call, const AttentionProblem& problem, Tensor& scores,
                       FunctionRef<void(const ScoreBlock& block, double* scores)> visit) {
  const MutableHeadView rows = score_rows(scores);
  for_each_score_block(call, problem, [&](const ScoreBlock& block, double* buffer) {
    for_each_row(call, problem, block, buffer, [&](const ScoreRow& row) {
      rows.as_const().read(row.batch, row.head, row.query, 0, problem.keys, row.scores.data());
    });
    visit(block, buffer);
    for_each_row(call, problem, block, buffer, [&](const ScoreRow& row) {
      rows.write(row.batch, row.head, row.query, 0, problem.keys, row.scores.data());
    });
  });
}

void run_modified_attention(const ValueCall& call) {
  const Tensor& query = call.inputs[0];
  const Tensor& value = call.inputs[2];
  std::vector<TensorView> inputs;
  for (const Tensor& input : call.inputs) inputs.push_back(view_of_tensor(input));
  Tensor output(query.type(), {query.dims()[0], query.dims()[1], query.dims()[2], value.dims()[3]});
  const std::vector<MutableTensorView> outputs = {mutable_view_of(output)};
  ThreadPool serial(1);
  const KernelCall kernel = {call.node, inputs, outputs, serial, *std::pmr::get_default_resource()};
  const AttentionProblem problem = flex_problem(kernel);
  Tensor scores(flex_softmax_type(call.node, query.type()),
                {problem.batch, problem.query_heads, problem.queries, problem.keys});
  if (scores.elements() == 0 && output.elements() == 0) {
    call.outputs[0] = std::move(output);
    return;
  }
  for_each_block_of(kernel, problem, scores, [&](const ScoreBlock& block, double* buffer) {
    multiply_by_keys(kernel, problem, block, buffer);
  });
  modify_scores(call, "score_mod", scores);
  for_each_block_of(kernel, problem, scores, [&](const ScoreBlock& block, double* buffer) {
    for_each_row(kernel, problem, block, buffer,
                 [&](const ScoreRow& row) { softmax_in_place(row.scores); });
  });
  modify_scores(call, "prob_mod", scores);
  for_each_block_of(kernel, problem, scores, [&](const ScoreBlock& block, double* buffer) {
    multiply_by_values(kernel, problem, block, buffer);
  });
  call.outputs[0] = std::move(output);
}

int64_t flex_attention_flops(const Node&, std::span<const Type> inputs,
                             std::span<const Type> outputs) {
  return attention_flops_of(outputs, (*inputs[1].shape)[2]);
}

}  // namespace

std::vector<Op> flex_attention_ops() {
  return {
      {.name = "FlexAttention",
       .domain = "ai.onnx.preview",
       .versions = {1},
       .inputs = {{"Q", "T1"}, {"K", "T1"}, {"V", "T1"}},
       .outputs = {{"Y", "T1"}},
       .type_variables = {{"T1", kFloatTypes}},
       .attributes = {{"scale", AttributeKind::Float}, {"softmax_precision", AttributeKind::Int}},
       .bodies = {"score_mod", "prob_mod"},
       .infer = infer_flex_attention,
       .flops = flex_attention_flops,
       .kernel = run_flex_attention,
       .value_kernel = run_modified_attention,
       .body_rule = modifier_types}};
}

}  // namespace tessera::ops
