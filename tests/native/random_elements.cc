#include "random_elements.h"

#include <cmath>
#include <limits>

#include "ops/convert_elements.h"

namespace tessera {
namespace {

double special(Dice& dice) {
  static const std::vector<double> kSpecial = {std::numeric_limits<float>::quiet_NaN(),
                                               kInfinity,
                                               -kInfinity,
                                               0.0,
                                               -0.0,
                                               1.0,
                                               -1.0,
                                               std::numeric_limits<float>::max(),
                                               std::numeric_limits<float>::lowest(),
                                               std::numeric_limits<float>::min(),
                                               std::numeric_limits<float>::denorm_min(),
                                               0.5,
                                               2.5,
                                               -2.5};
  return dice.pick(kSpecial);
}

}  // namespace

Tensor random_elements(Dice& dice, DataType type, std::vector<int64_t> dims,
                       const ElementRange& range) {
  Tensor numbers(DataType::Float64, dims);
  for (double& number : numbers.mutable_as<double>()) {
    number = dice.number(range.low, range.high);
    if (range.has_special && dice.one_in(5)) number = special(dice);
    if (type == DataType::Bool) number = dice.one_in(2) ? 1 : 0;
    if (!is_floating(type) && type != DataType::Bool) {
      number = std::isfinite(number) ? std::trunc(number) : 7;
      if (number == 0 && !range.has_zero) number = 1;
    }
  }
  Tensor made(type, std::move(dims));
  ops::convert_elements(DataType::Float64, numbers.data(), type, made.mutable_data(),
                        made.elements());
  // Large integers with random bits, also unsigned ones.
  if (is_integer(type) && range.has_special) {
    auto bytes =
        std::span(static_cast<uint8_t*>(made.mutable_data()), static_cast<size_t>(made.bytes()));
    for (uint8_t& byte : bytes) {
      if (dice.one_in(7)) byte = static_cast<uint8_t>(dice.whole(1, 255));
    }
  }
  return made;
}

std::vector<int64_t> random_dims(Dice& dice) {
  std::vector<int64_t> dims;
  if (dice.one_in(20)) return dims;
  if (dice.one_in(12)) return {dice.whole(1, 3000)};
  if (dice.one_in(12)) return {dice.whole(1, 4), dice.whole(1, 1500)};
  if (dice.one_in(12)) return {dice.whole(1, 2), dice.whole(1, 40), dice.whole(10, 20), 9};
  const int64_t rank = dice.whole(1, 5);
  for (int64_t axis = 0; axis < rank; ++axis) dims.push_back(dice.whole(1, 7));
  if (rank > 1 && dice.one_in(2)) dims[1] = dice.whole(1, 37);
  if (dice.one_in(15)) dims[static_cast<size_t>(dice.whole(0, rank - 1))] = 0;
  return dims;
}

std::vector<int64_t> broadcastable(Dice& dice, const std::vector<int64_t>& dims) {
  std::vector<int64_t> made = dims;
  if (dice.one_in(2)) return made;
  if (dice.one_in(4)) return {};
  if (dims.size() > 1 && dice.one_in(3)) {
    // One element for each channel.
    std::fill(made.begin(), made.end(), 1);
    made[1] = dims[1];
    if (dice.one_in(2)) made[0] = dims[0];
  } else {
    for (int64_t& dim : made) {
      if (dice.one_in(2)) dim = 1;
    }
  }
  const int64_t fewer = dice.one_in(2) ? 0 : dice.whole(0, static_cast<int64_t>(made.size()));
  made.erase(made.begin(), made.begin() + fewer);
  return made;
}

}  // namespace tessera
