#include "any_tensor.h"

#include "ops/convert_elements.h"

namespace tessera {

DataType any_type(Dice& dice) {
  static const std::vector<DataType> kTypes = {
      DataType::Bool,     DataType::Int8,    DataType::Int16,   DataType::Int32,  DataType::Int64,
      DataType::UInt8,    DataType::UInt16,  DataType::UInt32,  DataType::UInt64, DataType::Float16,
      DataType::BFloat16, DataType::Float32, DataType::Float32, DataType::Float64};
  return dice.pick(kTypes);
}

Tensor any_elements(Dice& dice, DataType type, std::vector<int64_t> dims) {
  Tensor made(type, std::move(dims));
  auto* bytes = static_cast<unsigned char*>(made.mutable_data());
  for (int64_t index = 0; index < made.bytes(); ++index) {
    bytes[index] = static_cast<unsigned char>(dice.whole(0, type == DataType::Bool ? 1 : 255));
  }
  return made;
}

Tensor whole_numbers(Dice& dice, DataType type, std::vector<int64_t> dims, int64_t largest) {
  Tensor numbers(DataType::Int64, dims);
  for (int64_t& number : numbers.mutable_as<int64_t>()) number = dice.whole(0, largest);
  Tensor made(type, std::move(dims));
  ops::convert_elements(DataType::Int64, numbers.data(), type, made.mutable_data(),
                        made.elements());
  return made;
}

int64_t any_dim(Dice& dice, int64_t max_size) {
  static const std::vector<int64_t> kOdd = {15, 16, 17, 31, 32, 33, 63, 64, 65, 130};
  return dice.one_in(12) && max_size > 8 ? dice.pick(kOdd) : dice.whole(1, max_size);
}

std::vector<int64_t> any_dims(Dice& dice, int64_t rank, int64_t max_size) {
  std::vector<int64_t> dims;
  int64_t elements = 1;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t dim = elements < 4000 ? any_dim(dice, max_size) : dice.whole(1, 3);
    elements *= dim;
    dims.push_back(dim);
  }
  if (rank > 0 && dice.one_in(12)) dims[static_cast<size_t>(dice.whole(0, rank - 1))] = 0;
  return dims;
}

Tensor integer_list(const std::vector<int64_t>& values, DataType type) {
  const auto count = static_cast<int64_t>(values.size());
  if (type == DataType::Int64) return Tensor::from<int64_t>(type, {count}, values);
  const std::vector<int32_t> narrow(values.begin(), values.end());
  return Tensor::from<int32_t>(DataType::Int32, {count}, narrow);
}

}  // namespace tessera
