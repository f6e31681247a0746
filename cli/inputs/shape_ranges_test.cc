#include "cli/inputs/shape_ranges.h"

#include <set>
#include <utility>

#include "base/errors/error_test.h"
#include "base/matchers_test.h"

namespace tessera::cli {
namespace {

using testing::Pair;

Dimension open_dim(const char* name) { return {.value = std::nullopt, .symbol = name}; }
Dimension fixed_dim(int64_t size) { return {.value = size, .symbol = ""}; }

ValueDescription declared_input(const char* name, std::vector<Dimension> shape, const char* text) {
  ValueDescription input;
  input.name = name;
  input.type = DataType::Float32;
  input.shape = std::move(shape);
  input.text = text;
  return input;
}

std::vector<ValueDescription> sample_inputs() {
  std::vector<ValueDescription> inputs = {
      declared_input("tokens", {open_dim("batch"), open_dim("length")}, "float32 batchxlength"),
      declared_input("mask", {open_dim("batch"), open_dim("length"), fixed_dim(4)},
                     "float32 batchxlengthx4"),
      declared_input("other", {open_dim("other[0]")}, "float32 other[0]"),
      declared_input("any", {}, "float32 of any rank")};
  inputs.back().shape = std::nullopt;
  return inputs;
}

ShapeDraw draw_of(const std::vector<std::string>& arguments, const NamedShapes& fixed = {},
                  const NamedTensors& files = {}, uint64_t seed = 0) {
  std::vector<RangedShape> shapes;
  for (const std::string& argument : arguments) shapes.push_back(parse_ranged_shape(argument));
  return ShapeDraw(shapes, sample_inputs(), fixed, files, seed);
}

std::string draw_error(const std::vector<std::string>& arguments, const NamedShapes& fixed = {},
                       const NamedTensors& files = {}) {
  return error_of(ErrorKind::InvalidArgument, [&] { draw_of(arguments, fixed, files); });
}

TEST(ShapeRanges, ARangeIsInTheShapeNotInTheName) {
  EXPECT_TRUE(has_range("tokens=1x8..128"));
  EXPECT_TRUE(has_range("1..2"));
  EXPECT_FALSE(has_range("tokens=1x8"));
  EXPECT_FALSE(has_range("a..b=1x8"));
  EXPECT_FALSE(has_range("tokens=scalar"));
}

TEST(ShapeRanges, ArgumentsAreParsed) {
  const RangedShape shape = parse_ranged_shape("a=b=1x8..128x0..0");
  EXPECT_EQ(shape.name, "a=b");
  EXPECT_EQ(shape.ranges, (std::vector<SizeRange>{{1, 1}, {8, 128}, {0, 0}}));
  EXPECT_EQ(parse_ranged_shape("x=0..9223372036854775807").ranges[0].high, INT64_MAX);
}

TEST(ShapeRanges, WrongRangesAreNamed) {
  for (const auto& [argument, part] : std::vector<std::pair<std::string, std::string>>{
           {"x=8..4", "8..4"},
           {"x=1x-1..4", "-1..4"},
           {"x=1..-4", "1..-4"},
           {"x=1..", "1.."},
           {"x=..4", "..4"},
           {"x=1..2..3", "1..2..3"},
           {"x=1...3", "1...3"},
           {"x=1..2.5", "1..2.5"},
           {"x=1..2xN", "N"},
           {"x=1..2x", ""},
           {"x=x1..2", ""},
           {"x=1.. 2", "1.. 2"},
           {"x=1..9223372036854775808", "1..9223372036854775808"}}) {
    const std::string error =
        error_of(ErrorKind::InvalidArgument, [&, &text = argument] { parse_ranged_shape(text); });
    EXPECT_THAT(error,
                HasSubstr("--shape '" + argument + "': expected sizes, or ranges LOW..HIGH"));
    EXPECT_THAT(error, HasSubstr("found '" + part + "'"));
  }
  EXPECT_THAT(error_of([] { parse_ranged_shape("1..2"); }), HasSubstr("expected NAME=VALUE"));
}

TEST(ShapeRanges, OtherCommandsSayWhatToWrite) {
  refuse_range("a..b=1x8");
  EXPECT_THAT(error_of(ErrorKind::InvalidArgument, [] { refuse_range("a..x=2..3x1x8..128"); }),
              AllOf(HasSubstr("--shape 'a..x=2..3x1x8..128': expected one size"),
                    HasSubstr("only 'tessera bench'"), HasSubstr("--shape 'a..x=3x1x128'")));
  EXPECT_THAT(error_of([] { parse_shapes({"tokens=1x8..128"}, sample_inputs()); }),
              HasSubstr("write for example --shape 'tokens=1x128'"));
}

TEST(ShapeDraw, AllSizesOfARangeAreDrawn) {
  ShapeDraw draw = draw_of({"any=3..6x2x0..1"});
  std::set<std::vector<int64_t>> seen;
  for (int request = 0; request < 500; ++request) seen.insert(draw.next().at("any"));
  EXPECT_EQ(seen.size(), 8U);
  EXPECT_THAT(*seen.begin(), ElementsAre(3, 2, 0));
  EXPECT_THAT(*seen.rbegin(), ElementsAre(6, 2, 1));
}

TEST(ShapeDraw, OneNameGetsOneSize) {
  ShapeDraw draw =
      draw_of({"tokens=1..4x8..900", "#1=1..4x8..900x4", "other=8..900", "any=8..900"});
  int equal = 0;
  for (int request = 0; request < 50; ++request) {
    const NamedShapes shapes = draw.next();
    EXPECT_EQ(shapes.at("tokens")[0], shapes.at("mask")[0]);
    EXPECT_EQ(shapes.at("tokens")[1], shapes.at("mask")[1]);
    equal += static_cast<int>(shapes.at("other") == shapes.at("any"));
    equal += static_cast<int>(shapes.at("other")[0] == shapes.at("tokens")[1]);
  }
  EXPECT_LT(equal, 10) << "dimensions without a common name are drawn on their own";
}

TEST(ShapeDraw, EqualSeedsGiveEqualShapes) {
  ShapeDraw first = draw_of({"tokens=1x1..100000"});
  ShapeDraw second = draw_of({"tokens=1x1..100000"});
  ShapeDraw other = draw_of({"tokens=1x1..100000"}, {}, {}, 1);
  const NamedShapes shapes = first.next();
  EXPECT_EQ(shapes, second.next());
  EXPECT_NE(shapes, other.next());
  EXPECT_NE(shapes, first.next());
}

TEST(ShapeDraw, FixedShapesAndPlainSizesStay) {
  ShapeDraw draw = draw_of({"tokens=2x5..6"}, {{"mask", {2, 7, 4}}});
  const NamedShapes shapes = draw.next();
  EXPECT_THAT(shapes.at("mask"), ElementsAre(2, 7, 4));
  EXPECT_EQ(shapes.at("tokens")[0], 2);
  EXPECT_THAT(draw_of({"tokens=3..3x1..1"}).next(), ElementsAre(Pair("tokens", ElementsAre(3, 1))));
}

TEST(ShapeDraw, WhatDoesNotFitIsNamed) {
  EXPECT_THAT(draw_error({"tokns=1..2x1"}), HasSubstr("did you mean 'tokens'?"));
  EXPECT_THAT(draw_error({"tokens=1..2x1", "#0=1..2x1"}),
              HasSubstr("input 'tokens': expected one --shape, found two"));
  EXPECT_THAT(draw_error({"tokens=1..2x1"}, {{"tokens", {1, 1}}}), HasSubstr("found two"));
  EXPECT_THAT(draw_error({"tokens=1..2x1"}, {}, {{"tokens", Tensor(DataType::Float32, {1, 1})}}),
              HasSubstr("expected either a file (--input) or a range of sizes"));
  EXPECT_THAT(draw_error({"tokens=1..2"}), HasSubstr("expected float32 batchxlength, found 1..2 "));
  EXPECT_THAT(draw_error({"mask=1x2x3..4"}),
              HasSubstr("expected float32 batchxlengthx4, found 1x2x3..4 (--shape)"));
  EXPECT_THAT(draw_error({"any=1..9223372036854775807x2"}),
              HasSubstr("input 'any': shape 9223372036854775807x2"));
  EXPECT_THAT(draw_error({"tokens=1x8..64", "mask=1x8..128x4"}),
              AllOf(HasSubstr("for dimension 'length'"), HasSubstr("8..64"), HasSubstr("8..128")));
}

// -1: unknown.
std::vector<int64_t> sizes_of(const ValueDescription& input) {
  std::vector<int64_t> sizes;
  for (const Dimension& dimension : *input.shape) sizes.push_back(dimension.value.value_or(-1));
  return sizes;
}

TEST(SetShapes, NamesGiveOtherInputsTheirSizes) {
  std::vector<ValueDescription> inputs = sample_inputs();
  inputs[1].layout = "csr:7";
  inputs[1].text = "float32 9x9x4";
  set_shapes({{"tokens", {2, 5}}, {"other", {3}}}, sample_inputs(), inputs);
  EXPECT_THAT(sizes_of(inputs[0]), ElementsAre(2, 5));
  EXPECT_THAT(sizes_of(inputs[1]), ElementsAre(2, 5, 4));
  EXPECT_THAT(sizes_of(inputs[2]), ElementsAre(3));
  EXPECT_FALSE(inputs[3].shape);
  EXPECT_EQ(inputs[1].layout, "csr:7");
  EXPECT_EQ(inputs[1].text, "float32 batchxlengthx4");
  // The shapes of the request before are forgotten.
  set_shapes({{"tokens", {1, 6}}, {"any", {}}}, sample_inputs(), inputs);
  EXPECT_THAT(sizes_of(inputs[1]), ElementsAre(1, 6, 4));
  EXPECT_THAT(sizes_of(inputs[2]), ElementsAre(-1));
  EXPECT_THAT(sizes_of(inputs[3]), IsEmpty());
}

TEST(SetShapes, SizesThatDifferGiveNone) {
  std::vector<ValueDescription> declared = sample_inputs();
  declared.push_back(declared_input("last", {open_dim("length")}, "float32 length"));
  std::vector<ValueDescription> inputs = declared;
  const NamedShapes shapes = {{"tokens", {2, 5}}, {"mask", {2, 6, 4}}};
  set_shapes(shapes, declared, inputs);
  EXPECT_THAT(sizes_of(inputs[4]), ElementsAre(-1));
  // An input that nothing reads gives no sizes.
  declared[1].is_read = false;
  set_shapes(shapes, declared, inputs);
  EXPECT_THAT(sizes_of(inputs[4]), ElementsAre(5));
}

}  // namespace
}  // namespace tessera::cli
