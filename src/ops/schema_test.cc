#include "ops/schema.h"

#include "base/errors/error_test.h"
#include "ops/registry.h"

namespace tessera::ops {
namespace {

Op sample_op() {
  return {.name = "Sample",
          .versions = {1, 7, 13},
          .inputs = {{"X", "T"}, {"scale", "T", Arity::Optional, 7}},
          .outputs = {{"Y", "T"}},
          .type_variables = {{"T", kFloatTypes}},
          .attributes = {{"axis", AttributeKind::Int, int64_t{1}, 1, 12},
                         {"axis", AttributeKind::Int, int64_t{-1}, 13},
                         {"size", AttributeKind::Ints, std::nullopt, 7, kAnyVersion, true}}};
}

Node sample_node(int version, size_t inputs) {
  Node node;
  node.name = "n";
  node.op = "Sample";
  node.version = version;
  for (size_t index = 0; index < inputs; ++index) node.inputs.push_back({int32_t(index)});
  node.outputs = {{9}};
  return node;
}

std::string message_of(const Op& op, Node node) {
  return error_of([&] { complete(op, node); });
}

TEST(Schema, ANodeMeansTheNewestVersionInItsOperatorSet) {
  EXPECT_EQ(version_in(sample_op(), 6), 1);
  EXPECT_EQ(version_in(sample_op(), 12), 7);
  EXPECT_EQ(version_in(sample_op(), 28), 13);
  Op retired = sample_op();
  retired.last_version = 9;
  EXPECT_EQ(version_in(retired, 10), std::nullopt);
}

TEST(Schema, DefaultsAreThoseOfTheVersion) {
  Node old = sample_node(1, 1);
  complete(sample_op(), old);
  EXPECT_EQ(old.attributes.get_int("axis"), 1);
  Node recent = sample_node(13, 1);
  recent.attributes.set("size", std::vector<int64_t>{2});
  complete(sample_op(), recent);
  EXPECT_EQ(recent.attributes.get_int("axis"), -1);
}

TEST(Schema, VersionsAddTypes) {
  const TypeVariable types = {"T", {DataType::Float32}, small_types_since(21)};
  EXPECT_EQ(types.types_in(19).text(), "float32");
  EXPECT_EQ(types.types_in(21).text(),
            "float32, float8e4m3fn, float8e4m3fnuz, float8e5m2, float8e5m2fnuz, int4 or uint4");
  EXPECT_FALSE(types.types_in(23).contains(DataType::Float8E8M0));
  EXPECT_TRUE(types.types_in(24).contains(DataType::Float8E8M0));
  EXPECT_TRUE(types.types_in(25).contains(DataType::UInt2));

  Op op = sample_op();
  op.type_variables = {types};
  const InferInput input = {.is_present = true, .type = Type::tensor(DataType::Int4)};
  EXPECT_EQ(error_of([&] { check_types(op, sample_node(13, 1), {{input}}); }),
            "InvalidModel: node 'n' (Sample), input 'X': expected elements of float32, found int4");
  check_types(op, sample_node(21, 1), {{input}});
}

TEST(Schema, WhatDoesNotFitIsNamed) {
  EXPECT_EQ(message_of(sample_op(), sample_node(13, 1)),
            "InvalidModel: node 'n' (Sample), attribute 'size': Sample version 13 requires it, but "
            "the node leaves it out");
  EXPECT_EQ(message_of(sample_op(), sample_node(1, 2)),
            "InvalidModel: node 'n' (Sample): Sample version 1 takes at most 1 inputs, found 2");
  EXPECT_EQ(message_of(sample_op(), sample_node(1, 0)),
            "InvalidModel: node 'n' (Sample), input 'X': Sample version 1 requires it, but the "
            "node leaves it out");
  Node wrong = sample_node(1, 1);
  wrong.attributes.set("axis", 1.0F);
  EXPECT_EQ(message_of(sample_op(), wrong),
            "InvalidModel: node 'n' (Sample), attribute 'axis': expected int, found float");
}

TEST(Schema, InputsOfOneVariableHaveOneType) {
  const auto tensor_of = [](DataType element) {
    InferInput input;
    input.is_present = true;
    input.type = Type::tensor(element);
    return input;
  };
  const std::vector<InferInput> inputs = {tensor_of(DataType::Float32),
                                          tensor_of(DataType::Float16)};
  EXPECT_EQ(error_of([&] { check_types(sample_op(), sample_node(7, 2), inputs); }),
            "InvalidModel: node 'n' (Sample), input 'scale': expected float32 as input 'X' "
            "has, found float16");
}

TEST(Registry, SuggestsNamesThatAreCloseBy) {
  EXPECT_EQ(make_registry().similar("", "SoftMax"), std::vector<std::string>{"Softmax"});
}

}  // namespace
}  // namespace tessera::ops
