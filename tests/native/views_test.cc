// Views and joint values: in each layout, the parts of every candidate are where the candidate
// says.

#include "base/tensor/tensors_test.h"
#include "candidate_check.h"

namespace tessera {
namespace {

std::vector<int64_t> view_dims(Dice& dice, size_t min_rank = 1) {
  std::vector<int64_t> dims;
  const auto rank = static_cast<size_t>(dice.whole(static_cast<int64_t>(min_rank), 5));
  for (size_t axis = 0; axis < rank; ++axis) dims.push_back(dice.one_in(3) ? 1 : dice.whole(2, 7));
  // Sometimes channels in whole blocks.
  if (rank >= 3 && dice.one_in(2)) dims[1] = 8 * dice.whole(1, 4);
  return dims;
}

// The sizes with ones inserted and removed, or neighbours merged.
std::vector<int64_t> reshaped(Dice& dice, std::vector<int64_t> dims) {
  if (dice.one_in(4)) return dims;
  if (dims.size() > 1 && dice.one_in(2)) {
    const auto axis = static_cast<size_t>(dice.whole(1, static_cast<int64_t>(dims.size()) - 1));
    dims[axis - 1] *= dims[axis];
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
    return dims;
  }
  dims.insert(dims.begin() + dice.whole(0, static_cast<int64_t>(dims.size())), 1);
  return dims;
}

TEST(NativeViews, OfReshapes) {
  const Totals totals = check_cases("native", 61, 150, [](Dice& dice, const auto& registry) {
    RandomGraph graph(registry, 17);
    const std::vector<int64_t> dims = view_dims(dice);
    graph.operand(dice, "x", dice.tensor(dims));
    graph.constant("shape", ints(reshaped(dice, dims)));
    graph.node("reshape", "Reshape", {"x", "shape"}, {"y"});
    return graph.ending_in("y");
  });
  EXPECT_GT(totals.answered, 100);
}

TEST(NativeViews, OfTransposesThatMoveNothing) {
  const Totals totals = check_cases("native", 62, 200, [](Dice& dice, const auto& registry) {
    RandomGraph graph(registry, 17);
    const std::vector<int64_t> dims = view_dims(dice);
    std::vector<int64_t> order(dims.size());
    for (size_t axis = 0; axis < order.size(); ++axis) order[axis] = static_cast<int64_t>(axis);
    for (size_t axis = order.size(); axis-- > 1;) {
      std::swap(order[axis], order[static_cast<size_t>(dice.whole(0, static_cast<int64_t>(axis)))]);
    }
    if (dims.size() == 4 && dice.one_in(2)) order = {0, 2, 3, 1};
    graph.input("x", dice.tensor(dims));
    graph.node("transpose", "Transpose", {"x"}, {"y"}, attributes_of({{"perm", order}}));
    return graph.ending_in("y");
  });
  EXPECT_GT(totals.answered, 20);
}

TEST(NativeViews, OfSplits) {
  const Totals totals = check_cases("native", 63, 150, [](Dice& dice, const auto& registry) {
    RandomGraph graph(registry, 17);
    std::vector<int64_t> dims = view_dims(dice);
    const int64_t axis = dice.whole(0, static_cast<int64_t>(dims.size()) - 1);
    std::vector<int64_t> sizes;
    dims[static_cast<size_t>(axis)] = 0;
    std::vector<std::string> names;
    for (int64_t part = dice.whole(1, 4); part > 0; --part) {
      sizes.push_back(dice.one_in(3) ? 8 * dice.whole(1, 2) : dice.whole(1, 5));
      dims[static_cast<size_t>(axis)] += sizes.back();
      names.push_back("y" + std::to_string(part));
    }
    graph.operand(dice, "x", dice.tensor(dims));
    graph.constant("sizes", ints(sizes));
    graph.node("split", "Split", {"x", "sizes"}, names,
               attributes_of(
                   {{"axis", dice.one_in(2) ? axis : axis - static_cast<int64_t>(dims.size())}}));
    for (const std::string& name : names) graph.builder.output(name);
    return graph;
  });
  EXPECT_GT(totals.answered, 140);
}

TEST(NativeViews, OfSlices) {
  const Totals totals = check_cases("native", 64, 200, [](Dice& dice, const auto& registry) {
    RandomGraph graph(registry, 17);
    const std::vector<int64_t> dims = view_dims(dice);
    std::vector<int64_t> starts;
    std::vector<int64_t> ends;
    std::vector<int64_t> axes;
    std::vector<int64_t> steps;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      if (dice.one_in(2)) continue;
      const int64_t start = dims[axis] % 8 == 0 && dice.one_in(2)
                                ? 8 * dice.whole(0, dims[axis] / 8 - 1)
                                : dice.whole(0, dims[axis] - 1);
      axes.push_back(static_cast<int64_t>(axis));
      starts.push_back(dice.one_in(3) ? start - dims[axis] : start);
      ends.push_back(dice.one_in(2) ? int64_t{1} << 40 : start + 1);
      steps.push_back(dice.one_in(2) ? 1 : dice.whole(1, 9));
    }
    graph.operand(dice, "x", dice.tensor(dims));
    graph.constant("starts", ints(starts)).constant("ends", ints(ends));
    graph.constant("axes", ints(axes)).constant("steps", ints(steps));
    graph.node("slice", "Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"});
    return graph.ending_in("y");
  });
  EXPECT_GT(totals.answered, 150);
}

TEST(NativeViews, OfConcats) {
  const Totals totals = check_cases("native", 65, 150, [](Dice& dice, const auto& registry) {
    RandomGraph graph(registry, 17);
    std::vector<int64_t> dims = view_dims(dice);
    const int64_t axis = dice.whole(0, static_cast<int64_t>(dims.size()) - 1);
    std::vector<std::string> names;
    for (int64_t part = dice.whole(1, 4); part > 0; --part) {
      names.push_back("x" + std::to_string(part));
      dims[static_cast<size_t>(axis)] = dice.one_in(2) ? 8 * dice.whole(1, 2) : dice.whole(1, 5);
      graph.operand(dice, names.back(), dice.tensor(dims));
    }
    graph.node("concat", "Concat", names, {"y"}, attributes_of({{"axis", axis}}));
    return graph.ending_in("y");
  });
  EXPECT_GT(totals.answered, 140);
}

}  // namespace
}  // namespace tessera
