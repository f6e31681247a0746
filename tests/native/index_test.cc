// Ops that read and write elements by index.

#include <string>
#include <vector>

#include "any_tensor.h"
#include "each_target.h"

namespace tessera {
namespace {

DataType index_type(Dice& dice) { return dice.one_in(2) ? DataType::Int64 : DataType::Int32; }

// Indices into an axis of `dim` elements; no indices if `dim` is 0.
Tensor indices(Dice& dice, std::vector<int64_t> dims, int64_t dim) {
  const DataType type = index_type(dice);
  Tensor made(type, std::move(dims));
  for (int64_t position = 0; position < made.elements(); ++position) {
    const int64_t index = dice.whole(-dim, dim - 1);
    if (type == DataType::Int64) {
      made.mutable_as<int64_t>()[static_cast<size_t>(position)] = index;
    } else {
      made.mutable_as<int32_t>()[static_cast<size_t>(position)] = static_cast<int32_t>(index);
    }
  }
  return made;
}

std::vector<int64_t> full_dims(Dice& dice, int64_t rank, int64_t max_size) {
  std::vector<int64_t> dims = any_dims(dice, rank, max_size);
  for (int64_t& dim : dims) dim = std::max<int64_t>(dim, 1);
  return dims;
}

RandomGraph gather(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const std::vector<int64_t> dims = full_dims(dice, dice.whole(1, 4), 12);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = dice.whole(0, rank - 1);
  made.operand(dice, "x", any_elements(dice, any_type(dice), dims));
  std::vector<int64_t> shape = any_dims(dice, dice.whole(0, 2), 9);
  made.operand(dice, "indices", indices(dice, shape, dims[static_cast<size_t>(axis)]));
  made.node("y", "Gather", {"x", "indices"},
            attributes_of({{"axis", dice.one_in(2) ? axis : axis - rank}}));
  return made.ending_in("y");
}

// Constant indices at equal distances become slices.
RandomGraph gather_range(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const std::vector<int64_t> dims = full_dims(dice, dice.whole(1, 4), 12);
  const int64_t axis = dice.whole(0, static_cast<int64_t>(dims.size()) - 1);
  const int64_t dim = dims[static_cast<size_t>(axis)];
  made.input("x", any_elements(dice, any_type(dice), dims));
  std::vector<int64_t> list = {dice.whole(0, dim - 1)};
  const int64_t step = dice.whole(-3, 3);
  while (list.size() < 6) {
    const int64_t next = list.back() + step;
    if (next < 0 || next >= dim) break;
    list.push_back(next);
  }
  for (int64_t& index : list) index -= dice.one_in(2) ? dim : 0;
  made.constant("indices", integer_list(list, index_type(dice)));
  made.node("y", "Gather", {"x", "indices"}, attributes_of({{"axis", axis}}));
  return made.ending_in("y");
}

RandomGraph gather_nd(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const std::vector<int64_t> dims = full_dims(dice, dice.whole(1, 4), 5);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t batch = dice.whole(0, std::min<int64_t>(rank - 1, 2));
  const int64_t tuple = dice.whole(1, rank - batch);
  std::vector<int64_t> shape(dims.begin(), dims.begin() + batch);
  for (int64_t axis = dice.whole(0, 2); axis > 0; --axis) shape.push_back(dice.whole(0, 5));
  shape.push_back(tuple);
  Tensor list(DataType::Int64, shape);
  for (int64_t position = 0; position < list.elements(); ++position) {
    const int64_t dim = dims[static_cast<size_t>(batch + position % tuple)];
    list.mutable_as<int64_t>()[static_cast<size_t>(position)] = dice.whole(-dim, dim - 1);
  }
  made.input("x", any_elements(dice, any_type(dice), dims));
  made.operand(dice, "indices", list);
  made.node("y", "GatherND", {"x", "indices"}, attributes_of({{"batch_dims", batch}}));
  return made.ending_in("y");
}

// Data, and sizes of indices that outside of `axis` are at most those of the data.
struct Elements {
  std::vector<int64_t> dims;
  std::vector<int64_t> shape;
  int64_t axis = 0;
};

Elements elements(Dice& dice) {
  Elements made;
  made.dims = full_dims(dice, dice.whole(1, 4), 9);
  made.axis = dice.whole(0, static_cast<int64_t>(made.dims.size()) - 1);
  for (const int64_t dim : made.dims) made.shape.push_back(dice.whole(dice.one_in(9) ? 0 : 1, dim));
  made.shape[static_cast<size_t>(made.axis)] = dice.whole(1, 12);
  return made;
}

RandomGraph gather_elements(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const Elements drawn = elements(dice);
  made.input("x", any_elements(dice, any_type(dice), drawn.dims));
  made.operand(dice, "indices",
               indices(dice, drawn.shape, drawn.dims[static_cast<size_t>(drawn.axis)]));
  made.node("y", "GatherElements", {"x", "indices"}, attributes_of({{"axis", drawn.axis}}));
  return made.ending_in("y");
}

const std::vector<std::string> kReductions = {"none", "none", "add", "mul", "max", "min"};

// Types for reductions; 16-bit types only without a reduction.
DataType scattered_type(Dice& dice, const std::string& reduction) {
  const DataType type = any_type(dice);
  const bool is_half = type == DataType::Float16 || type == DataType::BFloat16;
  return is_half && reduction != "none" ? DataType::Float32 : type;
}

RandomGraph scatter_elements(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 18);
  const Elements drawn = elements(dice);
  const std::string& reduction = dice.pick(kReductions);
  const DataType type = scattered_type(dice, reduction);
  made.input("x", any_elements(dice, type, drawn.dims));
  made.operand(dice, "indices",
               indices(dice, drawn.shape, drawn.dims[static_cast<size_t>(drawn.axis)]));
  made.operand(dice, "updates", any_elements(dice, type, drawn.shape));
  made.node("y", "ScatterElements", {"x", "indices", "updates"},
            attributes_of({{"axis", drawn.axis}, {"reduction", reduction}}));
  return made.ending_in("y");
}

RandomGraph scatter_nd(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 18);
  const std::vector<int64_t> dims = full_dims(dice, dice.whole(1, 4), 5);
  const int64_t tuple = dice.whole(1, static_cast<int64_t>(dims.size()));
  const std::string& reduction = dice.pick(kReductions);
  const DataType type = scattered_type(dice, reduction);
  std::vector<int64_t> shape = {dice.whole(0, 7)};
  std::vector<int64_t> updates = shape;
  updates.insert(updates.end(), dims.begin() + tuple, dims.end());
  shape.push_back(tuple);
  Tensor list(DataType::Int64, shape);
  for (int64_t position = 0; position < list.elements(); ++position) {
    const int64_t dim = dims[static_cast<size_t>(position % tuple)];
    list.mutable_as<int64_t>()[static_cast<size_t>(position)] = dice.whole(-dim, dim - 1);
  }
  made.input("x", any_elements(dice, type, dims));
  made.operand(dice, "indices", list);
  made.input("updates", any_elements(dice, type, updates));
  made.node("y", "ScatterND", {"x", "indices", "updates"},
            attributes_of({{"reduction", reduction}}));
  return made.ending_in("y");
}

RandomGraph one_hot(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 11);
  const std::vector<int64_t> dims = any_dims(dice, dice.whole(0, 3), 7);
  const int64_t depth = dice.whole(0, 9);
  const std::vector<DataType> types = {DataType::Int32, DataType::Int64,   DataType::UInt8,
                                       DataType::Int8,  DataType::Float32, DataType::Float64};
  const DataType type = dice.pick(types);
  Tensor list = any_elements(dice, type, dims);
  if (type == DataType::Int64) list = indices(dice, dims, depth + 3);
  if (type == DataType::Float32) list = dice.tensor(dims, -12, 12);
  made.operand(dice, "indices", list);
  made.constant("depth", integer_list({depth}));
  made.operand(dice, "values", any_elements(dice, any_type(dice), {2}));
  Attributes attributes;
  const auto rank = static_cast<int64_t>(dims.size());
  attributes.set("axis", dice.whole(-rank - 1, rank));
  made.node("y", "OneHot", {"indices", "depth", "values"}, attributes);
  return made.ending_in("y");
}

TEST(NativeIndices, Gather) { EXPECT_GE(check_each_target(31, 700, gather).answered, 700); }
TEST(NativeIndices, Range) { EXPECT_GE(check_each_target(32, 500, gather_range).answered, 500); }
TEST(NativeIndices, GatherNd) { EXPECT_GE(check_each_target(33, 500, gather_nd).answered, 500); }
TEST(NativeIndices, GatherElements) {
  EXPECT_GE(check_each_target(34, 500, gather_elements).answered, 500);
}
TEST(NativeIndices, ScatterElements) {
  EXPECT_GE(check_each_target(35, 700, scatter_elements).answered, 700);
}
TEST(NativeIndices, ScatterNd) { EXPECT_GE(check_each_target(36, 700, scatter_nd).answered, 700); }
TEST(NativeIndices, OneHot) { EXPECT_GE(check_each_target(37, 500, one_hot).answered, 500); }

}  // namespace
}  // namespace tessera
