// tessera/backend_ops.h: what attributes and constants of operators mean. Expected values are those
// of ONNX's Operators.md, worked out by hand.
#include "tessera/backend_ops.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/test_plugins.h"
#include "ops/graph_test.h"
#include "ops/op_test.h"

namespace tessera {
namespace {

using plugin::ResizeCoordinates;
using plugin::ResizeRounding;
using testing::DoubleEq;
using testing_plugins::open_mirror;
using Integers = std::vector<int64_t>;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// Shows the only node of a graph to `look` as a plug-in sees it: `op` reads float32 "x" of `dims`,
// followed by `constants` (an entry without elements is an omitted input).
struct OneNode {
  std::string op;
  Integers dims;
  std::vector<Tensor> constants;
  Attributes attributes;
  int opset = 17;

  void show(const std::function<void(const plugin::Node& node)>& look) const {
    GraphBuilder builder(all_ops(), opset);
    builder.input("x", float_type(Shape(dims.begin(), dims.end())));
    std::vector<std::string> inputs = {"x"};
    for (const Tensor& constant : constants) {
      inputs.push_back("c" + std::to_string(inputs.size()));
      builder.constant(inputs.back(), constant);
    }
    builder.node("n", op, inputs, {"y"}, attributes).output("y");
    const Graph graph = builder.graph();
    const tessera_graph view(graph, all_ops());
    bool was_shown = false;
    const std::vector<std::shared_ptr<const Plugin>> plugins = {
        open_mirror([&](const plugin::Graph& given, plugin::Proposals&) {
          look(given.node(0));
          was_shown = true;
        })};
    collect_offers(view, plugins, LayoutTable(plugins), {});
    EXPECT_TRUE(was_shown);
  }
};

TEST(BackendOps, AxesCountFromTheFrontOrTheBack) {
  EXPECT_EQ(plugin::find_axis(0, 3), 0U);
  EXPECT_EQ(plugin::find_axis(-1, 3), 2U);
  EXPECT_EQ(plugin::find_axis(-3, 3), 0U);
  EXPECT_EQ(plugin::find_axis(3, 3), std::nullopt);
  EXPECT_EQ(plugin::find_axis(-4, 3), std::nullopt);
  EXPECT_EQ(plugin::find_axis(0, 0), std::nullopt);
  EXPECT_EQ(plugin::normalized_axis(-2, 4), 2U);
  try {
    plugin::normalized_axis(-5, 4);
    ADD_FAILURE() << "no axis -5 of 4";
  } catch (const plugin::Failure& failure) {
    EXPECT_EQ(failure.kind(), TESSERA_UNSUPPORTED);
    EXPECT_STREQ(failure.what(), "takes axes of 4 dimensions only, found -5");
  }
}

TEST(BackendOps, ReducedAxesAreAnAttributeOrAnInput) {
  const auto expect = [](const OneNode& node, const std::vector<bool>& expected) {
    node.show([&](const plugin::Node& seen) {
      EXPECT_EQ(plugin::reduced_axes(seen, node.dims.size()), expected);
    });
  };
  expect({"ReduceMax", {2, 3, 4}, {}, attributes_of({{"axes", {-1, 0}}})}, {true, false, true});
  expect({"ReduceMax", {2, 3, 4}, {}, {}}, {true, true, true});
  expect({"ReduceSum", {2, 3, 4}, {ints({1}, {-2})}, {}}, {false, true, false});
  expect({"ReduceSum", {2, 3, 4}, {ints({0}, {})}, {}}, {true, true, true});
  expect({"ReduceSum", {2, 3, 4}, {ints({0}, {})}, attributes_of({{"noop_with_empty_axes", 1}})},
         {false, false, false});
}

TEST(BackendOps, ATransposeWithoutAnOrderReversesTheAxes) {
  OneNode{"Transpose", {2, 3, 4}, {}, attributes_of({{"perm", {0, 2, 1}}})}.show(
      [](const plugin::Node& node) {
        EXPECT_THAT(plugin::transpose_order(node), ElementsAre(0, 2, 1));
      });
  OneNode{"Transpose", {2, 3, 4}, {}, {}}.show([](const plugin::Node& node) {
    EXPECT_THAT(plugin::transpose_order(node), ElementsAre(2, 1, 0));
  });
}

TEST(BackendOps, SliceListsAreInputsOrAttributes) {
  const OneNode inputs = {"Slice", {8, 8}, {ints({1}, {1}), ints({1}, {5}), ints({1}, {-1})}, {}};
  inputs.show([](const plugin::Node& node) {
    const auto lists = plugin::slice_lists(node);
    ASSERT_TRUE(lists.has_value());
    EXPECT_THAT(lists->starts, ElementsAre(1));
    EXPECT_EQ(lists->ends, Integers{5});
    EXPECT_THAT(lists->axes, ElementsAre(-1));
    EXPECT_THAT(lists->steps, ElementsAre(1));
  });
  Attributes attributes = attributes_of({{"starts", {0, 2}}});
  attributes.set("ends", Integers{4, 3});
  const OneNode old = {"Slice", {8, 8}, {}, attributes, 9};
  old.show([](const plugin::Node& node) {
    const auto lists = plugin::slice_lists(node);
    ASSERT_TRUE(lists.has_value());
    EXPECT_THAT(lists->starts, ElementsAre(0, 2));
    EXPECT_EQ(lists->ends, (Integers{4, 3}));
    EXPECT_THAT(lists->axes, ElementsAre(0, 1));
    EXPECT_THAT(lists->steps, ElementsAre(1, 1));
  });
}

// Compares with a list whose elements are selected one by one, between bounds that are clamped as
// ONNX's text defines.
TEST(BackendOps, SliceRangesAreThoseOfOnnx) {
  for (int64_t size = 0; size <= 4; ++size) {
    for (const int64_t start : {kMin, int64_t{-5}, int64_t{-2}, int64_t{0}, int64_t{3}, kMax}) {
      for (const int64_t end : {kMin, int64_t{-6}, int64_t{-1}, int64_t{0}, int64_t{2}, kMax}) {
        for (const int64_t step : {int64_t{1}, int64_t{3}, int64_t{-1}, int64_t{-2}, kMin, kMax}) {
          const auto from_front = [&](int64_t index) { return index < 0 ? index + size : index; };
          const int64_t last = step > 0 ? size : std::max<int64_t>(size - 1, 0);
          int64_t index = std::clamp<int64_t>(from_front(start), 0, last);
          const int64_t stop =
              std::clamp<int64_t>(from_front(end), step > 0 ? 0 : -1, step > 0 ? size : size - 1);
          Integers expected;
          while (size > 0 && (step > 0 ? index < stop : index > stop)) {
            expected.push_back(index);
            if (step > size || step < -size) break;
            index += step;
          }
          const plugin::SliceRange range = plugin::slice_range(size, start, end, step);
          Integers found;
          for (int64_t i = 0; i < range.count; ++i) found.push_back(range.start + i * range.step);
          EXPECT_EQ(found, expected) << size << ": " << start << ", " << end << ", " << step;
        }
      }
    }
  }
}

// [3 wide, stride 2] over 5 elements gives 2 outputs without padding and 3 with "same" padding.
TEST(BackendOps, WindowsHaveThePaddingThatTheModelAsksFor) {
  struct Case {
    std::string auto_pad;
    int64_t input;
    int64_t output;
    int64_t pad_begin;
    int64_t pad_end;
  };
  for (const Case& each : {Case{"NOTSET", 5, 4, 1, 2}, Case{"VALID", 5, 2, 0, 0},
                           Case{"SAME_UPPER", 6, 3, 0, 1}, Case{"SAME_LOWER", 6, 3, 1, 0}}) {
    Attributes attributes = attributes_of({{"pads", {1, 2}}});
    attributes.set("strides", Integers{2});
    attributes.set("kernel_shape", Integers{3});
    attributes.set("auto_pad", each.auto_pad);
    OneNode{"MaxPool", {1, 1, each.input}, {}, attributes}.show([&](const plugin::Node& node) {
      const Integers kernel = {3};
      const Integers input = {each.input};
      const Integers output = {each.output};
      const auto axes = plugin::window_axes(node.attributes(), kernel, input, output);
      ASSERT_EQ(axes.size(), 1U) << each.auto_pad;
      EXPECT_EQ(axes[0].pad_begin, each.pad_begin) << each.auto_pad;
      EXPECT_EQ(axes[0].pad_end, each.pad_end) << each.auto_pad;
      EXPECT_EQ(axes[0].stride, 2);
      EXPECT_EQ(axes[0].dilation, 1);
      EXPECT_EQ(plugin::has_explicit_pads(node.attributes()), each.auto_pad == "NOTSET");
    });
  }
}

TEST(BackendOps, AListAttributeOfAnotherLengthIsRefused) {
  Attributes two = attributes_of({{"strides", {2, 2}}});
  two.set("kernel_shape", Integers{3});
  OneNode{"MaxPool", {1, 1, 5}, {}, two}.show([](const plugin::Node& node) {
    try {
      plugin::attribute_list(node.attributes(), "strides", 1, 1);
      ADD_FAILURE() << "two strides for one axis";
    } catch (const plugin::Failure& failure) {
      EXPECT_THAT(failure.what(), HasSubstr("cannot read attribute 'strides'"));
    }
    EXPECT_THAT(plugin::attribute_list(node.attributes(), "none", 2, 7), ElementsAre(7, 7));
  });
}

// Each tap of each output is counted one by one.
TEST(BackendOps, TapsInsideAreThoseThatReadTheInput) {
  for (const int64_t dilation : {1, 2, 3}) {
    for (const int64_t pad : {0, 1, 4}) {
      plugin::WindowAxis axis = {.input = 5,
                                 .kernel = 3,
                                 .stride = 2,
                                 .dilation = dilation,
                                 .pad_begin = pad,
                                 .pad_end = pad};
      axis.output = (axis.input + 2 * pad - axis.extent()) / axis.stride + 1;
      for (int64_t output = 0; output < axis.output; ++output) {
        int64_t inside = 0;
        int64_t padded = 0;
        const plugin::TapRange range = plugin::taps_inside(axis, output);
        for (int64_t tap = 0; tap < axis.kernel; ++tap) {
          const int64_t source = output * axis.stride + tap * dilation - pad;
          const bool is_inside = source >= 0 && source < axis.input;
          EXPECT_EQ(is_inside, tap >= range.begin && tap < range.end);
          inside += is_inside ? 1 : 0;
          padded += source < axis.input + pad ? 1 : 0;
        }
        EXPECT_EQ(range.count(), inside);
        EXPECT_EQ(plugin::taps_inside_padding(axis, output), padded);
      }
    }
  }
}

TEST(BackendOps, ResizePositionsAreThoseOfEachCoordinateTransformation) {
  const plugin::ResizeAxis twice = {.input = 4, .output = 8, .given_scale = 2};
  const auto position = [&](const char* mode, int64_t index) {
    return plugin::source_position(plugin::resize_coordinates(mode), twice, index);
  };
  EXPECT_THAT(position("half_pixel", 3), DoubleEq(1.25));
  EXPECT_THAT(position("half_pixel_symmetric", 3), DoubleEq(1.25));
  EXPECT_THAT(position("pytorch_half_pixel", 3), DoubleEq(1.25));
  EXPECT_THAT(position("asymmetric", 3), DoubleEq(1.5));
  EXPECT_THAT(position("tf_half_pixel_for_nn", 3), DoubleEq(1.75));
  EXPECT_THAT(position("align_corners", 7), DoubleEq(3));
  const plugin::ResizeAxis crop = {4, 3, 1, 0.25F, 0.75F};
  EXPECT_THAT(plugin::source_position(ResizeCoordinates::TfCropAndResize, crop, 2), DoubleEq(2.25));
  const plugin::ResizeAxis halfway = {6, 10, 1, 0.3F, 1};
  EXPECT_THAT(plugin::source_position(ResizeCoordinates::TfCropAndResize, halfway, 0),
              DoubleEq(1.5));
  EXPECT_THROW(plugin::resize_coordinates("half"), plugin::Failure);
  EXPECT_THROW(plugin::resize_rounding("half"), plugin::Failure);
}

// The position as a fraction: upper / lower, with lower > 0.
struct Fraction {
  int64_t upper = 0;
  int64_t lower = 1;
};

Fraction position_of_sizes(ResizeCoordinates coordinates, int64_t input, int64_t output,
                           int64_t index) {
  switch (coordinates) {
    case ResizeCoordinates::AlignCorners:
      return output > 1 ? Fraction{index * (input - 1), output - 1} : Fraction();
    case ResizeCoordinates::Asymmetric:
      return {index * input, output};
    case ResizeCoordinates::TfHalfPixelForNn:
      return {(2 * index + 1) * input, 2 * output};
    default:
      if (coordinates == ResizeCoordinates::PytorchHalfPixel && output == 1) return {};
      return {(2 * index + 1) * input - output, 2 * output};
  }
}

int64_t floor_of(int64_t upper, int64_t lower) {
  return upper >= 0 ? upper / lower : -((lower - 1 - upper) / lower);
}

// Rounded in whole numbers.
int64_t rounded(ResizeRounding rounding, const Fraction& position) {
  const auto& [upper, lower] = position;
  switch (rounding) {
    case ResizeRounding::PreferFloor:
      return -floor_of(lower - 2 * upper, 2 * lower);
    case ResizeRounding::PreferCeil:
      return floor_of(2 * upper + lower, 2 * lower);
    case ResizeRounding::Ceil:
      return -floor_of(-upper, lower);
    default:
      return floor_of(upper, lower);
  }
}

TEST(BackendOps, ResizePositionsOfSizesAreRational) {
  constexpr ResizeCoordinates kCoordinates[] = {
      ResizeCoordinates::HalfPixel,        ResizeCoordinates::HalfPixelSymmetric,
      ResizeCoordinates::PytorchHalfPixel, ResizeCoordinates::AlignCorners,
      ResizeCoordinates::Asymmetric,       ResizeCoordinates::TfHalfPixelForNn};
  constexpr ResizeRounding kRoundings[] = {ResizeRounding::PreferFloor, ResizeRounding::PreferCeil,
                                           ResizeRounding::Floor, ResizeRounding::Ceil};
  for (int64_t input = 1; input <= 100; ++input) {
    for (int64_t output = 1; output <= 100; ++output) {
      const plugin::ResizeAxis axis = {
          .input = input, .output = output, .resized = output, .original = input};
      for (const ResizeCoordinates coordinates : kCoordinates) {
        for (int64_t index = 0; index < output; ++index) {
          const double position = plugin::source_position(coordinates, axis, index);
          const Fraction exact = position_of_sizes(coordinates, input, output, index);
          for (const ResizeRounding rounding : kRoundings) {
            const int64_t expected = std::clamp<int64_t>(rounded(rounding, exact), 0, input - 1);
            ASSERT_EQ(plugin::nearest_source(rounding, axis, position), expected)
                << input << " to " << output << " at " << index;
          }
        }
      }
    }
  }
}

TEST(BackendOps, TheNearestElementIsRoundedAsAskedAndStaysInside) {
  const plugin::ResizeAxis axis = {.input = 4, .output = 2, .given_scale = 0.5F};
  EXPECT_EQ(plugin::nearest_source(ResizeRounding::PreferFloor, axis, 1.5F), 1);
  EXPECT_EQ(plugin::nearest_source(ResizeRounding::PreferCeil, axis, 1.5F), 2);
  EXPECT_EQ(plugin::nearest_source(ResizeRounding::Floor, axis, 1.75F), 1);
  EXPECT_EQ(plugin::nearest_source(ResizeRounding::Ceil, axis, 1.25F), 2);
  EXPECT_EQ(plugin::nearest_source(ResizeRounding::Legacy, axis, 1.25F), 2);
  EXPECT_EQ(plugin::nearest_source(ResizeRounding::Legacy, {4, 8, 2}, 1.75F), 1);
  EXPECT_EQ(plugin::nearest_source(ResizeRounding::Floor, axis, -1e30F), 0);
  EXPECT_EQ(plugin::nearest_source(ResizeRounding::Floor, axis, 1e30F), 3);
  EXPECT_EQ(plugin::nearest_source(ResizeRounding::Floor, axis, std::nanf("")), 0);
}

TEST(BackendOps, ResizedAxesAreAllOrThoseThatAreNamed) {
  const std::vector<Tensor> scales = {floats({0}, {}), floats({2}, {2, 2})};
  OneNode{"Resize", {2, 3, 4}, scales, attributes_of({{"axes", {-1, 0}}}), 18}.show(
      [](const plugin::Node& node) {
        EXPECT_THAT(plugin::resized_axes(node, 3), ElementsAre(2, 0));
      });
  OneNode{"Resize", {2, 3}, scales, {}}.show([](const plugin::Node& node) {
    EXPECT_THAT(plugin::resized_axes(node, 2), ElementsAre(0, 1));
  });
}

TEST(BackendOps, ClipHasNoBoundsWhereNoneAreGiven) {
  OneNode{"Clip", {2}, {floats({}, {-1}), floats({}, {6})}, {}}.show([](const plugin::Node& node) {
    EXPECT_EQ(plugin::clip_bounds(node).min, -1.0);
    EXPECT_EQ(plugin::clip_bounds(node).max, 6.0);
  });
  OneNode{"Clip", {2}, {}, {}}.show([](const plugin::Node& node) {
    EXPECT_EQ(plugin::clip_bounds(node).min, -std::numeric_limits<double>::infinity());
    EXPECT_EQ(plugin::clip_bounds(node).max, std::numeric_limits<double>::infinity());
  });
  OneNode{"Clip", {2}, {}, attributes_of({{"max", 6.0F}}), 6}.show([](const plugin::Node& node) {
    EXPECT_EQ(plugin::clip_bounds(node).min, -double{std::numeric_limits<float>::max()});
    EXPECT_EQ(plugin::clip_bounds(node).max, 6.0);
  });
}

TEST(BackendOps, ConstantsAreReadInTheTypesThatTheyHave) {
  OneNode{"Clip", {2}, {floats({1}, {2.5}), ints({2}, {3, 4})}, {}}.show(
      [](const plugin::Node& node) {
        EXPECT_EQ(plugin::constant_number(node.input(1)), 2.5);
        EXPECT_EQ(plugin::constant_number(node.input(2)), std::nullopt) << "two elements";
        EXPECT_EQ(plugin::constant_number(node.input(0)), std::nullopt) << "no constant";
        EXPECT_EQ(plugin::constant_integers(node.input(2)), (Integers{3, 4}));
        EXPECT_EQ(plugin::constant_integers(node.input(1)), std::nullopt) << "floats";
        EXPECT_EQ(plugin::constant_integers(node.input(0)), std::nullopt) << "no constant";
      });
}

TEST(BackendOps, StridesOfOperandsThatBroadcast) {
  const Integers dims = {2, 3, 4};
  EXPECT_THAT(plugin::dense_strides(dims), ElementsAre(12, 4, 1));
  EXPECT_THAT(plugin::dense_strides(Integers()), ElementsAre());
  EXPECT_THAT(plugin::broadcast_strides(Integers{3, 1}, 3), ElementsAre(0, 1, 0));
  EXPECT_THAT(plugin::broadcast_strides(Integers{2, 1, 4}, 3), ElementsAre(4, 0, 1));
  EXPECT_TRUE(plugin::broadcasts_to(Integers{3, 1}, dims));
  EXPECT_TRUE(plugin::broadcasts_to(Integers(), dims));
  EXPECT_FALSE(plugin::broadcasts_to(Integers{2, 1}, dims));
  EXPECT_FALSE(plugin::broadcasts_to(Integers{1, 2, 3, 4}, dims));
}

}  // namespace
}  // namespace tessera
