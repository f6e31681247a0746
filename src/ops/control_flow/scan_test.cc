#include "ops/control_flow/body_runner_test.h"
#include "ops/control_flow/pieces.h"

namespace tessera::ops {
namespace {

const Type kRow = integers_of(Shape{2});

Attributes scan_attributes(
    int64_t scan_inputs,
    const std::vector<std::pair<const char*, std::vector<int64_t>>>& lists = {}) {
  Attributes attributes = attributes_of({{"num_scan_inputs", scan_inputs}});
  for (const auto& [name, list] : lists) attributes.set(name, list);
  return attributes;
}

// One scan input, no state, one scan output of the same elements.
Node copying_scan(const std::vector<std::pair<const char*, std::vector<int64_t>>>& lists = {}) {
  return node_with_bodies("Scan", 17, scan_attributes(1, lists), {true}, 1,
                          {typed_body("body", {kRow}, {kRow})});
}

// One state, one scan input, the state collected.
Node summing_scan(int opset = 17) {
  std::vector<bool> inputs_given = {true, true};
  if (opset == 8) inputs_given.insert(inputs_given.begin(), true);
  return node_with_bodies("Scan", opset, scan_attributes(1), inputs_given, 2,
                          {typed_body("body", {kRow, kRow}, {kRow, kRow})});
}

std::vector<Tensor> copies(size_t, std::span<const Tensor> inputs) {
  return {inputs.begin(), inputs.end()};
}

std::vector<Tensor> sums(size_t, std::span<const Tensor> inputs) {
  std::vector<int64_t> sum = integers(inputs[0]);
  for (size_t index = 0; index < sum.size(); ++index) sum[index] += integers(inputs[1])[index];
  return {ints(sum), ints(sum)};
}

TEST(Scan, GoesOverRows) {
  const auto outputs =
      run_values(summing_scan(), {ints({10, 20}), ints({3, 2}, {1, 2, 3, 4, 5, 6})}, sums);
  EXPECT_THAT(integers(outputs[0]), ElementsAre(19, 32));
  EXPECT_THAT(outputs[1].dims(), ElementsAre(3, 2));
  EXPECT_THAT(integers(outputs[1]), ElementsAre(11, 22, 14, 26, 19, 32));
}

struct ScanCase {
  const char* name;
  std::vector<std::pair<const char*, std::vector<int64_t>>> lists;
  std::vector<int64_t> input_dims;
  std::vector<int64_t> dims;
  std::vector<int64_t> elements;
};

const ScanCase kScanCases[] = {
    {"rows", {}, {3, 2}, {3, 2}, {1, 2, 3, 4, 5, 6}},
    {"columns", {{"scan_input_axes", {1}}}, {2, 3}, {3, 2}, {1, 4, 2, 5, 3, 6}},
    {"columns from the end", {{"scan_input_axes", {-1}}}, {2, 3}, {3, 2}, {1, 4, 2, 5, 3, 6}},
    {"backwards", {{"scan_input_directions", {1}}}, {3, 2}, {3, 2}, {5, 6, 3, 4, 1, 2}},
    {"columns backwards",
     {{"scan_input_axes", {1}}, {"scan_input_directions", {1}}},
     {2, 3},
     {3, 2},
     {3, 6, 2, 5, 1, 4}},
    {"collected as columns", {{"scan_output_axes", {1}}}, {3, 2}, {2, 3}, {1, 3, 5, 2, 4, 6}},
    {"collected as last columns", {{"scan_output_axes", {-1}}}, {3, 2}, {2, 3}, {1, 3, 5, 2, 4, 6}},
    {"collected backwards", {{"scan_output_directions", {1}}}, {3, 2}, {3, 2}, {5, 6, 3, 4, 1, 2}},
    {"backwards twice",
     {{"scan_input_directions", {1}}, {"scan_output_directions", {1}}},
     {3, 2},
     {3, 2},
     {1, 2, 3, 4, 5, 6}},
    {"collected as columns, backwards",
     {{"scan_output_axes", {1}}, {"scan_output_directions", {1}}},
     {3, 2},
     {2, 3},
     {5, 3, 1, 6, 4, 2}},
};

TEST(Scan, FollowsAxesAndDirections) {
  for (const ScanCase& each : kScanCases) {
    SCOPED_TRACE(each.name);
    const Node node = copying_scan(each.lists);
    const auto outputs = run_values(node, {ints(each.input_dims, {1, 2, 3, 4, 5, 6})}, copies);
    EXPECT_EQ(outputs[0].dims(), each.dims);
    EXPECT_EQ(integers(outputs[0]), each.elements);
    EXPECT_THAT(inferred_texts(node, {integers_of(shape_from(each.input_dims))}),
                ElementsAre(text(integers_of(shape_from(each.dims)))));
  }
}

TEST(Scan, GoesOverSeveralInputsEachInItsOwnWay) {
  const Node node = node_with_bodies(
      "Scan", 17,
      scan_attributes(2, {{"scan_input_axes", {0, 1}}, {"scan_input_directions", {0, 1}}}),
      {true, true}, 2,
      {typed_body("body", {kRow, integers_of(Shape{1})}, {kRow, integers_of(Shape{1})})});
  const auto outputs =
      run_values(node, {ints({3, 2}, {1, 2, 3, 4, 5, 6}), ints({1, 3}, {7, 8, 9})}, copies);
  EXPECT_THAT(integers(outputs[0]), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(outputs[1].dims(), ElementsAre(3, 1));
  EXPECT_THAT(integers(outputs[1]), ElementsAre(9, 8, 7));
}

TEST(Scan, WithoutAnIterationGivesTheFirstStatesAndNoElements) {
  Node node = summing_scan();
  const auto outputs = run_values(node, {ints({10, 20}), ints({0, 2}, {})}, sums);
  EXPECT_THAT(integers(outputs[0]), ElementsAre(10, 20));
  EXPECT_THAT(outputs[1].dims(), ElementsAre(0, 2));
  node.attributes.set("scan_output_axes", std::vector<int64_t>{1});
  node.attributes.set("scan_output_directions", std::vector<int64_t>{1});
  EXPECT_THAT(run_values(node, {ints({10, 20}), ints({0, 2}, {})}, sums)[1].dims(),
              ElementsAre(2, 0));
}

TEST(Scan, RefusesInputsOfOtherLengths) {
  const Node node = node_with_bodies("Scan", 17, scan_attributes(2), {true, true}, 1,
                                     {typed_body("body", {kRow, kRow}, {kRow, kRow})});
  EXPECT_THAT(
      error_of(
          ErrorKind::InvalidArgument,
          [&] { run_values(node, {ints({2, 2}, {1, 2, 3, 4}), ints({1, 2}, {1, 2})}, copies); }),
      HasSubstr("expected 2 iterations for all scan inputs, found 1"));
  EXPECT_THAT(
      error_of(ErrorKind::InvalidModel,
               [&] { inferred_texts(node, {integers_of(Shape{2, 2}), integers_of(Shape{1, 2})}); }),
      AllOf(HasSubstr("input 1"), HasSubstr("expected 2 iterations"),
            HasSubstr("found int64 1x2")));
}

TEST(Scan, RefusesElementsOfAnotherShape) {
  int64_t length = 1;
  EXPECT_THAT(error_of(ErrorKind::InvalidArgument,
                       [&] {
                         run_values(
                             copying_scan(), {ints({2, 2}, {1, 2, 3, 4})},
                             [&](size_t, std::span<const Tensor>) {
                               return std::vector<Tensor>{Tensor(DataType::Int64, {length++, 2})};
                             });
                       }),
              AllOf(HasSubstr("expected elements of 1x2 for output 0"), HasSubstr("found 2x2")));
}

TEST(Scan, EndsAtTheLargestAllowedNumberOfIterations) {
  const std::vector<Tensor> inputs = {ints({3, 2}, {1, 2, 3, 4, 5, 6})};
  EXPECT_THAT(
      error_of(ErrorKind::InvalidArgument, [&] { run_values(copying_scan(), inputs, copies, 2); }),
      HasSubstr("expected at most 2 iterations, as max_iterations says, found 3"));
  EXPECT_THAT(run_values(copying_scan(), inputs, copies, 3)[0].dims(), ElementsAre(3, 2));
}

TEST(Scan, RepeatedIterationsGiveTheSame) {
  std::vector<int64_t> numbers(40);
  for (size_t index = 0; index < numbers.size(); ++index) {
    numbers[index] = static_cast<int64_t>(index * index);
  }
  for (const int64_t axis : {0, 1}) {
    for (const int64_t direction : {0, 1}) {
      Node node = summing_scan();
      node.attributes.set("scan_input_axes", std::vector<int64_t>{axis});
      node.attributes.set("scan_input_directions", std::vector<int64_t>{direction});
      const std::vector<Tensor> inputs = {
          ints({1, 2}),
          ints(axis == 0 ? std::vector<int64_t>{20, 2} : std::vector<int64_t>{2, 20}, numbers)};
      const auto single = run_values(node, inputs, sums);
      const auto repeated = run_values(node, inputs, sums, 0, true);
      EXPECT_TRUE(has_same_bits(single[0], repeated[0])) << axis << " " << direction;
      EXPECT_TRUE(has_same_bits(single[1], repeated[1])) << axis << " " << direction;
    }
  }
}

// --- Types ---------------------------------------------------------------------------------------

TEST(Scan, InfersSymbolsAndUnknownRanks) {
  const Dim time = Dim::symbol("time");
  EXPECT_THAT(inferred_texts(summing_scan(), {kRow, integers_of(Shape{time, 2})}),
              ElementsAre("int64 2", "int64 timex2"));
  EXPECT_THAT(inferred_texts(summing_scan(), {kRow, integers_of()}),
              ElementsAre("int64 2", "int64 ?node.1.0x2"));
  // The state is the first one if there is no iteration.
  EXPECT_THAT(inferred_texts(summing_scan(), {integers_of(Shape{3}), integers_of(Shape{time, 2})}),
              ElementsAre("int64 ?node.0.0", "int64 timex2"));
  Node node = copying_scan();
  node.bodies[0] = typed_body("body", {Type()}, {integers_of()});
  EXPECT_THAT(inferred_texts(node, {integers_of(Shape{time, 2})}), ElementsAre("int64 ?"));
  node.bodies[0] = typed_body("body", {Type()}, {integers_of(Shape{Dim::symbol("?nz.0.1")})});
  EXPECT_THAT(inferred_texts(node, {integers_of(Shape{time, 2})}),
              ElementsAre("int64 timex?node.0.1"));
}

TEST(Scan, TakesTheKnownLengthOfTwo) {
  const Node node = node_with_bodies("Scan", 17, scan_attributes(2), {true, true}, 1,
                                     {typed_body("body", {kRow, kRow}, {kRow, kRow})});
  const Type known = integers_of(Shape{5, 2});
  const Type symbolic = integers_of(Shape{Dim::symbol("time"), 2});
  EXPECT_THAT(inferred_texts(node, {known, symbolic}), ElementsAre("int64 5x2"));
  EXPECT_THAT(inferred_texts(node, {symbolic, known}), ElementsAre("int64 5x2"));
}

TEST(Scan, GivesItsBodyStatesAndElements) {
  const Dim batch = Dim::symbol("batch");
  Node node = node_with_bodies("Scan", 17, scan_attributes(2, {{"scan_input_axes", {1, -1}}}),
                               {true, true, true}, 1,
                               {typed_body("body", {Type(), Type(), Type()}, {Type()})});
  const std::vector<Type> given = {kRow, integers_of(Shape{batch, 7, 3}), integers_of()};
  EXPECT_THAT(body_input_texts(node, given), ElementsAre("int64 2", "int64 batchx3", "int64 ?"));
  const BodyTypes types = all_ops().of(node).body_rule(node, given, 0);
  ASSERT_EQ(types.carried.size(), 1U);
  EXPECT_EQ(types.carried[0].input, 0U);
  EXPECT_EQ(types.carried[0].output, 0U);
}

std::string scan_error(const Node& node, const std::vector<Type>& inputs) {
  return error_of(ErrorKind::InvalidModel, [&] { body_input_texts(node, inputs); });
}

TEST(Scan, RefusesABodyOfAnotherForm) {
  Node node = summing_scan();
  const std::vector<Type> inputs = {kRow, integers_of(Shape{3, 2})};
  EXPECT_EQ(scan_error(node, inputs), "");
  node.bodies[0] = typed_body("body", {kRow}, {kRow, kRow});
  EXPECT_THAT(scan_error(node, inputs),
              AllOf(HasSubstr("node 'node' (Scan), body"), HasSubstr("expected 2 inputs"),
                    HasSubstr("found 1")));
  node.bodies[0] = typed_body("body", {kRow, kRow}, {kRow});
  EXPECT_THAT(scan_error(node, inputs), HasSubstr("expected at least 2 outputs, found 1"));
}

TEST(Scan, RefusesAttributesThatDoNotFit) {
  const std::vector<Type> inputs = {integers_of(Shape{3, 2})};
  for (const int64_t number : {0, 2, -1}) {
    Node node = copying_scan();
    node.attributes.set("num_scan_inputs", number);
    EXPECT_THAT(scan_error(node, inputs),
                AllOf(HasSubstr("attribute 'num_scan_inputs'"), HasSubstr("expected 1 to 1")));
  }
  EXPECT_THAT(
      scan_error(copying_scan({{"scan_input_axes", {0, 0}}}), inputs),
      AllOf(HasSubstr("attribute 'scan_input_axes'"), HasSubstr("expected 1 numbers, found 2")));
  EXPECT_THAT(scan_error(copying_scan({{"scan_output_directions", {0, 0}}}), inputs),
              HasSubstr("attribute 'scan_output_directions'"));
  EXPECT_THAT(scan_error(copying_scan({{"scan_input_axes", {2}}}), inputs),
              HasSubstr("expected an axis in [-2, 2), found 2"));
  EXPECT_THAT(scan_error(copying_scan(), {integers_of(Shape{})}),
              HasSubstr("expected an axis to go along"));
  EXPECT_THAT(error_of(ErrorKind::InvalidModel,
                       [&] {
                         inferred_texts(copying_scan({{"scan_output_axes", {-3}}}),
                                        {integers_of(Shape{3, 2})});
                       }),
              AllOf(HasSubstr("attribute 'scan_output_axes'"), HasSubstr("[-2, 2), found -3")));
}

// --- Version 8 -----------------------------------------------------------------------------------

TEST(Scan8, GoesOverEachSequenceOfABatchAsFarAsItsLength) {
  const Tensor states = ints({2, 2}, {10, 20, 30, 40});
  const Tensor sequences = ints({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto outputs = run_values(summing_scan(8), {ints({2, 1}), states, sequences}, sums);
  EXPECT_THAT(outputs[0].dims(), ElementsAre(2, 2));
  EXPECT_THAT(integers(outputs[0]), ElementsAre(14, 26, 35, 46));
  EXPECT_THAT(outputs[1].dims(), ElementsAre(2, 2, 2));
  EXPECT_THAT(integers(outputs[1]), ElementsAre(11, 22, 14, 26, 35, 46, 0, 0));
}

TEST(Scan8, WithoutLengthsGoesToTheEnd) {
  Node node = summing_scan(8);
  node.inputs[0] = {};
  const auto outputs =
      run_values(node, {{}, ints({1, 2}, {0, 0}), ints({1, 3, 2}, {1, 2, 3, 4, 5, 6})}, sums);
  EXPECT_THAT(outputs[1].dims(), ElementsAre(1, 3, 2));
  EXPECT_THAT(integers(outputs[1]), ElementsAre(1, 2, 4, 6, 9, 12));
}

TEST(Scan8, GoesBackFromTheLastElementOfASequence) {
  Node node = node_with_bodies("Scan", 8, scan_attributes(1, {{"directions", {1}}}), {true, true},
                               1, {typed_body("body", {kRow}, {kRow})});
  const auto outputs = run_values(node, {ints({2}), ints({1, 3, 2}, {1, 2, 3, 4, 5, 6})}, copies);
  EXPECT_THAT(integers(outputs[0]), ElementsAre(3, 4, 1, 2, 0, 0));
}

TEST(Scan8, ASequenceMayBeEmpty) {
  const auto outputs =
      run_values(summing_scan(8),
                 {ints({0, 1}), ints({2, 2}, {1, 2, 3, 4}), ints({2, 1, 2}, {5, 6, 7, 8})}, sums);
  EXPECT_THAT(integers(outputs[0]), ElementsAre(1, 2, 10, 12));
  EXPECT_THAT(integers(outputs[1]), ElementsAre(0, 0, 10, 12));
}

TEST(Scan8, RefusesWrongLengthsAndAnEmptyBatch) {
  const auto error_with = [](const Tensor& lengths, const Tensor& states, const Tensor& sequences) {
    return error_of(ErrorKind::InvalidArgument,
                    [&] { run_values(summing_scan(8), {lengths, states, sequences}, sums); });
  };
  for (const int64_t length : {-1, 2}) {
    EXPECT_THAT(
        error_with(ints({length}), ints({1, 2}, {1, 2}), ints({1, 1, 2}, {5, 6})),
        HasSubstr("expected lengths of sequences from 0 to 1, found " + std::to_string(length)));
  }
  EXPECT_THAT(error_with(ints({0}, {}), ints({0, 2}, {}), ints({0, 1, 2}, {})),
              HasSubstr("expected a batch of at least 1"));
}

TEST(Scan8, InfersTheBatch) {
  const Dim batch = Dim::symbol("batch");
  const Type states = integers_of(Shape{batch, 2});
  const Type sequences = integers_of(Shape{batch, 5, 2});
  EXPECT_THAT(inferred_texts(summing_scan(8), {integers_of(Shape{batch}), states, sequences}),
              ElementsAre("int64 batchx2", "int64 batchx5x2"));
  EXPECT_THAT(body_input_texts(summing_scan(8), {integers_of(), states, sequences}),
              ElementsAre("int64 2", "int64 2"));
  EXPECT_THAT(scan_error(summing_scan(8), {integers_of(), integers_of(Shape{}), sequences}),
              HasSubstr("expected an axis to go along"));
  EXPECT_THAT(scan_error(summing_scan(8), {integers_of(), states, integers_of(Shape{batch})}),
              HasSubstr("expected an axis to go along"));
}

// --- pieces.h ------------------------------------------------------------------------------------

TEST(Pieces, AreSlicedAndPutTogetherAlongAnyAxis) {
  std::vector<int64_t> numbers(24);
  for (size_t index = 0; index < numbers.size(); ++index)
    numbers[index] = static_cast<int64_t>(index);
  const Tensor whole = ints({2, 3, 4}, numbers);
  for (int64_t axis = 0; axis < 3; ++axis) {
    const int64_t length = whole.dims()[static_cast<size_t>(axis)];
    const std::vector<Tensor> pieces = {slice(whole, axis, 0, 1), slice(whole, axis, 1, 0),
                                        slice(whole, axis, 1, length - 1)};
    EXPECT_EQ(pieces[1].elements(), 0);
    EXPECT_TRUE(has_same_bits(concatenate(pieces, axis), whole)) << axis;
  }
  EXPECT_THAT(integers(slice(whole, 1, 1, 1)), ElementsAre(4, 5, 6, 7, 16, 17, 18, 19));
}

TEST(Pieces, MoveTheFirstAxis) {
  const Tensor rows = ints({3, 2, 1}, {1, 2, 3, 4, 5, 6});
  EXPECT_TRUE(has_same_bits(with_first_axis_at(rows, 0), rows));
  EXPECT_TRUE(has_same_bits(with_first_axis_at(rows, 1), ints({2, 3, 1}, {1, 3, 5, 2, 4, 6})));
  EXPECT_TRUE(has_same_bits(with_first_axis_at(rows, 2), ints({2, 1, 3}, {1, 3, 5, 2, 4, 6})));
}

}  // namespace
}  // namespace tessera::ops
