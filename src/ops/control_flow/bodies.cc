#include "ops/control_flow/bodies.h"

#include <utility>
#include <vector>

#include "ops/shape_rules.h"
#include "tessera/error.h"

namespace tessera::ops {
namespace {

constexpr const char* kDeclaredOutput = ", output ";

}  // namespace

const Graph& body_of(const Node& node, size_t body) { return node.bodies[body].graph; }

const Type& body_output_type(const Node& node, size_t body, size_t output) {
  const Graph& graph = body_of(node, body);
  return graph[graph.outputs[output]].type;
}

void fail_body(const Node& node, size_t body, const std::string& message) {
  throw Error(ErrorKind::InvalidModel, location_of(node) + ", " + node.bodies[body].attribute,
              message);
}

void check_body_count(const Node& node, const std::string& what, size_t expected, size_t found) {
  if (expected == found) return;
  fail_body(
      node, 0,
      "expected " + std::to_string(expected) + " " + what + ", found " + std::to_string(found));
}

UnknownDim unknown_dims(const InferContext& context, size_t output) {
  return [&context, output](size_t axis) { return unknown_dim(context, output, axis); };
}

void set_output_type(InferContext& context, size_t output, Type type) {
  if (output >= context.output_count() || context.node().outputs[output].is_none()) return;
  context.outputs()[output].type = std::move(type);
}

void check_single(const InferContext& context, size_t index) {
  const Type& type = context.input(index).type;
  if (type.kind == Type::Kind::Unknown) return;
  const bool may_be_single = type.is_tensor() && (!type.shape || !is_known(*type.shape) ||
                                                  element_count(dims_from(*type.shape)) == 1);
  if (!may_be_single) context.fail_input(index, "expected one element, found " + text(type));
}

const Tensor& single_input(const ValueCall& call, size_t index) {
  const Tensor& input = call.inputs[index];
  if (input.elements() != 1) {
    call.fail("expected one element of input " + std::to_string(index) + ", found " +
              dims_text(input.dims()));
  }
  return input;
}

bool is_true(const ValueCall& call, const Tensor& condition) {
  if (condition.type() != DataType::Bool || condition.elements() != 1) {
    call.fail("expected a condition of one bool, found " + std::string(name(condition.type())) +
              " " + dims_text(condition.dims()));
  }
  return condition.as<uint8_t>()[0] != 0;
}

std::string declared_type_name(const std::string& body, size_t output) {
  return body + kDeclaredOutput + std::to_string(output);
}

bool is_declared_type_name(const std::string& attribute) {
  return attribute.find(kDeclaredOutput) != std::string::npos;
}

Type with_declared_sizes(Type type, const Type* declared) {
  if (declared == nullptr) return type;
  if (type.kind == Type::Kind::Unknown) return *declared;
  if (!type.is_tensor()) return type;
  if (!type.shape) type.shape = declared->shape;
  if (type.shape->size() != declared->shape->size()) return type;
  for (size_t axis = 0; axis < type.shape->size(); ++axis) {
    Dim& dim = (*type.shape)[axis];
    if (!dim.is_known()) dim = (*declared->shape)[axis];
  }
  return type;
}

Tensor no_elements(const Node& node, size_t output) {
  const Type* const declared =
      node.attributes.find_type(declared_type_name(node.bodies[0].attribute, output));
  const Type element = with_declared_sizes(body_output_type(node, 0, output), declared);
  std::vector<int64_t> dims = {0};
  if (element.shape) {
    for (const Dim& dim : *element.shape) dims.push_back(dim.is_known() ? dim.value() : 0);
  }
  return {element.element, std::move(dims)};
}

}  // namespace tessera::ops
