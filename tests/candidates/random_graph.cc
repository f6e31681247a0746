#include "random_graph.h"

#include <algorithm>
#include <span>
#include <utility>

namespace tessera {

uint64_t Dice::next() {
  // Sebastiano Vigna's splitmix64.
  uint64_t mixed = (state_ += 0x9E3779B97F4A7C15ULL);
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBULL;
  return mixed ^ (mixed >> 31U);
}

int64_t Dice::whole(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
}

float Dice::number(float low, float high) {
  return low + (high - low) * static_cast<float>(next() >> 40U) / static_cast<float>(1U << 24U);
}

Tensor Dice::tensor(std::vector<int64_t> dims, float low, float high) {
  Tensor made(DataType::Float32, std::move(dims));
  for (float& value : made.mutable_as<float>()) value = number(low, high);
  return made;
}

Tensor Dice::sparse_tensor(SparseFormat format, std::vector<int64_t> dims, int64_t rarity) {
  Tensor made = tensor(std::move(dims));
  const int64_t piece =
      format == SparseFormat::Csr || made.elements() == 0 ? 1 : made.elements() / made.dims()[0];
  const std::span<float> elements = made.mutable_as<float>();
  for (int64_t at = 0; at < made.elements(); at += piece) {
    const auto part = elements.subspan(static_cast<size_t>(at), static_cast<size_t>(piece));
    if (!one_in(rarity)) std::fill(part.begin(), part.end(), 0.0F);
  }
  return made;
}

RandomGraph& RandomGraph::sparse_input(const std::string& name, SparseFormat format,
                                       Tensor tensor) {
  const int64_t stored = SparseTensor::from_dense(format, tensor).stored();
  sparse[name] = {format, std::min(stored + 2, max_stored(format, tensor.dims()))};
  return input(name, std::move(tensor));
}

RandomGraph& RandomGraph::input(const std::string& name, Tensor tensor) {
  builder.input(name, Type::tensor(tensor.type(), shape_from(tensor.dims())));
  fed[name] = std::move(tensor);
  return *this;
}

RandomGraph& RandomGraph::constant(const std::string& name, Tensor tensor) {
  builder.constant(name, std::move(tensor));
  return *this;
}

RandomGraph& RandomGraph::operand(Dice& dice, const std::string& name, Tensor tensor) {
  return dice.one_in(2) ? input(name, std::move(tensor)) : constant(name, std::move(tensor));
}

}  // namespace tessera
