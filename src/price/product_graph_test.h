// A small graph for tests of what is known about groups of nodes.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ops/graph_test.h"

namespace tessera::tuning {

class ProductGraphs : public testing::Test {
 protected:
  // A product and a Relu under given names; the weight holds `element`.
  Graph product(const std::string& prefix, float element, int64_t columns = 3) {
    GraphBuilder builder(registry_);
    const std::vector<float> weight(static_cast<size_t>(4 * columns), element);
    builder.input(prefix + "x", float_type(Shape{2, 4}))
        .constant(prefix + "w", Tensor::from<float>(DataType::Float32, {4, columns}, weight))
        .node(prefix + "product", "MatMul", {prefix + "x", prefix + "w"}, {prefix + "y"})
        .node(prefix + "relu", "Relu", {prefix + "y"}, {prefix + "z"})
        .output(prefix + "z");
    Graph graph = builder.graph();
    for (const char* name : {"y", "z"}) {
      graph[find_value(graph, prefix + name)].type = float_type(Shape{2, columns});
    }
    return graph;
  }

  ops::Registry registry_ = ops::make_registry();
};

}  // namespace tessera::tuning
