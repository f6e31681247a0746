// Random graphs with their inputs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ops/graph_test.h"
#include "ops/registry.h"
#include "tessera/sparse_tensor.h"
#include "tessera/tensor.h"

namespace tessera {

// Random numbers that are the same on every machine.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}

  // From `low` to `high`, both inclusive.
  int64_t whole(int64_t low, int64_t high);
  bool one_in(int64_t count) { return whole(1, count) == 1; }
  float number(float low, float high);
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(whole(0, static_cast<int64_t>(from.size()) - 1))];
  }
  Tensor tensor(std::vector<int64_t> dims, float low = -1, float high = 1);
  // A tensor with zeros: about one element (or row, for row_sparse) in `rarity` is nonzero.
  Tensor sparse_tensor(SparseFormat format, std::vector<int64_t> dims, int64_t rarity);

 private:
  uint64_t next();
  uint64_t state_;
};

// A graph with its inputs, built step by step.
class RandomGraph {
 public:
  RandomGraph(const ops::Registry& registry, int opset) : builder(registry, opset) {}

  // Adds a fed input, or a constant, with these elements.
  RandomGraph& input(const std::string& name, Tensor tensor);
  RandomGraph& constant(const std::string& name, Tensor tensor);
  // Adds either an input or a constant, at random.
  RandomGraph& operand(Dice& dice, const std::string& name, Tensor tensor);

  // Adds a fed input in csr or row_sparse whose capacity is its full size.
  RandomGraph& sparse_input(const std::string& name, SparseFormat format, Tensor tensor);

  // As GraphBuilder::node(): one output with the name of the node, or with other names.
  RandomGraph& node(const std::string& name, const std::string& op,
                    const std::vector<std::string>& inputs, Attributes attributes = {}) {
    return node(name, op, inputs, {name}, std::move(attributes));
  }
  RandomGraph& node(const std::string& name, const std::string& op,
                    const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                    Attributes attributes = {}) {
    builder.node(name, op, inputs, outputs, std::move(attributes));
    return *this;
  }

  // The finished graph, moved out of this one, whose outputs are these values.
  template <class... Names>
  RandomGraph ending_in(const Names&... names) {
    (builder.output(names), ...);
    return std::move(*this);
  }

  GraphBuilder builder;
  std::map<std::string, Tensor> fed;
  std::map<std::string, SparseForm> sparse;
};

}  // namespace tessera
