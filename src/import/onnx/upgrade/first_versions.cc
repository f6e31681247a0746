// The definitions of ops that operator sets 2 to 6 replaced, and of those that ONNX Runtime has in
// ONNX's own domain in operator sets before ONNX had them.
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "import/onnx/upgrade/upgrade.h"
#include "import/onnx/wire/element_types.h"

namespace tessera::onnx_import {
namespace {

using ops::AttributeSchema;
using ops::Op;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Version 1 of most ops could name inputs whose memory the output takes.
AttributeSchema consumed_inputs() {
  return optional_attribute("consumed_inputs", AttributeKind::Ints);
}

Op without(Op op, std::initializer_list<std::string_view> attributes) {
  for (const std::string_view name : attributes) {
    std::erase_if(op.attributes, [&](const AttributeSchema& each) { return each.name == name; });
  }
  return op;
}

// --- Definitions ---------------------------------------------------------------------------------

Op define_same(const OldOp& old, const Op& newer) {
  return definition_like(old, newer, old.end, {});
}

// Like the next version, with consumed_inputs.
Op define_consuming(const OldOp& old, const Op& newer) {
  return definition_like(old, newer, old.end, {consumed_inputs()});
}

Op define_batch_normalization(const OldOp& old, const Op& newer) {
  return definition_like(old, newer, old.end,
                         {required_attribute("consumed_inputs", AttributeKind::Ints)});
}

Op define_cast(const OldOp& old, const Op& newer) {
  Op op = without(define_same(old, newer), {"to"});
  op.attributes.push_back(required_attribute("to", AttributeKind::String));
  return op;
}

Op define_clip(const OldOp& old, const Op& newer) {
  Op op = without(define_consuming(old, newer), {"max", "min"});
  op.attributes.push_back(optional_attribute("max", AttributeKind::Float));
  op.attributes.push_back(optional_attribute("min", AttributeKind::Float));
  return op;
}

Op define_concat(const OldOp& old, const Op& newer) {
  Op op = without(define_same(old, newer), {"axis"});
  op.attributes.push_back(optional_attribute("axis", AttributeKind::Int));
  return op;
}

Op define_gru(const OldOp& old, const Op& newer) {
  Op op = without(define_same(old, newer), {"direction", "linear_before_reset"});
  op.outputs.back().arity = ops::Arity::Required;
  // ONNX's spelling.
  op.attributes.push_back({"direction", AttributeKind::String, std::string("foward")});
  return op;
}

Op define_lp_pool(const OldOp& old, const Op& newer) {
  Op op = without(define_same(old, newer), {"p"});
  op.attributes.push_back({"p", AttributeKind::Float, 2.0F});
  for (AttributeSchema& attribute : op.attributes) attribute.is_required = false;
  return op;
}

Op define_pad(const OldOp& old, const Op& newer) {
  Op op = without(define_same(old, newer), {"pads"});
  op.attributes.push_back(required_attribute("paddings", AttributeKind::Ints));
  return op;
}

Op define_reshape(const OldOp& /*old*/, const Op& /*newer*/) {
  return {.inputs = {{"data", "T"}},
          .outputs = {{"reshaped", "T"}},
          .attributes = {consumed_inputs(), optional_attribute("shape", AttributeKind::Ints)}};
}

Op define_selu(const OldOp& old, const Op& newer) {
  Op op = without(define_consuming(old, newer), {"alpha", "gamma"});
  op.attributes.push_back({"alpha", AttributeKind::Float, 1.6732F});
  op.attributes.push_back({"gamma", AttributeKind::Float, 1.0507F});
  return op;
}

Op define_split(const OldOp& /*old*/, const Op& /*newer*/) {
  return {.inputs = {{"input", "T"}, {"split", "T", ops::Arity::Optional}},
          .outputs = {{"outputs...", "T", ops::Arity::Variadic}},
          .attributes = {optional_attribute("axis", AttributeKind::Int),
                         optional_attribute("split", AttributeKind::Ints)}};
}

Op define_tile(const OldOp& /*old*/, const Op& /*newer*/) {
  return {.inputs = {{"input", "T"}, {"tiles", "T"}, {"axis", "T"}}, .outputs = {{"output", "T"}}};
}

// --- Conversions ---------------------------------------------------------------------------------

void keep_op(Conversion& conversion) { conversion.become(conversion.node().op); }

void convert_cast(Conversion& conversion) {
  Attributes& attributes = conversion.node().attributes;
  const std::string name = attributes.get_string("to");
  const std::optional<int> type = onnx_type_named(name);
  if (!type)
    conversion.fail("expected 'to' to name an element type, like FLOAT, found '" + name + "'");
  attributes.set("to", int64_t{*type});
  keep_op(conversion);
}

// Version 1 has no bound where none is given; version 6 has the largest number of float32.
void convert_clip(Conversion& conversion) {
  Attributes& attributes = conversion.node().attributes;
  if (!attributes.has("min")) attributes.set("min", -kInfinity);
  if (!attributes.has("max")) attributes.set("max", kInfinity);
  keep_op(conversion);
}

void convert_concat(Conversion& conversion) {
  Attributes& attributes = conversion.node().attributes;
  if (!attributes.has("axis")) attributes.set("axis", int64_t{1});
  keep_op(conversion);
}

void convert_gru(Conversion& conversion) {
  Attributes& attributes = conversion.node().attributes;
  if (attributes.get_string("direction") == "foward") {
    attributes.set("direction", std::string("forward"));
  }
  keep_op(conversion);
}

// The optimiser of ONNX Runtime writes this node into models of all operator sets.
void convert_layer_normalization(Conversion& conversion) {
  conversion.become("LayerNormalization", 17);
}

void convert_lp_pool(Conversion& conversion) {
  Attributes& attributes = conversion.node().attributes;
  const float p = attributes.get_float("p");
  const bool is_whole = std::trunc(p) == p && p >= 1 && p < 0x1p31F;
  if (!is_whole) {
    conversion.fail_unsupported("p is " + std::to_string(p) +
                                "; later versions have only whole numbers from 1 on");
  }
  attributes.set("p", static_cast<int64_t>(p));
  keep_op(conversion);
}

// The text of the attribute gives all beginnings before all ends, as later versions do. The example
// in ONNX's documentation of version 1 has another order, which the one of version 2 corrects.
void convert_pad(Conversion& conversion) {
  Attributes& attributes = conversion.node().attributes;
  attributes.set("pads", *attributes.find_ints("paddings"));
  attributes.erase("paddings");
  keep_op(conversion);
}

void convert_reshape(Conversion& conversion) {
  Node& node = conversion.node();
  const std::vector<int64_t>* shape = node.attributes.find_ints("shape");
  if (shape == nullptr) conversion.fail("expected the attribute 'shape', found none");
  const std::vector<int64_t> dims = {static_cast<int64_t>(shape->size())};
  node.inputs.push_back(
      conversion.add_constant("shape", Tensor::from<int64_t>(DataType::Int64, dims, *shape)));
  node.attributes.erase("shape");
  keep_op(conversion);
}

void convert_split(Conversion& conversion) {
  Node& node = conversion.node();
  // Version 2 has the default 0; of those that ran version 1, some took 0 and others 1.
  if (!node.attributes.has("axis")) {
    conversion.fail_unsupported("it has no attribute 'axis', and ONNX states no default");
  }
  if (node.inputs.size() > 1) {
    if (node.attributes.has("split")) {
      conversion.fail("expected 'split' as an attribute or as an input, found both");
    }
    node.attributes.set("split", conversion.constant_integers(1));
    node.inputs.resize(1);
  }
  keep_op(conversion);
}

// Copies along one axis are a Concat, which needs no rank.
void convert_tile(Conversion& conversion) {
  constexpr int64_t kMaxCopies = 1024;
  Node& node = conversion.node();
  const std::vector<int64_t> tiles = conversion.constant_integers(1);
  const std::vector<int64_t> axis = conversion.constant_integers(2);
  if (tiles.size() != 1 || axis.size() != 1) {
    conversion.fail("expected one number in each of 'tiles' and 'axis', found " +
                    std::to_string(tiles.size()) + " and " + std::to_string(axis.size()));
  }
  if (tiles[0] < 1) conversion.fail("expected at least 1 copy, found " + std::to_string(tiles[0]));
  if (tiles[0] > kMaxCopies) {
    conversion.fail_unsupported("expected at most " + std::to_string(kMaxCopies) +
                                " copies, found " + std::to_string(tiles[0]));
  }
  node.inputs.assign(static_cast<size_t>(tiles[0]), ValueId(node.inputs[0]));
  node.attributes.set("axis", axis[0]);
  conversion.become("Concat");
}

// --- The table -----------------------------------------------------------------------------------

// Every op that has another version in operator set 6 than before: the nodes of an old model then
// are nodes of that operator set, in which they can be exported.

constexpr OldOp consuming(std::string_view name) {
  return {name, 1, 6, name, define_consuming, keep_op};
}

constexpr OldOp kFirstVersions[] = {
    consuming("Abs"),
    consuming("Add"),
    {"BatchNormalization", 1, 6, "BatchNormalization", define_batch_normalization, keep_op},
    {"Cast", 1, 6, "Cast", define_cast, convert_cast},
    consuming("Ceil"),
    {"Clip", 1, 6, "Clip", define_clip, convert_clip},
    {"Concat", 1, 4, "Concat", define_concat, convert_concat},
    consuming("Div"),
    consuming("Dropout"),
    consuming("Elu"),
    consuming("Exp"),
    consuming("Floor"),
    {"GRU", 1, 3, "GRU", define_gru, convert_gru},
    {"Gemm", 1, 6, "Gemm", define_same, keep_op},
    {"GlobalLpPool", 1, 2, "GlobalLpPool", define_lp_pool, convert_lp_pool},
    consuming("HardSigmoid"),
    consuming("InstanceNormalization"),
    {"LayerNormalization", 1, 17, "LayerNormalization", define_same, convert_layer_normalization},
    consuming("LeakyRelu"),
    consuming("Log"),
    {"LpPool", 1, 2, "LpPool", define_lp_pool, convert_lp_pool},
    consuming("Max"),
    consuming("Mean"),
    consuming("Min"),
    consuming("Mul"),
    consuming("Neg"),
    consuming("PRelu"),
    {"Pad", 1, 2, "Pad", define_pad, convert_pad},
    consuming("Reciprocal"),
    consuming("Relu"),
    {"Reshape", 1, 5, "Reshape", define_reshape, convert_reshape},
    {"Selu", 1, 6, "Selu", define_selu, keep_op},
    consuming("Sigmoid"),
    {"Split", 1, 2, "Split", define_split, convert_split},
    consuming("Sqrt"),
    consuming("Sub"),
    consuming("Sum"),
    consuming("Tanh"),
    {"Tile", 1, 6, "Concat", define_tile, convert_tile},
};

}  // namespace

std::span<const OldOp> first_versions() { return kFirstVersions; }

}  // namespace tessera::onnx_import
