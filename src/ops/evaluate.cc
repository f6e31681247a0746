#include "ops/evaluate.h"

#include <algorithm>
#include <memory_resource>
#include <utility>

#include "base/errors/check.h"
#include "ops/schema.h"
#include "tessera/error.h"

namespace tessera::ops {
namespace {

std::optional<std::vector<Dim>> shape_elements(const Tensor& tensor) {
  if (tensor.elements() > kMaxShapeElements) return std::nullopt;
  std::vector<Dim> elements;
  if (tensor.type() == DataType::Int64) {
    for (const int64_t value : tensor.as<int64_t>()) elements.emplace_back(value);
    return elements;
  }
  if (tensor.type() == DataType::Int32) {
    for (const int32_t value : tensor.as<int32_t>()) elements.emplace_back(int64_t{value});
    return elements;
  }
  return std::nullopt;
}

TensorView view_of(const Tensor& tensor) {
  if (tensor.is_empty()) return {};
  return {tensor.type(), tensor.dims(), tensor.data(), tensor.elements()};
}

}  // namespace

InferInput infer_input(const Tensor& tensor) {
  if (tensor.is_empty()) return {};
  InferInput input;
  input.is_present = true;
  input.type = Type::tensor(tensor.type(), shape_from(tensor.dims()));
  // No rule reads strings.
  if (!tensor.has_elements() || tensor.is_strings()) return input;
  input.constant = &tensor;
  input.elements = shape_elements(tensor);
  return input;
}

Answer ask(const Op& op, const Node& node, std::vector<InferInput> inputs) {
  TESSERA_CHECK(op.infer != nullptr, "import refuses ops without a rule");
  check_types(op, node, inputs);
  InferContext context(op, node, inputs);
  op.infer(context);
  return {.outputs = std::move(context.outputs()), .is_final = !context.has_unresolved_inputs()};
}

InferAnswer infer_again(const Op& op, const Node& node, std::span<const InferInput> inputs) {
  InferContext context(op, node, inputs);
  op.infer(context);
  return {std::move(context.outputs()), context.constants_read()};
}

std::vector<InferOutput> infer(const Op& op, const Node& node, std::vector<InferInput> inputs) {
  return ask(op, node, std::move(inputs)).outputs;
}

std::vector<Tensor> evaluate(const Op& op, const Node& node, std::span<const Tensor> inputs,
                             ThreadPool& pool) {
  std::vector<InferInput> known;
  for (const Tensor& input : inputs) known.push_back(infer_input(input));
  const std::vector<InferOutput> inferred = infer(op, node, std::move(known));
  std::vector<Tensor> outputs(node.outputs.size());
  for (size_t index = 0; index < outputs.size(); ++index) {
    if (node.outputs[index].is_none()) continue;
    const Type& type = inferred[index].type;
    TESSERA_CHECK(type.is_known_tensor() || !op.domain.empty(),
                  "with every input known, every output shape is");
    if (!type.is_known_tensor()) {
      throw Error(ErrorKind::Unsupported, location_of(node),
                  "the type rule of op '" + op.name + "' of domain '" + op.domain +
                      "' leaves output " + std::to_string(index) +
                      " open although every input is known, found " + text(type));
    }
    outputs[index] = Tensor(type.element, dims_from(*type.shape));
  }
  run_kernel(op, node, inputs, outputs, pool);
  return outputs;
}

void run_kernel(const Op& op, const Node& node, std::span<const Tensor> inputs,
                std::span<Tensor> outputs, ThreadPool& pool, std::shared_ptr<const void>* kept) {
  if (op.kernel == nullptr) {
    throw Error(ErrorKind::Unsupported, location_of(node), "its op has no reference kernel");
  }
  std::vector<TensorView> input_views;
  for (const Tensor& input : inputs) input_views.push_back(view_of(input));
  std::vector<MutableTensorView> output_views;
  for (Tensor& output : outputs) {
    if (output.is_empty()) {
      output_views.emplace_back();
    } else {
      output_views.push_back(
          {output.type(), output.dims(), output.mutable_data(), output.elements()});
    }
  }
  std::shared_ptr<const void> own;
  std::shared_ptr<const void>& prepared = kept == nullptr ? own : *kept;
  if (prepared == nullptr) prepared = prepare_node(op, node, inputs);
  op.kernel(
      {node, input_views, output_views, pool, *std::pmr::get_default_resource(), prepared.get()});
}

}  // namespace tessera::ops
