// Ops that only copy elements: all element types, all layouts, strided inputs.

#include <string>
#include <vector>

#include "any_tensor.h"
#include "each_target.h"
#include "random_nodes.h"

namespace tessera {
namespace {

// In half of the cases float32, which other layouts support.
Tensor operand(Dice& dice, const std::vector<int64_t>& dims) {
  return any_elements(dice, dice.one_in(2) ? DataType::Float32 : any_type(dice), dims);
}

int64_t small_rank(Dice& dice, int64_t min_rank) { return dice.whole(min_rank, 5); }

RandomGraph transpose(Dice& dice, const ops::Registry& registry) {
  return random_transpose(dice, registry, operand(dice, any_dims(dice, small_rank(dice, 0), 19)));
}

RandomGraph concat(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  std::vector<int64_t> dims = any_dims(dice, small_rank(dice, 1), 9);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = rank > 1 && dice.one_in(2) ? 1 : dice.whole(0, rank - 1);
  const DataType type = dice.one_in(2) ? DataType::Float32 : any_type(dice);
  std::vector<std::string> inputs;
  const int64_t count = dice.whole(1, 5);
  for (int64_t index = 0; index < count; ++index) {
    const int64_t block = dice.one_in(2) ? 8 : 1;
    dims[static_cast<size_t>(axis)] = dice.whole(0, 4) * block;
    inputs.push_back("x" + std::to_string(index));
    made.operand(dice, inputs.back(), any_elements(dice, type, dims));
  }
  if (dice.one_in(6)) inputs.push_back(inputs.front());
  made.node("y", "Concat", inputs, attributes_of({{"axis", dice.one_in(2) ? axis : axis - rank}}));
  return made.ending_in("y");
}

RandomGraph split(Dice& dice, const ops::Registry& registry) {
  const bool is_old = dice.one_in(3);
  RandomGraph made(registry, is_old ? 11 : 18);
  std::vector<int64_t> dims = any_dims(dice, small_rank(dice, 1), 9);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = rank > 1 && dice.one_in(2) ? 1 : dice.whole(0, rank - 1);
  const int64_t count = dice.whole(1, 4);
  std::vector<int64_t> sizes;
  int64_t sum = 0;
  for (int64_t index = 0; index < count; ++index) {
    sizes.push_back(dice.whole(0, 3) * (dice.one_in(2) ? 8 : 1));
    sum += sizes.back();
  }
  dims[static_cast<size_t>(axis)] = sum;
  made.input("x", operand(dice, dims));
  Attributes attributes = attributes_of({{"axis", dice.one_in(2) ? axis : axis - rank}});
  std::vector<std::string> inputs = {"x"};
  if (is_old) {
    attributes.set("split", sizes);
  } else {
    made.constant("sizes", integer_list(sizes));
    inputs.emplace_back("sizes");
  }
  std::vector<std::string> outputs;
  for (int64_t index = 0; index < count; ++index) outputs.push_back("y" + std::to_string(index));
  made.node("split", "Split", inputs, outputs, attributes);
  for (const std::string& output : outputs) made.builder.output(output);
  return made;
}

RandomGraph slice(Dice& dice, const ops::Registry& registry) {
  const bool is_old = dice.one_in(4);
  RandomGraph made(registry, is_old ? 9 : 13);
  const std::vector<int64_t> dims = any_dims(dice, small_rank(dice, 1), 21);
  const auto rank = static_cast<int64_t>(dims.size());
  made.input("x", operand(dice, dims));
  std::vector<int64_t> starts;
  std::vector<int64_t> ends;
  std::vector<int64_t> axes;
  std::vector<int64_t> steps;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (dice.one_in(3)) continue;
    const int64_t dim = dims[static_cast<size_t>(axis)];
    axes.push_back(dice.one_in(2) ? axis : axis - rank);
    const int64_t block = dice.one_in(2) ? 8 : 1;
    starts.push_back(dice.one_in(3) ? 0 : dice.whole(-dim - 2, dim + 2) / block * block);
    ends.push_back(dice.one_in(3) ? INT64_MAX : dice.whole(-dim - 2, dim + 2));
    steps.push_back(is_old || dice.one_in(2) ? 1 : dice.whole(1, 4) * (dice.one_in(2) ? 1 : -1));
    if (steps.back() < 0 && dice.one_in(2)) {
      starts.back() = -1;
      ends.back() = INT64_MIN;
    }
  }
  if (is_old) {
    made.node("y", "Slice", {"x"},
              attributes_of({{"starts", starts}, {"ends", ends}, {"axes", axes}}));
  } else {
    made.constant("starts", integer_list(starts));
    made.constant("ends", integer_list(ends));
    made.constant("axes", integer_list(axes));
    made.constant("steps", integer_list(steps));
    made.node("y", "Slice", {"x", "starts", "ends", "axes", "steps"});
  }
  return made.ending_in("y");
}

RandomGraph expand(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  std::vector<int64_t> dims = any_dims(dice, small_rank(dice, 0), 9);
  std::vector<int64_t> wanted = dims;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dice.one_in(2)) dims[axis] = 1;
    if (dice.one_in(6)) wanted[axis] = 1;
  }
  if (dice.one_in(3)) wanted.insert(wanted.begin(), dice.whole(1, 5));
  made.input("x", operand(dice, dims));
  made.constant("shape", integer_list(wanted));
  made.node("y", "Expand", {"x", "shape"});
  return made.ending_in("y");
}

RandomGraph tile(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const std::vector<int64_t> dims = any_dims(dice, dice.whole(0, 4), 9);
  std::vector<int64_t> repeats;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    repeats.push_back(dice.one_in(2) ? 1 : dice.whole(dice.one_in(4) ? 0 : 1, 4));
  }
  made.input("x", operand(dice, dims));
  made.constant("repeats", integer_list(repeats));
  made.node("y", "Tile", {"x", "repeats"});
  return made.ending_in("y");
}

RandomGraph spatial_blocks(Dice& dice, const ops::Registry& registry) {
  const bool is_to_space = dice.one_in(2);
  RandomGraph made(registry, 28);
  const int64_t block = dice.whole(1, 4);
  std::vector<int64_t> dims = any_dims(dice, 4, 9);
  if (is_to_space) {
    dims[1] *= block * block;
  } else {
    dims[2] *= block;
    dims[3] *= block;
  }
  made.input("x", operand(dice, dims));
  made.node(
      "y", is_to_space ? "DepthToSpace" : "SpaceToDepth", {"x"},
      attributes_of({{"blocksize", block}, {"mode", std::string(dice.one_in(2) ? "DCR" : "CRD")}}));
  return made.ending_in("y");
}

RandomGraph reshape(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 14);
  const std::vector<int64_t> dims = any_dims(dice, dice.whole(1, 4), 19);
  const Tensor x = operand(dice, dims);
  made.input("x", x);
  Attributes attributes;
  if (dice.one_in(2)) {
    made.constant("shape", integer_list({x.elements()}));
    attributes.set("allowzero", int64_t{1});
    made.node("y", "Reshape", {"x", "shape"}, attributes);
  } else if (dice.one_in(2)) {
    attributes.set("axis", dice.whole(0, static_cast<int64_t>(dims.size())));
    made.node("y", "Flatten", {"x"}, attributes);
  } else if (dice.one_in(2)) {
    made.constant("axes", integer_list({dice.whole(-1, 0)}));
    made.node("y", "Unsqueeze", {"x", "axes"});
  } else {
    made.node("y", "Identity", {"x"});
  }
  return made.ending_in("y");
}

// Large enough for several threads, long rows, parts of rows, and streaming.
RandomGraph large_transpose(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  static const std::vector<std::vector<int64_t>> kDims = {
      {2, 300, 700}, {1, 3, 50000}, {40000, 2, 2}, {5, 64, 33, 40}, {1100, 2100}, {3, 90001}};
  const std::vector<int64_t> dims = dice.pick(kDims);
  const std::vector<DataType> types = {DataType::Float32, DataType::Int64, DataType::Int8,
                                       DataType::Float16};
  Tensor x(dice.pick(types), dims);
  auto* bytes = static_cast<unsigned char*>(x.mutable_data());
  for (int64_t index = 0; index < x.bytes(); ++index) {
    bytes[index] = static_cast<unsigned char>((index * 2654435761) >> 13);
  }
  made.input("x", x);
  std::vector<int64_t> order;
  for (size_t axis = dims.size(); axis-- > 0;) order.push_back(static_cast<int64_t>(axis));
  if (dims.size() > 2 && dice.one_in(2)) std::swap(order[0], order[1]);
  made.node("y", "Transpose", {"x"}, attributes_of({{"perm", order}}));
  return made.ending_in("y");
}

// Outputs so large that they are streamed past the caches.
RandomGraph streamed(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const auto counted = [](std::vector<int64_t> dims) {
    Tensor tensor(DataType::Int32, std::move(dims));
    int32_t number = 0;
    for (int32_t& element : tensor.mutable_as<int32_t>()) element = number++;
    return tensor;
  };
  Attributes attributes;
  switch (dice.whole(1, 5)) {
    case 1:
      made.input("x", counted({3, 700, 5, 256}));
      attributes.set("perm", std::vector<int64_t>{0, 2, 1, 3});
      made.node("y", "Transpose", {"x"}, attributes);
      break;
    case 2:
      made.input("x", counted({1500, 1003})).input("z", counted({1500, dice.whole(990, 1030)}));
      attributes.set("axis", int64_t{1});
      made.node("y", "Concat", {"x", "z"}, attributes);
      break;
    case 3:
      made.input("x", counted({3001, 1})).constant("shape", integer_list({3001, 1001}));
      made.node("y", "Expand", {"x", "shape"});
      break;
    case 4:
      made.input("x", counted({3000, 1500}));
      made.constant("starts", integer_list({7})).constant("ends", integer_list({1010}));
      made.constant("axes", integer_list({1}));
      made.node("y", "Slice", {"x", "starts", "ends", "axes"});
      break;
    default: {
      std::vector<int64_t> rows;
      for (int64_t row = 0; row < 40000; ++row) rows.push_back(row * 7919 % 40000);
      made.input("x", counted({40000, 64})).input("rows", integer_list(rows));
      made.node("y", "Gather", {"x", "rows"});
    }
  }
  return made.ending_in("y");
}

TEST(NativeCopies, Streamed) { EXPECT_GE(check_each_target(10, 20, streamed).answered, 20); }
TEST(NativeCopies, Transpose) { EXPECT_GE(check_each_target(1, 600, transpose).answered, 600); }
TEST(NativeCopies, Concat) { EXPECT_GE(check_each_target(2, 600, concat).answered, 600); }
TEST(NativeCopies, Split) { EXPECT_GE(check_each_target(3, 600, split).answered, 600); }
TEST(NativeCopies, Slice) { EXPECT_GE(check_each_target(4, 600, slice).answered, 600); }
TEST(NativeCopies, Expand) { EXPECT_GE(check_each_target(5, 600, expand).answered, 600); }
TEST(NativeCopies, Tile) { EXPECT_GE(check_each_target(6, 600, tile).answered, 600); }
TEST(NativeCopies, Blocks) { EXPECT_GE(check_each_target(7, 600, spatial_blocks).answered, 600); }
TEST(NativeCopies, Reshape) { EXPECT_GE(check_each_target(8, 600, reshape).answered, 600); }
TEST(NativeCopies, Large) { EXPECT_GE(check_each_target(9, 60, large_transpose).answered, 60); }

}  // namespace
}  // namespace tessera
