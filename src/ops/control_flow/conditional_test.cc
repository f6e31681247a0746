#include "ops/control_flow/body_runner_test.h"
#include "ops/control_flow/join_types.h"

namespace tessera::ops {
namespace {

const Dim kJoinedBatch = Dim::symbol("batch");

Node if_node(const Type& then_type, const Type& else_type) {
  return node_with_bodies(
      "If", 17, {}, {true}, 1,
      {typed_body("then_branch", {}, {then_type}), typed_body("else_branch", {}, {else_type})});
}

std::string if_type(const Type& then_type, const Type& else_type) {
  return inferred_texts(if_node(then_type, else_type), {bools_of(Shape{})})[0];
}

TEST(If, RunsTheBranchThatTheConditionSelects) {
  Node node = if_node(floats_of(Shape{1}), floats_of(Shape{1}));
  const auto branch = [&](size_t body, std::span<const Tensor> inputs) {
    EXPECT_TRUE(inputs.empty());
    const bool is_then = node.bodies[body].attribute == "then_branch";
    return std::vector<Tensor>{floats({is_then ? 1.0F : 2.0F})};
  };
  for (int order = 0; order < 2; ++order) {
    EXPECT_THAT(values(run_values(node, {bools({}, {1})}, branch)[0]), ElementsAre(1));
    EXPECT_THAT(values(run_values(node, {bools({1, 1}, {0})}, branch)[0]), ElementsAre(2));
    std::swap(node.bodies[0], node.bodies[1]);
  }
}

TEST(If, GivesAnEmptyOptionalAndAList) {
  const Node node = node_with_bodies("If", 17, {}, {true}, 2,
                                     {typed_body("then_branch", {}, {Type(), Type()}),
                                      typed_body("else_branch", {}, {Type(), Type()})});
  const auto outputs = run_values(node, {bools({}, {1})},
                                  [](size_t, std::span<const Tensor>) -> std::vector<Tensor> {
                                    return {Tensor(), Tensor::sequence({floats({1})})};
                                  });
  EXPECT_TRUE(outputs[0].is_empty());
  EXPECT_EQ(outputs[1].list().size(), 1U);
}

TEST(If, HasTheTypeOfBothBranches) {
  const Type batch = floats_of(Shape{kJoinedBatch, 3});
  EXPECT_EQ(if_type(batch, batch), "float32 batchx3");
  EXPECT_EQ(if_type(batch, floats_of(Shape{kJoinedBatch, 4})), "float32 batchx?node.0.1");
  EXPECT_EQ(if_type(batch, floats_of(Shape{3})), "float32 ?");
  EXPECT_EQ(if_type(batch, floats_of()), "float32 ?");
  EXPECT_EQ(if_type(Type(), batch), "float32 batchx3");
  EXPECT_EQ(if_type(Type(), Type()), "unknown");
  EXPECT_EQ(if_type(Type::optional(batch), batch), "optional(float32 batchx3)");
  EXPECT_EQ(if_type(Type::sequence(batch), Type::sequence(floats_of(Shape{1, 3}))),
            "sequence(float32 ?node.0.0x3)");
}

TEST(If, SizesThatOnlyABranchKnowsGetASymbolOfTheNode) {
  const Type found = floats_of(Shape{Dim::symbol("?nonzero.0.1"), kJoinedBatch});
  EXPECT_EQ(if_type(found, found), "float32 ?node.0.0xbatch");
  const Type digest = floats_of(Shape{Dim::symbol("~0123")});
  EXPECT_EQ(if_type(digest, digest), "float32 ?node.0.0");
}

TEST(If, ABranchMayGiveMoreThanTheNodeHas) {
  const Type type = floats_of(Shape{2});
  const Node node = node_with_bodies(
      "If", 17, {}, {true}, 1,
      {typed_body("then_branch", {}, {type, type}), typed_body("else_branch", {}, {type})});
  EXPECT_THAT(inferred_texts(node, {bools_of(Shape{})}), ElementsAre("float32 2"));
  const auto two = [](size_t, std::span<const Tensor>) {
    return std::vector<Tensor>{floats({1, 2}), floats({3, 4})};
  };
  EXPECT_THAT(values(run_values(node, {bools({}, {1})}, two)[0]), ElementsAre(1, 2));
}

TEST(If, RefusesBranchesOfOtherTypes) {
  EXPECT_THAT(error_of(ErrorKind::InvalidModel,
                       [] { if_type(floats_of(Shape{2}), integers_of(Shape{2})); }),
              AllOf(HasSubstr("found float32 2 in then_branch and int64 2 in else_branch"),
                    HasSubstr("output 0")));
  EXPECT_THAT(
      error_of(ErrorKind::InvalidModel, [] { if_type(floats_of(), Type::sequence(floats_of())); }),
      HasSubstr("sequence(float32 ?)"));
}

TEST(If, RefusesBranchesOfAnotherForm) {
  const Type type = floats_of();
  const auto error_with = [&](Body other) {
    const Node node = node_with_bodies("If", 17, {}, {true}, 1,
                                       {typed_body("then_branch", {}, {type}), std::move(other)});
    return error_of(ErrorKind::InvalidModel, [&] { inferred_texts(node, {bools_of(Shape{})}); });
  };
  EXPECT_THAT(error_with(typed_body("else_branch", {type}, {type})),
              AllOf(HasSubstr("node 'node' (If), else_branch"), HasSubstr("found 1 inputs and 1")));
  EXPECT_THAT(error_with(typed_body("else_branch", {}, {})), HasSubstr("found 0 inputs and 0"));
}

TEST(If, TakesOneElementAsCondition) {
  const Node node = if_node(floats_of(), floats_of());
  const auto error_with = [&](const Type& condition) {
    return error_of(ErrorKind::InvalidModel, [&] { inferred_texts(node, {condition}); });
  };
  EXPECT_EQ(error_with(bools_of()), "");
  EXPECT_EQ(error_with(bools_of(Shape{1})), "");
  EXPECT_EQ(error_with(bools_of(Shape{kJoinedBatch})), "");
  EXPECT_EQ(error_with(Type()), "");
  EXPECT_THAT(error_with(bools_of(Shape{2})), HasSubstr("expected one element, found bool 2"));
  EXPECT_THAT(error_with(bools_of(Shape{0})), HasSubstr("expected one element"));
  EXPECT_THAT(error_with(Type::sequence(bools_of())), HasSubstr("expected one element"));
  EXPECT_THAT(error_with(floats_of(Shape{})), HasSubstr("expected elements of bool"));
}

// --- join_types.h --------------------------------------------------------------------------------

Dim joined_dim(size_t axis) { return Dim::symbol("j" + std::to_string(axis)); }

struct JoinCase {
  const char* name;
  Type left;
  Type right;
  const char* joined;  // "none": they have no common type
};

const JoinCase kJoinCases[] = {
    {"equal", floats_of(Shape{2, kJoinedBatch}), floats_of(Shape{2, kJoinedBatch}),
     "float32 2xbatch"},
    {"a number and another", floats_of(Shape{2, 3}), floats_of(Shape{2, 4}), "float32 2xj1"},
    {"a number and a symbol", floats_of(Shape{2}), floats_of(Shape{kJoinedBatch}), "float32 j0"},
    {"two symbols", floats_of(Shape{Dim::symbol("time")}), floats_of(Shape{kJoinedBatch}),
     "float32 j0"},
    {"two scalars", floats_of(Shape{}), floats_of(Shape{}), "float32 scalar"},
    {"a scalar and a list", floats_of(Shape{}), floats_of(Shape{1}), "float32 ?"},
    {"other ranks", floats_of(Shape{2, 3}), floats_of(Shape{2}), "float32 ?"},
    {"an unknown rank", floats_of(Shape{2, 3}), floats_of(), "float32 ?"},
    {"other elements", floats_of(Shape{2}), integers_of(Shape{2}), "none"},
    {"unknown elements", Type::tensor(DataType::Undefined, Shape{2}), integers_of(Shape{2}),
     "int64 2"},
    {"an unknown type", Type(), floats_of(Shape{2}), "float32 2"},
    {"two unknown types", Type(), Type(), "unknown"},
    {"a tensor and a list", floats_of(), Type::sequence(floats_of()), "none"},
    {"two lists", Type::sequence(floats_of(Shape{2})), Type::sequence(floats_of(Shape{3})),
     "sequence(float32 j0)"},
    {"lists of other elements", Type::sequence(floats_of()), Type::sequence(bools_of()), "none"},
    {"a list of an unknown type", Type::sequence(Type()), Type::sequence(floats_of(Shape{3})),
     "sequence(float32 3)"},
    {"an optional and its content", Type::optional(floats_of(Shape{2})), floats_of(Shape{3}),
     "optional(float32 j0)"},
    {"an optional and another content", Type::optional(floats_of()), bools_of(), "none"},
    {"two optionals", Type::optional(floats_of(Shape{2})), Type::optional(floats_of(Shape{2})),
     "optional(float32 2)"},
    {"an optional and a list", Type::optional(Type::sequence(floats_of())),
     Type::sequence(floats_of()), "optional(sequence(float32 ?))"},
    {"an optional and an unknown type", Type::optional(floats_of()), Type(), "optional(float32 ?)"},
    {"maps of other keys", Type::map(DataType::Int64, floats_of()),
     Type::map(DataType::Int32, floats_of()), "none"},
};

TEST(JoinTypes, HasTheValuesOfBothAndDoesNotDependOnTheirOrder) {
  for (const JoinCase& each : kJoinCases) {
    SCOPED_TRACE(each.name);
    for (const bool is_swapped : {false, true}) {
      const std::optional<Type> joined = is_swapped ? join_types(each.right, each.left, joined_dim)
                                                    : join_types(each.left, each.right, joined_dim);
      EXPECT_EQ(joined ? text(*joined) : "none", each.joined) << is_swapped;
    }
  }
}

TEST(OutsideOfGraph, LosesOnlyTheSymbolsOfThatGraph) {
  const Shape shape = {kJoinedBatch, Dim::symbol("?node.0.1"), 4, Dim::symbol("(2*?node.0.1)"),
                       Dim::symbol("~0123")};
  EXPECT_EQ(text(outside_of_graph(floats_of(shape), joined_dim)), "float32 batchxj1x4xj3xj4");
  EXPECT_EQ(text(outside_of_graph(Type::sequence(floats_of(shape)), joined_dim)),
            "sequence(float32 batchxj1x4xj3xj4)");
  EXPECT_EQ(text(outside_of_graph(floats_of(), joined_dim)), "float32 ?");
  EXPECT_EQ(text(outside_of_graph(Type(), joined_dim)), "unknown");
}

TEST(ElementOfList, LosesAllSymbols) {
  EXPECT_EQ(text(element_of_list(floats_of(Shape{kJoinedBatch, 4}), joined_dim)), "float32 j0x4");
}

}  // namespace
}  // namespace tessera::ops
