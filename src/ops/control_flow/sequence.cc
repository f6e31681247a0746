// Ops on lists of tensors (ONNX's sequences), and on optionals. https://onnx.ai/onnx/operators
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/control_flow/bodies.h"
#include "ops/control_flow/pieces.h"
#include "ops/onnx_types.h"
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "tessera/error.h"

namespace tessera::ops {
namespace {

using Kind = Type::Kind;

// The type of the elements of a list; unknown if the list is of an unknown type.
Type content_of_list(const InferContext& context, size_t index) {
  const Type& type = context.input(index).type;
  if (type.kind == Kind::Unknown) return {};
  if (type.kind != Kind::Sequence) {
    context.fail_input(index, "expected a sequence, found " + text(type));
  }
  return element_of_list(type.contents.front(), unknown_dims(context, 0));
}

void check_tensor(const InferContext& context, size_t index) {
  const Type& type = context.input(index).type;
  if (type.kind == Kind::Unknown || type.is_tensor()) return;
  context.fail_input(index, "expected a tensor, found " + text(type));
}

// The type of a list that gets the element `added`.
Type list_with(const InferContext& context, const Type& content, size_t added) {
  const Type& type = context.input(added).type;
  std::optional<Type> joined = join_types(content, type, unknown_dims(context, 0));
  if (!joined) {
    context.fail_input(added,
                       "expected " + text(content) + ", as the list has, found " + text(type));
  }
  return element_of_list(*std::move(joined), unknown_dims(context, 0));
}

int64_t index_of(const ValueCall& call, size_t input) {
  const Tensor& tensor = single_input(call, input);
  return tensor.type() == DataType::Int32 ? tensor.as<int32_t>()[0] : tensor.as<int64_t>()[0];
}

// A position in a list of `length`: negative ones count from its end. `last` is the largest one.
int64_t position(const ValueCall& call, size_t input, int64_t length, int64_t last) {
  const int64_t given = index_of(call, input);
  if (given >= -length && given <= last) return given < 0 ? given + length : given;
  call.fail("expected a position from " + std::to_string(-length) + " to " + std::to_string(last) +
            " in a list of " + std::to_string(length) + ", found " + std::to_string(given));
}

std::vector<Tensor> elements_of_list(const Tensor& list) {
  return {list.list().begin(), list.list().end()};
}

// --- Lists ---------------------------------------------------------------------------------------

void infer_list_of(InferContext& context) {
  Type content = context.input(0).type;
  for (size_t index = 1; index < context.input_count(); ++index) {
    content = list_with(context, content, index);
  }
  set_output_type(context, 0, Type::sequence(std::move(content)));
}

void run_list_of(const ValueCall& call) {
  std::vector<Tensor> elements;
  for (const Tensor& element : call.inputs) elements.push_back(element.owned());
  call.outputs[0] = Tensor::sequence(std::move(elements));
}

constexpr int64_t kFloatNumber = 1;  // of TensorProto.DataType

void infer_empty_list(InferContext& context) {
  const int64_t* const given = context.node().attributes.find_int("dtype");
  const int64_t number = given == nullptr ? kFloatNumber : *given;
  const OnnxType* element = find_onnx_type(number);
  if (element == nullptr) {
    context.fail("attribute 'dtype': expected the number of an element type, found " +
                 std::to_string(number));
  }
  if (element->type == DataType::Undefined) {
    context.fail_unsupported("attribute 'dtype': elements of " + std::string(element->name) +
                             " have no kernels");
  }
  set_output_type(context, 0, Type::sequence(Type::tensor(element->type)));
}

void run_empty_list(const ValueCall& call) { call.outputs[0] = Tensor::sequence({}); }

void infer_insertion(InferContext& context) {
  const Type content = content_of_list(context, 0);
  if (context.has_input(2)) check_single(context, 2);
  set_output_type(context, 0, Type::sequence(list_with(context, content, 1)));
}

void run_insertion(const ValueCall& call) {
  const int64_t length = call.inputs[0].elements();
  const int64_t at = call.has_input(2) ? position(call, 2, length, length) : length;
  if (at == length) {
    call.outputs[0] = call.inputs[0].appended(call.inputs[1].owned());
    return;
  }
  std::vector<Tensor> elements = elements_of_list(call.inputs[0]);
  elements.insert(elements.begin() + at, call.inputs[1].owned());
  call.outputs[0] = Tensor::sequence(std::move(elements));
}

void infer_removal(InferContext& context) {
  Type content = content_of_list(context, 0);
  if (context.has_input(1)) check_single(context, 1);
  set_output_type(context, 0, Type::sequence(std::move(content)));
}

void run_removal(const ValueCall& call) {
  std::vector<Tensor> elements = elements_of_list(call.inputs[0]);
  const int64_t length = std::ssize(elements);
  if (length == 0) call.fail("expected a list with an element to remove, found an empty one");
  const int64_t at = call.has_input(1) ? position(call, 1, length, length - 1) : length - 1;
  elements.erase(elements.begin() + at);
  call.outputs[0] = Tensor::sequence(std::move(elements));
}

void infer_list_element(InferContext& context) {
  check_single(context, 1);
  set_output_type(context, 0, content_of_list(context, 0));
}

void run_list_element(const ValueCall& call) {
  const std::span<const Tensor> elements = call.inputs[0].list();
  const int64_t length = std::ssize(elements);
  call.outputs[0] = elements[static_cast<size_t>(position(call, 1, length, length - 1))];
}

void infer_list_length(InferContext& context) {
  content_of_list(context, 0);
  context.set_output(0, DataType::Int64, Shape{});
}

void run_list_length(const ValueCall& call) {
  const auto length = std::ssize(call.inputs[0].list());
  call.outputs[0] = Tensor::from<int64_t>(DataType::Int64, {}, std::vector<int64_t>{length});
}

// --- Lists and tensors ---------------------------------------------------------------------------

bool adds_axis(const Node& node) { return node.attributes.get_int("new_axis") != 0; }

void infer_joined_list(InferContext& context) {
  const Type content = content_of_list(context, 0);
  if (content.kind == Kind::Unknown) return;
  if (!content.is_tensor()) {
    context.fail_input(0, "expected a sequence of tensors, found " + text(context.input(0).type));
  }
  if (!content.shape) return context.set_output(0, content.element);
  const auto rank =
      static_cast<int64_t>(content.shape->size()) + (adds_axis(context.node()) ? 1 : 0);
  const auto axis =
      static_cast<size_t>(context.normalized_axis(context.node().attributes.get_int("axis"), rank));
  Shape shape = *content.shape;
  if (adds_axis(context.node())) shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis), Dim());
  shape[axis] = unknown_dim(context, 0, axis);
  for (size_t other = 0; other < shape.size(); ++other) {
    if (!shape[other].is_known()) shape[other] = unknown_dim(context, 0, other);
  }
  context.set_output(0, content.element, std::move(shape));
}

// Whether both have the same type and the same dimensions, except for `axis` (-1: for none).
bool fit_together(const Tensor& left, const Tensor& right, int64_t axis) {
  if (left.type() != right.type() || left.rank() != right.rank()) return false;
  for (int64_t other = 0; other < left.rank(); ++other) {
    const auto index = static_cast<size_t>(other);
    if (other != axis && left.dims()[index] != right.dims()[index]) return false;
  }
  return true;
}

void run_joined_list(const ValueCall& call) {
  const std::span<const Tensor> elements = call.inputs[0].list();
  if (elements.empty()) call.fail("expected a list with an element, found an empty one");
  const Tensor& first = elements.front();
  const bool adds = adds_axis(call.node);
  const int64_t rank = first.rank() + (adds ? 1 : 0);
  const int64_t given = call.node.attributes.get_int("axis");
  if (given < -rank || given >= rank) {
    call.fail("expected an axis in [" + std::to_string(-rank) + ", " + std::to_string(rank) +
              "), found " + std::to_string(given));
  }
  const int64_t axis = given < 0 ? given + rank : given;
  for (const Tensor& element : elements) {
    if (fit_together(first, element, adds ? -1 : axis)) continue;
    call.fail("expected elements that can be put together along axis " + std::to_string(axis) +
              ", found " + dims_text(first.dims()) + " and " + dims_text(element.dims()));
  }
  if (!adds) {
    call.outputs[0] = concatenate(elements, axis);
    return;
  }
  std::vector<Tensor> longer;
  for (const Tensor& element : elements) {
    std::vector<int64_t> dims = element.dims();
    dims.insert(dims.begin() + axis, 1);
    longer.push_back(element.reshaped(std::move(dims)));
  }
  call.outputs[0] = concatenate(longer, axis);
}

bool keeps_axis(const Node& node) { return node.attributes.get_int("keepdims") != 0; }

void infer_split_list(InferContext& context) {
  check_tensor(context, 0);
  const Type& type = context.input(0).type;
  if (!type.shape) return set_output_type(context, 0, Type::sequence(Type::tensor(type.element)));
  const auto axis = static_cast<size_t>(context.normalized_axis(
      context.node().attributes.get_int("axis"), static_cast<int64_t>(type.shape->size())));
  Shape shape = *type.shape;
  if (context.has_input(1)) {
    shape[axis] = unknown_dim(context, 0, axis);
  } else if (keeps_axis(context.node())) {
    shape[axis] = 1;
  } else {
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
  }
  set_output_type(context, 0,
                  Type::sequence(element_of_list(Type::tensor(type.element, std::move(shape)),
                                                 unknown_dims(context, 0))));
}

// The lengths of the pieces along an axis of `length`.
std::vector<int64_t> split_lengths(const ValueCall& call, int64_t length) {
  if (!call.has_input(1)) return std::vector<int64_t>(static_cast<size_t>(length), 1);
  const Tensor& split = call.inputs[1];
  std::vector<int64_t> given;
  for (int64_t index = 0; index < split.elements(); ++index) {
    given.push_back(split.type() == DataType::Int32
                        ? split.as<int32_t>()[static_cast<size_t>(index)]
                        : split.as<int64_t>()[static_cast<size_t>(index)]);
  }
  if (split.rank() == 0) {
    if (given.front() < 1) {
      call.fail("expected pieces of at least 1, found " + std::to_string(given.front()));
    }
    std::vector<int64_t> lengths;
    for (int64_t begin = 0; begin < length; begin += lengths.back()) {
      lengths.push_back(std::min(given.front(), length - begin));
    }
    return lengths;
  }
  int64_t left = length;
  for (const int64_t each : given) {
    if (each < 0 || each > left) {
      call.fail("expected lengths that add up to " + std::to_string(length) + ", found " +
                std::to_string(each) + " where " + std::to_string(left) + " are left");
    }
    left -= each;
  }
  if (left != 0) {
    call.fail("expected lengths that add up to " + std::to_string(length) + ", found " +
              std::to_string(length - left));
  }
  return given;
}

void run_split_list(const ValueCall& call) {
  const Tensor& whole = call.inputs[0];
  const int64_t given = call.node.attributes.get_int("axis");
  if (given < -whole.rank() || given >= whole.rank()) {
    call.fail("expected an axis in [" + std::to_string(-whole.rank()) + ", " +
              std::to_string(whole.rank()) + "), found " + std::to_string(given));
  }
  const int64_t axis = given < 0 ? given + whole.rank() : given;
  const bool keeps = call.has_input(1) || keeps_axis(call.node);
  std::vector<Tensor> elements;
  int64_t begin = 0;
  for (const int64_t length : split_lengths(call, whole.dims()[static_cast<size_t>(axis)])) {
    Tensor piece = slice(whole, axis, begin, length);
    begin += length;
    if (!keeps) {
      std::vector<int64_t> dims = piece.dims();
      dims.erase(dims.begin() + axis);
      piece = piece.reshaped(std::move(dims));
    }
    elements.push_back(std::move(piece));
  }
  call.outputs[0] = Tensor::sequence(std::move(elements));
}

// --- SequenceMap ---------------------------------------------------------------------------------

BodyTypes map_types(const Node& node, std::span<const Type> inputs, size_t) {
  const Graph& body = node.bodies[0].graph;
  if (body.inputs.size() != inputs.size() || body.outputs.size() < node.outputs.size()) {
    throw Error(ErrorKind::InvalidModel, location_of(node) + ", body",
                "expected " + std::to_string(inputs.size()) + " inputs and " +
                    std::to_string(node.outputs.size()) + " outputs, found " +
                    std::to_string(body.inputs.size()) + " and " +
                    std::to_string(body.outputs.size()));
  }
  if (inputs.front().kind != Kind::Sequence && inputs.front().kind != Kind::Unknown) {
    throw Error(ErrorKind::InvalidModel, location_of(node) + ", input 'input_sequence'",
                "expected a sequence, found " + text(inputs.front()));
  }
  BodyTypes types;
  for (size_t index = 0; index < inputs.size(); ++index) {
    const bool is_list = inputs[index].kind == Kind::Sequence;
    types.inputs.push_back(is_list ? element_of_list(inputs[index].contents.front(),
                                                     [&](size_t axis) {
                                                       return Dim::symbol(
                                                           "?" + node.name + ".element." +
                                                           std::to_string(index) + "." +
                                                           std::to_string(axis));
                                                     })
                                   : inputs[index]);
  }
  return types;
}

void infer_list_map(InferContext& context) {
  const Graph& body = context.node().bodies[0].graph;
  for (size_t output = 0; output < context.output_count(); ++output) {
    set_output_type(context, output,
                    Type::sequence(element_of_list(body[body.outputs[output]].type,
                                                   unknown_dims(context, output))));
  }
}

void run_list_map(const ValueCall& call) {
  const int64_t count = std::ssize(call.inputs[0].list());
  std::vector<std::vector<Tensor>> results(call.outputs.size());
  for (int64_t index = 0; index < count; ++index) {
    std::vector<Tensor> inputs;
    for (const Tensor& input : call.inputs) {
      if (!input.is_sequence()) {
        inputs.push_back(input);
        continue;
      }
      if (std::ssize(input.list()) != count) {
        call.fail("expected lists of " + std::to_string(count) + " elements, found one of " +
                  std::to_string(input.list().size()));
      }
      inputs.push_back(input.list()[static_cast<size_t>(index)]);
    }
    std::vector<Tensor> made = call.bodies->run(0, inputs);
    for (size_t output = 0; output < results.size(); ++output) {
      results[output].push_back(made[output].owned());
    }
  }
  for (size_t output = 0; output < results.size(); ++output) {
    call.outputs[output] = Tensor::sequence(std::move(results[output]));
  }
}

// --- Optionals -----------------------------------------------------------------------------------

void infer_optional_value(InferContext& context) {
  if (context.has_input(0)) {
    return set_output_type(context, 0, Type::optional(context.input(0).type));
  }
  const Type* type = context.node().attributes.find_type("type");
  if (type == nullptr) context.fail("expected an input or the attribute 'type', found neither");
  set_output_type(context, 0, Type::optional(*type));
}

void run_optional_value(const ValueCall& call) {
  if (call.has_input(0)) call.outputs[0] = call.inputs[0].owned();
}

void infer_optional_content(InferContext& context) {
  const Type& type = context.input(0).type;
  set_output_type(context, 0,
                  type.kind == Kind::Optional
                      ? outside_of_graph(type.contents.front(), unknown_dims(context, 0))
                      : type);
}

void run_optional_content(const ValueCall& call) {
  if (!call.has_input(0)) call.fail("expected an optional with a content, found an empty one");
  call.outputs[0] = call.inputs[0].owned();
}

void infer_presence(InferContext& context) { context.set_output(0, DataType::Bool, Shape{}); }

void run_presence(const ValueCall& call) {
  const std::vector<uint8_t> has = {static_cast<uint8_t>(call.has_input(0) ? 1 : 0)};
  call.outputs[0] = Tensor::from<uint8_t>(DataType::Bool, {}, has);
}

// The ops of this file have the same form: values in, values out.
Op value_op(const char* name, const char* output, std::vector<int> versions,
            std::vector<Parameter> inputs, std::vector<AttributeSchema> attributes, InferRule infer,
            ValueKernel kernel) {
  return {.name = name,
          .versions = std::move(versions),
          .inputs = std::move(inputs),
          .outputs = {{output, "V"}},
          .type_variables = {{"I", kIndexTypes}},
          .attributes = std::move(attributes),
          .infer = std::move(infer),
          .flops = no_flops,
          .value_kernel = std::move(kernel)};
}

}  // namespace

std::vector<Op> sequence_ops() {
  const AttributeSchema axis = {.name = "axis", .kind = AttributeKind::Int, .is_required = true};
  const AttributeSchema split_axis = {"axis", AttributeKind::Int, int64_t{0}};
  const Parameter list = {"input_sequence", "S"};
  const Parameter at = {"position", "I", Arity::Optional};
  std::vector<Op> ops = {
      value_op("SequenceConstruct", "output_sequence", {11}, {{"inputs", "T", Arity::Variadic}}, {},
               infer_list_of, run_list_of),
      value_op("SequenceEmpty", "output", {11}, {}, {{"dtype", AttributeKind::Int}},
               infer_empty_list, run_empty_list),
      value_op("SequenceInsert", "output_sequence", {11}, {list, {"tensor", "T"}, at}, {},
               infer_insertion, run_insertion),
      value_op("SequenceErase", "output_sequence", {11}, {list, at}, {}, infer_removal,
               run_removal),
      value_op("SequenceAt", "tensor", {11}, {list, {"position", "I"}}, {}, infer_list_element,
               run_list_element),
      value_op("SequenceLength", "length", {11}, {list}, {}, infer_list_length, run_list_length),
      value_op("ConcatFromSequence", "concat_result", {11}, {list},
               {axis, {"new_axis", AttributeKind::Int, int64_t{0}}}, infer_joined_list,
               run_joined_list),
      value_op("SplitToSequence", "output_sequence", {11, 24},
               {{"input", "T"}, {"split", "I", Arity::Optional}},
               {split_axis, {"keepdims", AttributeKind::Int, int64_t{1}}}, infer_split_list,
               run_split_list),
      value_op("Optional", "output", {15, 28}, {{"input", "V", Arity::Optional}},
               {{"type", AttributeKind::Type}}, infer_optional_value, run_optional_value),
      value_op("OptionalGetElement", "output", {15, 18, 28}, {{"input", "O"}}, {},
               infer_optional_content, run_optional_content),
      value_op("OptionalHasElement", "output", {15, 18, 28},
               {{"input", "O", Arity::Required, 15, 15}, {"input", "O", Arity::Optional, 18}}, {},
               infer_presence, run_presence)};
  Op map = value_op("SequenceMap", "out_sequence", {17},
                    {list, {"additional_inputs", "V", Arity::Variadic, 1, kAnyVersion, true}}, {},
                    infer_list_map, run_list_map);
  map.outputs = {{"out_sequence", "S", Arity::Variadic}};
  map.bodies = {"body"};
  map.body_rule = map_types;
  ops.push_back(std::move(map));
  return ops;
}

}  // namespace tessera::ops
