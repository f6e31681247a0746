// Ops that generate tensors from a few numbers, and ops along an axis.

#include <limits>
#include <string>
#include <vector>

#include "any_tensor.h"
#include "each_target.h"

namespace tessera {
namespace {

template <class T>
Tensor scalar(DataType type, T value) {
  return Tensor::from<T>(type, {}, {&value, 1});
}

template <class T>
void add_numbers(Dice& dice, RandomGraph& made, DataType type) {
  T delta = static_cast<T>(dice.whole(1, 5));
  if (dice.one_in(3)) delta = static_cast<T>(-delta);
  if (dice.one_in(3)) delta = static_cast<T>(delta * static_cast<T>(1.25));
  const T start = static_cast<T>(dice.whole(-50, 50));
  const T limit = static_cast<T>(dice.whole(-90, 90));
  made.operand(dice, "start", scalar<T>(type, start));
  made.operand(dice, "limit", scalar<T>(type, limit));
  made.operand(dice, "delta", scalar<T>(type, delta));
}

RandomGraph range(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const int64_t kind = dice.whole(1, 5);
  if (kind == 1) add_numbers<int16_t>(dice, made, DataType::Int16);
  if (kind == 2) add_numbers<int32_t>(dice, made, DataType::Int32);
  if (kind == 3) add_numbers<int64_t>(dice, made, DataType::Int64);
  if (kind == 4) add_numbers<float>(dice, made, DataType::Float32);
  if (kind == 5) add_numbers<double>(dice, made, DataType::Float64);
  made.node("y", "Range", {"start", "limit", "delta"});
  return made.ending_in("y");
}

RandomGraph constant(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 21);
  made.operand(dice, "dims", integer_list(any_dims(dice, dice.whole(1, 4), 12)));
  Attributes attributes;
  if (!dice.one_in(4)) attributes.set("value", any_elements(dice, any_type(dice), {1}));
  made.node("y", "ConstantOfShape", {"dims"}, attributes);
  return made.ending_in("y");
}

RandomGraph shape(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 21);
  made.input("x", any_elements(dice, dice.one_in(2) ? DataType::Float32 : any_type(dice),
                               any_dims(dice, dice.whole(0, 5), 6)));
  Attributes attributes;
  const bool is_size = dice.one_in(3);
  if (!is_size && dice.one_in(2)) attributes.set("start", dice.whole(-6, 6));
  if (!is_size && dice.one_in(2)) attributes.set("end", dice.whole(-6, 6));
  made.node("y", is_size ? "Size" : "Shape", {"x"}, attributes);
  return made.ending_in("y");
}

RandomGraph trilu(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 14);
  made.input("x", any_elements(dice, any_type(dice), any_dims(dice, dice.whole(2, 4), 12)));
  std::vector<std::string> inputs = {"x"};
  if (dice.one_in(2)) {
    made.operand(dice, "k", scalar<int64_t>(DataType::Int64, dice.whole(-15, 15)));
    inputs.emplace_back("k");
  }
  made.node("y", "Trilu", inputs, attributes_of({{"upper", int64_t{dice.one_in(2)}}}));
  return made.ending_in("y");
}

RandomGraph cum_sum(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 14);
  const std::vector<int64_t> dims = any_dims(dice, dice.whole(1, 4), 12);
  const auto rank = static_cast<int64_t>(dims.size());
  const std::vector<DataType> types = {DataType::Int32, DataType::Int64, DataType::UInt32,
                                       DataType::UInt64};
  made.input("x", dice.one_in(2) ? dice.tensor(dims) : any_elements(dice, dice.pick(types), dims));
  made.operand(dice, "axis", scalar<int64_t>(DataType::Int64, dice.whole(-rank, rank - 1)));
  made.node("y", "CumSum", {"x", "axis"},
            attributes_of(
                {{"exclusive", int64_t{dice.one_in(2)}}, {"reverse", int64_t{dice.one_in(2)}}}));
  return made.ending_in("y");
}

// Few different numbers, so that some are equal; zeros of both signs, infinities and NaN.
Tensor coarse(Dice& dice, const std::vector<int64_t>& dims) {
  static const std::vector<float> kNumbers = {0.0F, -0.0F, 1, -1, 2, 3};
  Tensor made(DataType::Float32, dims);
  const bool has_nan = dice.one_in(3);
  const bool has_infinity = dice.one_in(3);
  for (float& value : made.mutable_as<float>()) {
    value = dice.pick(kNumbers);
    if (has_infinity && dice.one_in(4)) value = -std::numeric_limits<float>::infinity();
    if (has_infinity && dice.one_in(40)) value = std::numeric_limits<float>::infinity();
    if (has_nan && dice.one_in(30)) value = std::numeric_limits<float>::quiet_NaN();
  }
  return made;
}

RandomGraph arg_max(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  std::vector<int64_t> dims = any_dims(dice, dice.whole(0, 4), 40);
  for (int64_t& dim : dims) dim = std::max<int64_t>(dim, 1);
  const auto rank = std::max<int64_t>(1, static_cast<int64_t>(dims.size()));
  const std::vector<DataType> types = {DataType::Int8, DataType::Int64, DataType::UInt8,
                                       DataType::Int32, DataType::Float64};
  made.input(
      "x", dice.whole(1, 3) > 1 ? coarse(dice, dims) : any_elements(dice, dice.pick(types), dims));
  const Attributes attributes = attributes_of({{"axis", dice.whole(-rank, rank - 1)},
                                               {"keepdims", int64_t{dice.one_in(2)}},
                                               {"select_last_index", int64_t{dice.one_in(2)}}});
  made.node("y", dice.one_in(2) ? "ArgMax" : "ArgMin", {"x"}, attributes);
  return made.ending_in("y");
}

RandomGraph top_k(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 11);
  std::vector<int64_t> dims = any_dims(dice, dice.whole(1, 4), dice.one_in(4) ? 300 : 20);
  for (int64_t& dim : dims) dim = std::max<int64_t>(dim, 1);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = dice.whole(-rank, rank - 1);
  const std::vector<DataType> types = {DataType::Int8,     DataType::Int16,   DataType::Int32,
                                       DataType::Int64,    DataType::UInt8,   DataType::UInt16,
                                       DataType::UInt32,   DataType::UInt64,  DataType::Float16,
                                       DataType::BFloat16, DataType::Float32, DataType::Float64};
  made.input("x", dice.one_in(2) ? coarse(dice, dims) : any_elements(dice, dice.pick(types), dims));
  const int64_t length = dims[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
  const int64_t kept = dice.one_in(8) ? length : dice.whole(0, std::min<int64_t>(length, 20));
  made.constant("k", integer_list({kept}));
  const Attributes attributes = attributes_of(
      {{"axis", axis}, {"largest", int64_t{dice.one_in(2)}}, {"sorted", int64_t{dice.one_in(2)}}});
  made.node("top", "TopK", {"x", "k"}, {"values", "places"}, attributes);
  return made.ending_in("values", "places");
}

TEST(NativeLines, Range) { EXPECT_GE(check_each_target(41, 500, range).answered, 500); }
TEST(NativeLines, ConstantOfShape) {
  EXPECT_GE(check_each_target(42, 500, constant).answered, 500);
}
TEST(NativeLines, Shape) { EXPECT_GE(check_each_target(43, 400, shape).answered, 400); }
TEST(NativeLines, Trilu) { EXPECT_GE(check_each_target(44, 600, trilu).answered, 600); }
TEST(NativeLines, CumSum) { EXPECT_GE(check_each_target(45, 600, cum_sum).answered, 600); }
TEST(NativeLines, TopK) { EXPECT_GE(check_each_target(47, 1500, top_k).answered, 1200); }
TEST(NativeLines, ArgMax) { EXPECT_GE(check_each_target(46, 1200, arg_max).answered, 1200); }

}  // namespace
}  // namespace tessera
