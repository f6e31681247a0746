#include "ops/broadcast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tessera/tensor.h"

namespace tessera::ops {
namespace {

const Dim kLength = Dim::symbol("N");
const Dim kM = Dim::symbol("M");

struct ShapeCase {
  const char* name;
  Shape left;
  Shape right;
  std::string expected;  // "" if they are incompatible
};

const ShapeCase kShapeCases[] = {
    {"equal", {2, 3}, {2, 3}, "2x3"},
    {"scalar", {}, {2, 3}, "2x3"},
    {"both stretched", {4, 1, 3}, {5, 1}, "4x5x3"},
    {"empty stretches to empty", {0, 3}, {1, 3}, "0x3"},
    {"contradiction", {2, 3}, {2}, ""},
    {"empty is not stretched", {0}, {2}, ""},
    {"equal symbols stay", {kLength, 3}, {kLength, 1}, "Nx3"},
    {"symbol beside 1", {1}, {kLength}, "N"},
    {"symbol beside a number", {kLength}, {7}, "7"},
    {"symbol beside 0", {0}, {kLength}, "0"},
    {"two symbols", {kLength}, {kM}, "broadcast(M,N)"},
    {"two symbols the other way round", {kM}, {kLength}, "broadcast(M,N)"},
};

TEST(Broadcast, Shapes) {
  for (const ShapeCase& test : kShapeCases) {
    const std::optional<Shape> result = broadcast(test.left, test.right);
    EXPECT_EQ(result ? text(*result) : "", test.expected) << test.name;
  }
}

TEST(Broadcast, OnlyOnesAreStretched) {
  EXPECT_TRUE(can_broadcast_to({3, 1}, {2, 3, 4}));
  EXPECT_TRUE(can_broadcast_to({kLength}, {4}));
  EXPECT_FALSE(can_broadcast_to({4}, {1}));
  EXPECT_FALSE(can_broadcast_to({1, 1}, {5}));
}

// The index in each input of every output element, computed naively.
std::vector<int64_t> expected_indices(const std::vector<int64_t>& output,
                                      const std::vector<int64_t>& input) {
  std::vector<int64_t> result;
  for (int64_t element = 0; element < element_count(output); ++element) {
    int64_t rest = element;
    int64_t index = 0;
    int64_t stride = 1;
    for (size_t back = 1; back <= input.size(); ++back) {
      const int64_t position = rest % output[output.size() - back];
      rest /= output[output.size() - back];
      if (input[input.size() - back] != 1) index += position * stride;
      stride *= input[input.size() - back];
    }
    result.push_back(index);
  }
  return result;
}

struct LoopCase {
  const char* name;
  std::vector<int64_t> output;
  std::vector<int64_t> left;
  std::vector<int64_t> right;
  int64_t runs;
};

const LoopCase kLoopCases[] = {
    {"equal", {2, 3, 4}, {2, 3, 4}, {2, 3, 4}, 1},
    {"one element", {2, 3, 4}, {2, 3, 4}, {}, 1},
    {"scalars", {}, {}, {}, 1},
    {"ones only", {1, 1}, {1, 1}, {1}, 1},
    {"a row", {2, 3, 4}, {2, 3, 4}, {4}, 6},
    {"channels", {2, 3, 4, 5}, {2, 3, 4, 5}, {3, 1, 1}, 6},
    {"the middle", {2, 3, 4}, {2, 1, 4}, {2, 3, 1}, 6},
    {"outer product", {3, 4}, {3, 1}, {4}, 3},
    {"ones between", {2, 1, 3}, {2, 1, 3}, {3}, 2},
    {"empty", {0, 4611686018427387904, 4}, {0, 1, 4}, {1, 4611686018427387904, 1}, 0},
};

TEST(Broadcast, LoopReadsTheRightElements) {
  for (const LoopCase& test : kLoopCases) {
    const BroadcastLoop loop(test.output, {test.left, test.right});
    const int64_t count = test.runs == 0 ? 0 : element_count(test.output);
    std::vector<int64_t> left;
    std::vector<int64_t> right;
    int64_t runs = 0;
    const auto collect = [&](const BroadcastLoop::Run& run) {
      EXPECT_EQ(run.output, static_cast<int64_t>(left.size())) << test.name;
      for (int64_t index = 0; index < run.length; ++index) {
        left.push_back(run.inputs[0] + index * loop.step(0));
        right.push_back(run.inputs[1] + index * loop.step(1));
      }
      ++runs;
    };
    loop.for_each_run(0, count, collect);
    EXPECT_EQ(runs, test.runs) << test.name;
    if (count == 0) continue;
    EXPECT_EQ(left, expected_indices(test.output, test.left)) << test.name;
    EXPECT_EQ(right, expected_indices(test.output, test.right)) << test.name;
    // Ranges cut at any point give the same elements.
    const std::vector<int64_t> whole = right;
    for (int64_t cut = 0; cut <= count; ++cut) {
      left.clear();
      right.clear();
      loop.for_each_run(0, cut, collect);
      loop.for_each_run(cut, count, collect);
      EXPECT_EQ(right, whole) << test.name << " cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace tessera::ops
