#include "ops/control_flow/body_runner_test.h"

namespace tessera::ops {
namespace {

Tensor list_of(const std::vector<Tensor>& elements) { return Tensor::sequence(elements); }

// The first elements of the members of a list of float32 tensors.
std::vector<float> firsts(const Tensor& list) {
  std::vector<float> result;
  for (const Tensor& element : list.list()) result.push_back(values(element).front());
  return result;
}

const Tensor kThree = list_of({floats({1}), floats({2, 2}), floats({3})});

// The type that a node with one output has.
std::string type_text(const std::string& op, Attributes attributes,
                      const std::vector<std::optional<Type>>& inputs, int opset = 18) {
  std::vector<bool> is_given;
  for (const std::optional<Type>& input : inputs) is_given.push_back(input.has_value());
  const Node node = make_node(all_ops(), op, opset, std::move(attributes), is_given, 1);
  return inferred_texts(node, inputs)[0];
}

std::string type_error(const std::string& op, Attributes attributes,
                       const std::vector<std::optional<Type>>& inputs,
                       ErrorKind kind = ErrorKind::InvalidModel) {
  return error_of(kind, [&] { type_text(op, std::move(attributes), inputs); });
}

std::string value_error(const std::string& op, Attributes attributes,
                        const std::vector<Tensor>& inputs) {
  return error_of(ErrorKind::InvalidArgument,
                  [&] { run_values(op, 18, std::move(attributes), inputs); });
}

TEST(Sequence, IsYoungerThanOperatorSet10) {
  EXPECT_EQ(version_in(*all_ops().find("", "SequenceAt"), 10), std::nullopt);
  EXPECT_EQ(version_in(*all_ops().find("", "SequenceAt"), 28), 11);
}

// --- Lists ---------------------------------------------------------------------------------------

TEST(SequenceConstruct, KeepsCopiesOfWhatItDoesNotOwn) {
  const Tensor first = floats({1, 2});
  const Tensor second = floats({3});
  const Tensor list = run_values("SequenceConstruct", 18, {}, {borrowed(first), second})[0];
  ASSERT_EQ(list.list().size(), 2U);
  EXPECT_TRUE(has_same_bits(list.list()[0], first));
  EXPECT_NE(list.list()[0].data(), first.data());
  EXPECT_EQ(list.list()[1].data(), second.data());
}

TEST(SequenceConstruct, HasATypeOfAllElements) {
  const Dim batch = Dim::symbol("batch");
  EXPECT_EQ(type_text("SequenceConstruct", {}, {floats_of(Shape{2, 3}), floats_of(Shape{2, 4})}),
            "sequence(float32 2x?node.0.1)");
  EXPECT_EQ(type_text("SequenceConstruct", {}, {floats_of(Shape{batch}), floats_of(Shape{batch})}),
            "sequence(float32 ?node.0.0)");
  EXPECT_EQ(type_text("SequenceConstruct", {}, {floats_of(Shape{2}), floats_of(Shape{})}),
            "sequence(float32 ?)");
  EXPECT_EQ(type_text("SequenceConstruct", {}, {Type::sequence(bools_of())}),
            "sequence(sequence(bool ?))");
  EXPECT_THAT(
      type_error("SequenceConstruct", {}, {floats_of(Shape{2}), Type::sequence(floats_of())}),
      AllOf(HasSubstr("input 1"), HasSubstr("expected float32 2, as the list has")));
}

TEST(SequenceConstruct, RefusesElementsOfOtherTypes) {
  EXPECT_NE(type_error("SequenceConstruct", {}, {floats_of(), integers_of()}), "");
}

TEST(SequenceEmpty, HasTheTypeOfItsAttribute) {
  EXPECT_TRUE(run_values("SequenceEmpty", 18, {}, {})[0].list().empty());
  EXPECT_EQ(type_text("SequenceEmpty", {}, {}), "sequence(float32 ?)");
  EXPECT_EQ(type_text("SequenceEmpty", attributes_of({{"dtype", 7}}), {}), "sequence(int64 ?)");
  EXPECT_THAT(type_error("SequenceEmpty", attributes_of({{"dtype", 99}}), {}),
              AllOf(HasSubstr("attribute 'dtype'"), HasSubstr("found 99")));
  EXPECT_THAT(
      type_error("SequenceEmpty", attributes_of({{"dtype", 14}}), {}, ErrorKind::Unsupported),
      HasSubstr("have no kernels"));
}

TEST(SequenceAt, CountsFromBothEnds) {
  const auto at = [](const Tensor& position) {
    return values(run_values("SequenceAt", 18, {}, {kThree, position})[0]).front();
  };
  EXPECT_EQ(at(ints({}, {0})), 1);
  EXPECT_EQ(at(ints({1}, {2})), 3);
  EXPECT_EQ(at(ints({}, {-1})), 3);
  EXPECT_EQ(at(ints({}, {-3})), 1);
  EXPECT_EQ(at(Tensor::from<int32_t>(DataType::Int32, {}, std::vector<int32_t>{-2})), 2);
}

TEST(SequenceAt, RefusesPositionsOutsideOfTheList) {
  for (const int64_t position : {int64_t{3}, int64_t{-4}, kSmallest, kLargest}) {
    EXPECT_THAT(value_error("SequenceAt", {}, {kThree, ints({}, {position})}),
                AllOf(HasSubstr("node 'node' (SequenceAt)"),
                      HasSubstr("expected a position from -3 to 2 in a list of 3, found " +
                                std::to_string(position))));
  }
  EXPECT_THAT(value_error("SequenceAt", {}, {list_of({}), ints({}, {0})}),
              HasSubstr("in a list of 0"));
}

TEST(SequenceAt, AnElementMayHaveAnySizeThatIsNotKnown) {
  const Type list = Type::sequence(floats_of(Shape{Dim::symbol("batch"), 3}));
  EXPECT_EQ(type_text("SequenceAt", {}, {list, integers_of(Shape{})}), "float32 ?node.0.0x3");
  EXPECT_EQ(type_text("SequenceAt", {}, {Type(), integers_of()}), "unknown");
  EXPECT_THAT(type_error("SequenceAt", {}, {floats_of(Shape{2}), integers_of(Shape{})}),
              AllOf(HasSubstr("input 'input_sequence'"),
                    HasSubstr("expected a sequence, found float32 2")));
  EXPECT_THAT(type_error("SequenceAt", {}, {list, integers_of(Shape{2})}),
              AllOf(HasSubstr("input 'position'"), HasSubstr("expected one element")));
  EXPECT_THAT(type_error("SequenceAt", {}, {list, floats_of(Shape{})}),
              HasSubstr("input 'position'"));
}

TEST(SequenceInsert, PutsAnElementBeforeThatOfThePosition) {
  const auto inserted = [](const Tensor& position) {
    return firsts(run_values("SequenceInsert", 18, {}, {kThree, floats({9}), position})[0]);
  };
  EXPECT_THAT(inserted({}), ElementsAre(1, 2, 3, 9));
  EXPECT_THAT(inserted(ints({}, {0})), ElementsAre(9, 1, 2, 3));
  EXPECT_THAT(inserted(ints({}, {3})), ElementsAre(1, 2, 3, 9));
  EXPECT_THAT(inserted(ints({}, {-1})), ElementsAre(1, 2, 9, 3));
  EXPECT_THAT(inserted(ints({}, {-3})), ElementsAre(9, 1, 2, 3));
  for (const int64_t position : {4, -4}) {
    EXPECT_THAT(value_error("SequenceInsert", {}, {kThree, floats({9}), ints({}, {position})}),
                HasSubstr("expected a position from -3 to 3"));
  }
  EXPECT_EQ(kThree.list().size(), 3U);
}

TEST(SequenceInsert, KeepsACopyOfWhatItDoesNotOwn) {
  const Tensor element = floats({5});
  const Tensor list = run_values("SequenceInsert", 18, {}, {list_of({}), borrowed(element)})[0];
  EXPECT_NE(list.list()[0].data(), element.data());
  EXPECT_THAT(firsts(list), ElementsAre(5));
}

TEST(SequenceInsert, JoinsTheTypes) {
  const Type list = Type::sequence(floats_of(Shape{2, 3}));
  EXPECT_EQ(type_text("SequenceInsert", {}, {list, floats_of(Shape{2, 3})}),
            "sequence(float32 2x3)");
  EXPECT_EQ(type_text("SequenceInsert", {}, {list, floats_of(Shape{2, 4}), integers_of(Shape{})}),
            "sequence(float32 2x?node.0.1)");
  EXPECT_EQ(type_text("SequenceInsert", {}, {list, floats_of(Shape{2})}), "sequence(float32 ?)");
  EXPECT_EQ(type_text("SequenceInsert", {}, {Type(), floats_of(Shape{2})}), "sequence(float32 2)");
  EXPECT_THAT(type_error("SequenceInsert", {}, {list, integers_of(Shape{2, 3})}),
              AllOf(HasSubstr("input 'tensor'"),
                    HasSubstr("expected float32 2x3, as the list has, found int64 2x3")));
  EXPECT_THAT(type_error("SequenceInsert", {}, {list, floats_of(), integers_of(Shape{3})}),
              HasSubstr("expected one element"));
}

TEST(SequenceErase, RemovesTheLastElementOrThatOfThePosition) {
  const auto erased = [](const Tensor& position) {
    return firsts(run_values("SequenceErase", 18, {}, {kThree, position})[0]);
  };
  EXPECT_THAT(erased({}), ElementsAre(1, 2));
  EXPECT_THAT(erased(ints({}, {0})), ElementsAre(2, 3));
  EXPECT_THAT(erased(ints({}, {-2})), ElementsAre(1, 3));
  for (const int64_t position : {3, -4}) {
    EXPECT_THAT(value_error("SequenceErase", {}, {kThree, ints({}, {position})}),
                HasSubstr("expected a position from -3 to 2"));
  }
  EXPECT_THAT(value_error("SequenceErase", {}, {list_of({})}),
              HasSubstr("expected a list with an element to remove"));
  EXPECT_EQ(type_text("SequenceErase", {}, {Type::sequence(floats_of(Shape{2}))}),
            "sequence(float32 2)");
}

TEST(SequenceLength, CountsElements) {
  EXPECT_THAT(integers(run_values("SequenceLength", 18, {}, {kThree})[0]), ElementsAre(3));
  const Tensor none = run_values("SequenceLength", 18, {}, {list_of({})})[0];
  EXPECT_THAT(integers(none), ElementsAre(0));
  EXPECT_EQ(none.rank(), 0);
  EXPECT_EQ(type_text("SequenceLength", {}, {Type::sequence(floats_of())}), "int64 scalar");
  EXPECT_THAT(type_error("SequenceLength", {}, {floats_of()}), HasSubstr("expected a sequence"));
}

// --- ConcatFromSequence --------------------------------------------------------------------------

Tensor concat_list(const Tensor& list, int64_t axis, int64_t new_axis) {
  return run_values("ConcatFromSequence", 18,
                    attributes_of({{"axis", axis}, {"new_axis", new_axis}}), {list})[0];
}

TEST(ConcatFromSequence, PutsElementsOneAfterAnother) {
  const Tensor list =
      list_of({floats({2, 1}, {1, 4}), floats({2, 0}, {}), floats({2, 2}, {2, 3, 5, 6})});
  for (const int64_t axis : {1, -1}) {
    const Tensor whole = concat_list(list, axis, 0);
    EXPECT_THAT(whole.dims(), ElementsAre(2, 3));
    EXPECT_THAT(values(whole), ElementsAre(1, 2, 3, 4, 5, 6));
  }
}

TEST(ConcatFromSequence, StacksAlongANewAxis) {
  const Tensor list = list_of({floats({1, 2, 3}), floats({4, 5, 6})});
  for (const int64_t axis : {0, -2}) {
    EXPECT_TRUE(has_same_bits(concat_list(list, axis, 1), floats({2, 3}, {1, 2, 3, 4, 5, 6})));
  }
  for (const int64_t axis : {1, -1}) {
    EXPECT_TRUE(has_same_bits(concat_list(list, axis, 1), floats({3, 2}, {1, 4, 2, 5, 3, 6})));
  }
  EXPECT_TRUE(has_same_bits(concat_list(list_of({floats({}, {7}), floats({}, {8})}), 0, 1),
                            floats({7, 8})));
}

TEST(ConcatFromSequence, RefusesElementsThatDoNotFit) {
  const auto error_with = [](const Tensor& list, int64_t axis, int64_t new_axis) {
    return value_error("ConcatFromSequence",
                       attributes_of({{"axis", axis}, {"new_axis", new_axis}}), {list});
  };
  const Tensor two = floats({1, 2}, {1, 2});
  EXPECT_THAT(error_with(list_of({}), 0, 0), HasSubstr("found an empty one"));
  EXPECT_THAT(error_with(list_of({two}), 2, 0), HasSubstr("expected an axis in [-2, 2), found 2"));
  EXPECT_THAT(error_with(list_of({two}), -4, 1), HasSubstr("[-3, 3), found -4"));
  EXPECT_THAT(error_with(list_of({floats({}, {1})}), 0, 0), HasSubstr("found 0"));
  EXPECT_THAT(error_with(list_of({two, floats({1, 3}, {1, 2, 3})}), 0, 0),
              AllOf(HasSubstr("along axis 0"), HasSubstr("found 1x2 and 1x3")));
  EXPECT_THAT(error_with(list_of({two, floats({1, 3}, {1, 2, 3})}), 1, 1),
              HasSubstr("along axis 1"));
  EXPECT_THAT(error_with(list_of({two, floats({1, 2})}), 1, 0), HasSubstr("found 1x2 and 2"));
  EXPECT_NE(error_with(list_of({two, ints({1, 2}, {1, 2})}), 0, 0), "");
}

TEST(ConcatFromSequence, InfersTheRank) {
  const Type list = Type::sequence(floats_of(Shape{2, Dim::symbol("batch")}));
  const auto joined = [&](int64_t axis, int64_t new_axis) {
    return type_text("ConcatFromSequence", attributes_of({{"axis", axis}, {"new_axis", new_axis}}),
                     {list});
  };
  EXPECT_EQ(joined(0, 0), "float32 ?node.0.0x?node.0.1");
  EXPECT_EQ(joined(-1, 0), "float32 2x?node.0.1");
  EXPECT_EQ(joined(0, 1), "float32 ?node.0.0x2x?node.0.2");
  EXPECT_EQ(joined(-1, 1), "float32 2x?node.0.1x?node.0.2");
  const Attributes first = attributes_of({{"axis", 0}});
  EXPECT_EQ(type_text("ConcatFromSequence", first, {Type::sequence(floats_of())}), "float32 ?");
  EXPECT_EQ(type_text("ConcatFromSequence", first, {Type()}), "unknown");
  EXPECT_THAT(type_error("ConcatFromSequence", attributes_of({{"axis", 2}}), {list}),
              HasSubstr("[-2, 2)"));
  EXPECT_THAT(type_error("ConcatFromSequence", first, {floats_of()}),
              HasSubstr("expected a sequence"));
  EXPECT_THAT(type_error("ConcatFromSequence", first, {Type::sequence(list)}),
              HasSubstr("expected a sequence of tensors"));
}

// --- SplitToSequence -----------------------------------------------------------------------------

struct SplitCase {
  const char* name;
  int64_t axis;
  int64_t keepdims;
  Tensor split;
  std::vector<std::vector<int64_t>> dims;
  std::vector<float> firsts;
};

TEST(SplitToSequence, SplitsInEveryForm) {
  const Tensor int32s = Tensor::from<int32_t>(DataType::Int32, {2}, std::vector<int32_t>{1, 2});
  const SplitCase cases[] = {
      {"rows", 0, 1, {}, {{1, 3}, {1, 3}}, {1, 4}},
      {"rows without the axis", 0, 0, {}, {{3}, {3}}, {1, 4}},
      {"columns", 1, 1, {}, {{2, 1}, {2, 1}, {2, 1}}, {1, 2, 3}},
      {"columns without the axis", -1, 0, {}, {{2}, {2}, {2}}, {1, 2, 3}},
      {"a length for all, and a shorter end", 1, 1, ints({}, {2}), {{2, 2}, {2, 1}}, {1, 3}},
      {"a length that divides the axis", 0, 1, ints({}, {1}), {{1, 3}, {1, 3}}, {1, 4}},
      {"a length beyond the axis", 1, 1, ints({}, {9}), {{2, 3}}, {1}},
      {"the largest length", 1, 1, ints({}, {kLargest}), {{2, 3}}, {1}},
      {"a length, which keeps the axis", 0, 0, ints({}, {1}), {{1, 3}, {1, 3}}, {1, 4}},
      {"lengths", 1, 1, int32s, {{2, 1}, {2, 2}}, {1, 2}},
      {"lengths, which keep the axis", -1, 0, ints({2, 1}), {{2, 2}, {2, 1}}, {1, 3}},
      {"one length in a list", 1, 1, ints({3}), {{2, 3}}, {1}},
  };
  const Tensor whole = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  for (const SplitCase& each : cases) {
    SCOPED_TRACE(each.name);
    const Tensor list = run_values(
        "SplitToSequence", 18, attributes_of({{"axis", each.axis}, {"keepdims", each.keepdims}}),
        {whole, each.split})[0];
    std::vector<std::vector<int64_t>> dims;
    for (const Tensor& element : list.list()) dims.push_back(element.dims());
    EXPECT_EQ(dims, each.dims);
    EXPECT_EQ(firsts(list), each.firsts);
  }
}

TEST(SplitToSequence, PiecesMayBeEmpty) {
  const Tensor list = run_values("SplitToSequence", 18, {}, {floats({1, 2}), ints({0, 2, 0})})[0];
  ASSERT_EQ(list.list().size(), 3U);
  EXPECT_THAT(list.list()[2].dims(), ElementsAre(0));
  EXPECT_TRUE(run_values("SplitToSequence", 18, {}, {floats({0}, {})})[0].list().empty());
}

TEST(SplitToSequence, RefusesLengthsThatDoNotAddUp) {
  const auto error_with = [](const Tensor& split) {
    return value_error("SplitToSequence", {}, {floats({1, 2, 3}), split});
  };
  EXPECT_THAT(error_with(ints({1, 1})), HasSubstr("expected lengths that add up to 3, found 2"));
  EXPECT_THAT(error_with(ints({2, 2})),
              HasSubstr("expected lengths that add up to 3, found 2 where 1 are left"));
  EXPECT_THAT(error_with(ints({-1, 4})), HasSubstr("found -1"));
  EXPECT_THAT(error_with(ints({kLargest, kLargest, 5})), HasSubstr("add up to 3"));
  EXPECT_THAT(error_with(ints({0}, {})), HasSubstr("found 0"));
  EXPECT_THAT(error_with(ints({}, {0})), HasSubstr("found 0"));
  EXPECT_THAT(error_with(ints({}, {-2})), HasSubstr("found -2"));
}

TEST(SplitToSequence, InfersOneTypeForAllPieces) {
  const Type whole = floats_of(Shape{4, Dim::symbol("batch")});
  const auto split = [&](int64_t axis, int64_t keepdims,
                         const std::vector<std::optional<Type>>& inputs) {
    return type_text("SplitToSequence", attributes_of({{"axis", axis}, {"keepdims", keepdims}}),
                     inputs);
  };
  EXPECT_EQ(split(0, 1, {whole}), "sequence(float32 1x?node.0.1)");
  EXPECT_EQ(split(0, 0, {whole}), "sequence(float32 ?node.0.0)");
  EXPECT_EQ(split(-1, 0, {whole}), "sequence(float32 4)");
  EXPECT_EQ(split(0, 0, {whole, integers_of(Shape{})}), "sequence(float32 ?node.0.0x?node.0.1)");
  EXPECT_EQ(split(-1, 1, {whole, integers_of(Shape{2})}), "sequence(float32 4x?node.0.1)");
  EXPECT_EQ(split(5, 1, {floats_of()}), "sequence(float32 ?)");
  EXPECT_THAT(type_error("SplitToSequence", attributes_of({{"axis", 2}}), {whole}),
              HasSubstr("[-2, 2)"));
  EXPECT_THAT(type_error("SplitToSequence", {}, {Type::sequence(whole)}),
              HasSubstr("expected a tensor"));
}

// --- SequenceMap ---------------------------------------------------------------------------------

Node map_node(const std::vector<Type>& inputs, size_t outputs) {
  return node_with_bodies(
      "SequenceMap", 18, {}, std::vector<bool>(inputs.size(), true), outputs,
      {typed_body("body", inputs, std::vector<Type>(outputs, floats_of(Shape{Dim::symbol("n")})))});
}

TEST(SequenceMap, RunsItsBodyOnEachElement) {
  const Tensor letters = list_of({floats({4}), floats({5}), floats({6})});
  const Tensor extra = floats({7});
  const auto outputs =
      run_values(map_node({floats_of(), floats_of(), floats_of()}, 2), {kThree, letters, extra},
                 [&](size_t, std::span<const Tensor> inputs) -> std::vector<Tensor> {
                   EXPECT_EQ(inputs[2].data(), extra.data());
                   return {floats({values(inputs[0])[0] + values(inputs[1])[0]}), inputs[1]};
                 });
  EXPECT_THAT(firsts(outputs[0]), ElementsAre(5, 7, 9));
  EXPECT_THAT(firsts(outputs[1]), ElementsAre(4, 5, 6));
  EXPECT_TRUE(run_values(map_node({floats_of()}, 1), {list_of({})})[0].list().empty());
}

TEST(SequenceMap, RefusesListsOfOtherLengths) {
  EXPECT_THAT(error_of(ErrorKind::InvalidArgument,
                       [] {
                         run_values(map_node({floats_of(), floats_of()}, 1),
                                    {kThree, list_of({floats({1})})},
                                    [](size_t, std::span<const Tensor> inputs) {
                                      return std::vector<Tensor>{inputs[0]};
                                    });
                       }),
              HasSubstr("expected lists of 3 elements, found one of 1"));
}

TEST(SequenceMap, GivesElementsToItsBody) {
  const Node node = map_node({Type(), Type(), Type()}, 1);
  const Type list = Type::sequence(floats_of(Shape{Dim::symbol("batch"), 2}));
  EXPECT_THAT(
      body_input_texts(node, {list, list, floats_of(Shape{3})}),
      ElementsAre("float32 ?node.element.0.0x2", "float32 ?node.element.1.0x2", "float32 3"));
  EXPECT_THAT(inferred_texts(node, {list, list, floats_of(Shape{3})}),
              ElementsAre("sequence(float32 ?node.0.0)"));
}

TEST(SequenceMap, RefusesABodyOfAnotherForm) {
  const Type list = Type::sequence(floats_of());
  const auto error_with = [&](const std::vector<Type>& inputs, const std::vector<Type>& outputs) {
    Node node = map_node({list, list}, 1);
    node.bodies[0] = typed_body("body", inputs, outputs);
    return error_of(ErrorKind::InvalidModel, [&] { body_input_texts(node, {list, list}); });
  };
  EXPECT_EQ(error_with({Type(), Type()}, {Type()}), "");
  EXPECT_THAT(error_with({Type()}, {Type()}),
              AllOf(HasSubstr("node 'node' (SequenceMap), body"),
                    HasSubstr("expected 2 inputs and 1 outputs, found 1 and 1")));
  EXPECT_THAT(error_with({Type(), Type()}, {}), HasSubstr("found 2 and 0"));
}

// --- Optionals -----------------------------------------------------------------------------------

TEST(Optional, HasItsInputAsContentOrNone) {
  const Attributes type = attributes_of({{"type", floats_of(Shape{2})}});
  EXPECT_TRUE(run_values("Optional", 18, type, {})[0].is_empty());
  EXPECT_EQ(type_text("Optional", type, {}), "optional(float32 2)");
  EXPECT_EQ(type_text("Optional", {}, {Type::sequence(floats_of())}),
            "optional(sequence(float32 ?))");
  const Tensor content = floats({1, 2});
  const Tensor made = run_values("Optional", 18, {}, {borrowed(content)})[0];
  EXPECT_TRUE(has_same_bits(made, content));
  EXPECT_NE(made.data(), content.data());
  EXPECT_EQ(run_values("Optional", 18, {}, {kThree})[0].list().size(), 3U);
  EXPECT_THAT(type_error("Optional", {}, {}),
              HasSubstr("expected an input or the attribute 'type', found neither"));
}

TEST(OptionalGetElement, GivesTheContentAndRefusesAnEmptyOne) {
  EXPECT_THAT(values(run_values("OptionalGetElement", 18, {}, {floats({1, 2})})[0]),
              ElementsAre(1, 2));
  EXPECT_EQ(run_values("OptionalGetElement", 15, {}, {kThree})[0].list().size(), 3U);
  const Node node = make_node(all_ops(), "OptionalGetElement", 18, {}, {true}, 1);
  EXPECT_THAT(error_of(ErrorKind::InvalidArgument, [&] { run_values(node, {Tensor()}); }),
              HasSubstr("expected an optional with a content, found an empty one"));
}

TEST(OptionalGetElement, HasTheTypeOfTheContent) {
  const Type content = floats_of(Shape{Dim::symbol("batch"), 2});
  EXPECT_EQ(type_text("OptionalGetElement", {}, {Type::optional(content)}), "float32 batchx2");
  EXPECT_EQ(type_text("OptionalGetElement", {}, {content}), "float32 batchx2");
  EXPECT_EQ(type_text("OptionalGetElement", {}, {Type::optional(Type::sequence(content))}),
            "sequence(float32 batchx2)");
  EXPECT_EQ(type_text("OptionalGetElement", {}, {Type()}), "unknown");
}

TEST(OptionalHasElement, SaysWhetherThereIsAContent) {
  const auto has = [](const Tensor& optional) {
    const Node node = make_node(all_ops(), "OptionalHasElement", 18, {}, {true}, 1);
    const Tensor found = run_values(node, {optional})[0];
    EXPECT_EQ(found.type(), DataType::Bool);
    EXPECT_EQ(found.rank(), 0);
    return bytes(found)[0] != 0;
  };
  EXPECT_TRUE(has(floats({0}, {})));
  EXPECT_TRUE(has(list_of({})));
  EXPECT_FALSE(has(Tensor()));
  EXPECT_THAT(bytes(run_values("OptionalHasElement", 18, {}, {})[0]), ElementsAre(0));
  EXPECT_EQ(type_text("OptionalHasElement", {}, {Type::optional(floats_of())}), "bool scalar");
  EXPECT_EQ(type_text("OptionalHasElement", {}, {}), "bool scalar");
}

}  // namespace
}  // namespace tessera::ops
