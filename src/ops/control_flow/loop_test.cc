#include "ops/control_flow/bodies.h"
#include "ops/control_flow/body_runner_test.h"
#include "ops/control_flow/pieces.h"

namespace tessera::ops {
namespace {

const Type kLoopFlag = bools_of(Shape{});
const Type kLoopIndex = integers_of(Shape{});
const Type kLoopSum = integers_of(Shape{1});

// A loop with one carried value and one scan output.
Node summing_loop(const std::vector<bool>& inputs_given = {true, true, true}) {
  return node_with_bodies(
      "Loop", 17, {}, inputs_given, 2,
      {typed_body("body", {kLoopIndex, kLoopFlag, kLoopSum}, {kLoopFlag, kLoopSum, kLoopSum})});
}

// Adds the iteration to the carried value, collects the square of the iteration, and goes on until
// the iteration is `last`.
BodyFunction sums_until(int64_t last) {
  return [last](size_t, std::span<const Tensor> inputs) -> std::vector<Tensor> {
    const int64_t iteration = integers(inputs[0])[0];
    const int64_t sum = integers(inputs[2])[0] + iteration;
    return {bools({}, {static_cast<uint8_t>(iteration < last ? 1 : 0)}), ints({sum}),
            ints({iteration * iteration})};
  };
}

constexpr int64_t kNeverLast = 1000;

TEST(Loop, RunsTheGivenNumberOfTimes) {
  const auto outputs = run_values(summing_loop({true, false, true}),
                                  {ints({}, {4}), {}, ints({10})}, sums_until(kNeverLast));
  EXPECT_THAT(integers(outputs[0]), ElementsAre(16));
  EXPECT_THAT(outputs[1].dims(), ElementsAre(4, 1));
  EXPECT_THAT(integers(outputs[1]), ElementsAre(0, 1, 4, 9));
}

TEST(Loop, EndsWhenItsConditionBecomesFalse) {
  for (const bool is_bounded : {false, true}) {
    const Tensor bound = is_bounded ? ints({1}, {100}) : Tensor();
    const auto outputs = run_values(summing_loop({is_bounded, true, true}),
                                    {bound, bools({}, {1}), ints({0})}, sums_until(2));
    EXPECT_THAT(integers(outputs[0]), ElementsAre(3));
    EXPECT_THAT(integers(outputs[1]), ElementsAre(0, 1, 4));
  }
}

TEST(Loop, EndsAtItsBoundAlthoughTheConditionIsTrue) {
  const auto outputs = run_values(summing_loop(), {ints({}, {2}), bools({1}, {1}), ints({0})},
                                  sums_until(kNeverLast));
  EXPECT_THAT(integers(outputs[1]), ElementsAre(0, 1));
}

TEST(Loop, WithoutAnIterationGivesTheFirstValuesAndNoElements) {
  Node node = summing_loop();
  node.bodies[0] = typed_body("body", {kLoopIndex, kLoopFlag, kLoopSum},
                              {kLoopFlag, kLoopSum, integers_of(Shape{3, Dim::symbol("width")})});
  const BodyFunction refused = [](size_t, std::span<const Tensor>) -> std::vector<Tensor> {
    ADD_FAILURE() << "it has no iteration";
    return {};
  };
  for (const auto& [bound, condition] : {std::pair(0, 1), std::pair(-3, 1), std::pair(5, 0)}) {
    const auto outputs = run_values(
        node, {ints({}, {bound}), bools({}, {static_cast<uint8_t>(condition)}), ints({7})},
        refused);
    EXPECT_THAT(integers(outputs[0]), ElementsAre(7));
    EXPECT_EQ(outputs[1].type(), DataType::Int64);
    EXPECT_THAT(outputs[1].dims(), ElementsAre(0, 3, 0));
  }
}

TEST(Loop, WithoutAnIterationGivesTheSizesThatTheModelDeclares) {
  const std::vector<Tensor> inputs = {ints({}, {0}), bools({}, {1}), ints({7})};
  Node node = summing_loop();
  const auto dims = [&](const Type& inferred, const std::optional<Shape>& declared) {
    node.bodies[0] =
        typed_body("body", {kLoopIndex, kLoopFlag, kLoopSum}, {kLoopFlag, kLoopSum, inferred});
    const std::string name = declared_type_name("body", 2);
    node.attributes.erase(name);
    if (declared) node.attributes.set(name, integers_of(declared));
    return run_values(node, inputs, sums_until(kNeverLast))[1].dims();
  };
  const Dim open = Dim::symbol("width");
  EXPECT_THAT(dims(integers_of(Shape{3, open}), Shape{open, 5}), ElementsAre(0, 3, 5));
  EXPECT_THAT(dims(integers_of(Shape{3, open}), Shape{9, 5}), ElementsAre(0, 3, 5));
  EXPECT_THAT(dims(integers_of(Shape{3, open}), Shape{3}), ElementsAre(0, 3, 0));
  EXPECT_THAT(dims(integers_of(), Shape{open, 5}), ElementsAre(0, 0, 5));
  EXPECT_THAT(dims(integers_of(), std::nullopt), ElementsAre(0));
}

TEST(Loop, TellsItsBodyTheIterationAndTheCondition) {
  for (const bool is_list : {false, true}) {
    const std::vector<int64_t> dims = is_list ? std::vector<int64_t>{1} : std::vector<int64_t>{};
    const Node node = node_with_bodies(
        "Loop", 17, {}, {true, true}, 1,
        {typed_body("body", {integers_of(shape_from(dims)), bools_of(shape_from(dims))},
                    {bools_of(shape_from(dims)), kLoopIndex})});
    int64_t expected = 0;
    const auto outputs =
        run_values(node, {ints({1}, {3}), bools({1}, {1})},
                   [&](size_t body, std::span<const Tensor> inputs) -> std::vector<Tensor> {
                     EXPECT_EQ(body, 0U);
                     EXPECT_EQ(inputs.size(), 2U);
                     EXPECT_EQ(inputs[0].dims(), dims);
                     EXPECT_EQ(integers(inputs[0])[0], expected++);
                     EXPECT_EQ(inputs[1].dims(), dims);
                     EXPECT_EQ(bytes(inputs[1])[0], 1);
                     return {bools(dims, {1}), inputs[0].reshaped({})};
                   });
    EXPECT_THAT(outputs[0].dims(), ElementsAre(3));
    EXPECT_THAT(integers(outputs[0]), ElementsAre(0, 1, 2));
  }
}

TEST(Loop, CarriesValuesOfAnySizeAndLists) {
  const Node node = node_with_bodies(
      "Loop", 17, {}, {true, false, true, true}, 2,
      {typed_body("body", {kLoopIndex, kLoopFlag, integers_of(), Type::sequence(integers_of())},
                  {kLoopFlag, integers_of(), Type::sequence(integers_of())})});
  const auto outputs = run_values(
      node, {ints({}, {3}), {}, ints({1}), Tensor::sequence({})},
      [](size_t, std::span<const Tensor> inputs) -> std::vector<Tensor> {
        std::vector<Tensor> list(inputs[3].list().begin(), inputs[3].list().end());
        list.push_back(inputs[2]);
        return {bools({}, {1}), concatenate(std::vector<Tensor>{inputs[2], inputs[2]}, 0),
                Tensor::sequence(std::move(list))};
      });
  EXPECT_THAT(outputs[0].dims(), ElementsAre(8));
  ASSERT_EQ(outputs[1].list().size(), 3U);
  EXPECT_THAT(outputs[1].list()[2].dims(), ElementsAre(4));
}

TEST(Loop, RefusesElementsOfAnotherShape) {
  const auto error = error_of(ErrorKind::InvalidArgument, [] {
    run_values(summing_loop(), {ints({}, {3}), bools({}, {1}), ints({0})},
               [](size_t, std::span<const Tensor> inputs) -> std::vector<Tensor> {
                 const int64_t length = integers(inputs[0])[0] < 2 ? 1 : 4;
                 return {bools({}, {1}), inputs[2], Tensor(DataType::Int64, {length, 2})};
               });
  });
  EXPECT_THAT(error, AllOf(HasSubstr("node 'node' (Loop)"),
                           HasSubstr("expected elements of 1x2 for output 1"),
                           HasSubstr("found 4x2 in iteration 2")));
}

TEST(Loop, EndsAtTheLargestAllowedNumberOfIterations) {
  const Node node = summing_loop({false, true, true});
  const std::vector<Tensor> inputs = {{}, bools({}, {1}), ints({0})};
  EXPECT_THAT(error_of(ErrorKind::InvalidArgument,
                       [&] { run_values(node, inputs, sums_until(kNeverLast), 3); }),
              HasSubstr("expected at most 3 iterations, as max_iterations says"));
  EXPECT_THAT(integers(run_values(node, inputs, sums_until(2), 3)[1]), ElementsAre(0, 1, 4));
  const std::vector<Tensor> bounded = {ints({}, {3}), bools({}, {1}), ints({0})};
  EXPECT_THAT(integers(run_values(summing_loop(), bounded, sums_until(kNeverLast), 3)[1]),
              ElementsAre(0, 1, 4));
}

TEST(Loop, RepeatedIterationsGiveTheSame) {
  for (const int64_t last : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{20}, kNeverLast}) {
    SCOPED_TRACE(last);
    const std::vector<Tensor> inputs = {ints({}, {21}), bools({}, {1}), ints({5})};
    const auto single = run_values(summing_loop(), inputs, sums_until(last));
    const auto repeated = run_values(summing_loop(), inputs, sums_until(last), 0, true);
    EXPECT_TRUE(has_same_bits(single[0], repeated[0]));
    EXPECT_TRUE(has_same_bits(single[1], repeated[1]));
  }
  EXPECT_THAT(error_of(ErrorKind::InvalidArgument,
                       [&] {
                         run_values(summing_loop({false, true, true}),
                                    {{}, bools({}, {1}), ints({0})}, sums_until(kNeverLast), 3,
                                    true);
                       }),
              HasSubstr("expected at most 3 iterations"));
}

TEST(Loop, RepeatsOnlyWhenCarriedValuesKeepTheirSizes) {
  const Node node = node_with_bodies(
      "Loop", 17, {}, {true, false, true}, 1,
      {typed_body("body", {kLoopIndex, kLoopFlag, integers_of()}, {kLoopFlag, integers_of()})});
  // The value grows in the first two iterations.
  const auto grows = [](size_t, std::span<const Tensor> inputs) -> std::vector<Tensor> {
    std::vector<int64_t> carried = integers(inputs[2]);
    if (integers(inputs[0])[0] < 2) carried.push_back(0);
    carried[0] += 1;
    return {bools({}, {1}), ints(carried)};
  };
  const auto outputs = run_values(node, {ints({}, {6}), {}, ints({7})}, grows, 0, true);
  EXPECT_THAT(integers(outputs[0]), ElementsAre(13, 0, 0));
}

// --- Types ---------------------------------------------------------------------------------------

// The type of the only carried value after a loop.
std::string carried_text(const Type& first, const Type& next) {
  const Node node =
      node_with_bodies("Loop", 17, {}, {true, true, true}, 1,
                       {typed_body("body", {kLoopIndex, kLoopFlag, first}, {kLoopFlag, next})});
  return inferred_texts(node, {kLoopIndex, kLoopFlag, first})[0];
}

// The type of the only scan output of a loop.
std::string collected_text(const Type& element) {
  const Node node =
      node_with_bodies("Loop", 17, {}, {true, true}, 1,
                       {typed_body("body", {kLoopIndex, kLoopFlag}, {kLoopFlag, element})});
  return inferred_texts(node, {kLoopIndex, kLoopFlag})[0];
}

TEST(Loop, ACarriedValueIsTheFirstOneOrOneOfItsBody) {
  const Dim batch = Dim::symbol("batch");
  EXPECT_EQ(carried_text(floats_of(Shape{batch, 2}), floats_of(Shape{batch, 2})),
            "float32 batchx2");
  EXPECT_EQ(carried_text(floats_of(Shape{batch, 2}), floats_of(Shape{batch, 3})),
            "float32 batchx?node.0.1");
  EXPECT_EQ(carried_text(floats_of(Shape{2}), floats_of(Shape{2, 2})), "float32 ?");
  EXPECT_EQ(carried_text(Type::sequence(floats_of(Shape{2})), Type::sequence(floats_of(Shape{3}))),
            "sequence(float32 ?node.0.0)");
  EXPECT_EQ(carried_text(Type::optional(floats_of(Shape{2})), floats_of(Shape{2})),
            "optional(float32 2)");
}

TEST(Loop, NobodyKnowsHowManyElementsItCollects) {
  EXPECT_EQ(collected_text(floats_of(Shape{})), "float32 ?node.0.0");
  EXPECT_EQ(collected_text(floats_of(Shape{2, 3})), "float32 ?node.0.0x2x3");
  EXPECT_EQ(collected_text(floats_of()), "float32 ?");
  // 0 if there is no iteration.
  EXPECT_EQ(collected_text(floats_of(Shape{Dim::symbol("batch"), 3})),
            "float32 ?node.0.0x?node.0.1x3");
}

TEST(Loop, GivesItsBodyTheTypesOfCarriedValues) {
  const Type list = Type::sequence(floats_of());
  Node node = node_with_bodies("Loop", 17, {}, {true, true, true, true}, 2,
                               {typed_body("body", {Type(), bools_of(Shape{1}), Type(), Type()},
                                           {kLoopFlag, Type(), Type(), Type()})});
  const std::vector<Type> given = {kLoopIndex, kLoopFlag, floats_of(Shape{Dim::symbol("n")}), list};
  EXPECT_THAT(body_input_texts(node, given),
              ElementsAre("int64 scalar", "bool 1", "float32 n", "sequence(float32 ?)"));
  const BodyTypes types = all_ops().of(node).body_rule(node, given, 0);
  ASSERT_EQ(types.carried.size(), 2U);
  EXPECT_EQ(types.carried[0].input, 2U);
  EXPECT_EQ(types.carried[0].output, 1U);
  EXPECT_EQ(types.carried[1].input, 3U);
  EXPECT_EQ(types.carried[1].output, 2U);
}

TEST(Loop, RefusesABodyOfAnotherForm) {
  const auto error_with = [](const std::vector<Type>& inputs, const std::vector<Type>& outputs) {
    const Node node = node_with_bodies("Loop", 17, {}, {true, true, true}, 1,
                                       {typed_body("body", inputs, outputs)});
    return error_of(ErrorKind::InvalidModel,
                    [&] { body_input_texts(node, {kLoopIndex, kLoopFlag, kLoopSum}); });
  };
  EXPECT_EQ(error_with({Type(), Type(), Type()}, {Type(), Type()}), "");
  EXPECT_THAT(error_with({Type(), Type()}, {Type(), Type()}),
              AllOf(HasSubstr("node 'node' (Loop), body"), HasSubstr("expected 3 inputs"),
                    HasSubstr("found 2")));
  EXPECT_THAT(error_with({Type(), Type(), Type(), Type()}, {Type(), Type()}), HasSubstr("found 4"));
  EXPECT_THAT(error_with({Type(), Type(), Type()}, {Type()}),
              HasSubstr("expected at least 2 outputs (the condition and the carried values), "
                        "found 1"));
}

TEST(Loop, RefusesInputsAndOutputsThatDoNotFit) {
  const auto error_with = [](const std::vector<std::optional<Type>>& inputs, size_t outputs) {
    std::vector<bool> is_given;
    for (const std::optional<Type>& input : inputs) is_given.push_back(input.has_value());
    const Node node =
        node_with_bodies("Loop", 17, {}, is_given, outputs,
                         {typed_body("body", {kLoopIndex, kLoopFlag}, {kLoopFlag, kLoopSum})});
    return error_of(ErrorKind::InvalidModel, [&] { inferred_texts(node, inputs); });
  };
  EXPECT_EQ(error_with({kLoopIndex}, 1), "");
  EXPECT_EQ(error_with({integers_of(), bools_of(Shape{Dim::symbol("one")})}, 1), "");
  EXPECT_THAT(error_with({std::nullopt, std::nullopt}, 1), HasSubstr("it would not end"));
  EXPECT_THAT(error_with({}, 1), HasSubstr("it would not end"));
  EXPECT_THAT(error_with({integers_of(Shape{2}), kLoopFlag}, 1),
              AllOf(HasSubstr("input 'M'"), HasSubstr("expected one element, found int64 2")));
  EXPECT_THAT(error_with({kLoopIndex, bools_of(Shape{0})}, 1), HasSubstr("input 'cond'"));
  EXPECT_THAT(error_with({kLoopFlag, kLoopFlag}, 1), HasSubstr("expected elements of int64"));
  EXPECT_THAT(error_with({kLoopIndex, kLoopFlag}, 2), HasSubstr("expected at most 1 outputs"));
}

// --- GrowingTensor -------------------------------------------------------------------------------

TEST(GrowingTensor, KeepsElementsWhenItGrows) {
  GrowingTensor grown;
  EXPECT_FALSE(grown.take());
  // Memory for 8 elements doubles twice.
  std::vector<int64_t> expected;
  for (int64_t index = 0; index < 20; ++index) {
    EXPECT_TRUE(grown.add(ints({index, -index})));
    expected.insert(expected.end(), {index, -index});
  }
  EXPECT_THAT(grown.dims(), ElementsAre(2));
  const std::optional<Tensor> whole = grown.take();
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->type(), DataType::Int64);
  EXPECT_THAT(whole->dims(), ElementsAre(20, 2));
  EXPECT_EQ(integers(*whole), expected);
  EXPECT_TRUE(whole->is_sole_owner());
}

TEST(GrowingTensor, IsEmptyAfterItWasTaken) {
  GrowingTensor grown;
  grown.add(ints({1, 2}));
  const std::optional<Tensor> first = grown.take();
  EXPECT_FALSE(grown.take());
  EXPECT_TRUE(grown.add(floats({}, {3})));
  EXPECT_TRUE(grown.add(floats({}, {4})));
  const std::optional<Tensor> second = grown.take();
  EXPECT_THAT(second->dims(), ElementsAre(2));
  EXPECT_THAT(values(*second), ElementsAre(3, 4));
  EXPECT_THAT(integers(*first), ElementsAre(1, 2));
}

TEST(GrowingTensor, RefusesElementsOfAnotherType) {
  GrowingTensor grown;
  EXPECT_TRUE(grown.add(ints({1, 2})));
  EXPECT_FALSE(grown.add(ints({1, 2, 3})));
  EXPECT_FALSE(grown.add(ints({1, 2}, {1, 2})));
  EXPECT_FALSE(grown.add(floats({1, 2})));
  EXPECT_TRUE(grown.add(ints({3, 4})));
  EXPECT_THAT(integers(*grown.take()), ElementsAre(1, 2, 3, 4));
}

TEST(GrowingTensor, CountsElementsThatHaveNone) {
  GrowingTensor grown;
  for (int count = 0; count < 9; ++count) EXPECT_TRUE(grown.add(floats({0, 3}, {})));
  EXPECT_THAT(grown.take()->dims(), ElementsAre(9, 0, 3));
}

}  // namespace
}  // namespace tessera::ops
