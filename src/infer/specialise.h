// Replaces the symbols of a graph by the numbers of given input shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera {

using InputShapes = std::map<std::string, std::vector<int64_t>>;  // by the name of the input

// Whether a value that is declared with this shape can have these dimensions. Names of dimensions
// claim nothing.
bool permits(const Shape& declared, const std::vector<int64_t>& dims);

// Gives the graph inputs named in `shapes` these shapes. A dimension of another input becomes the
// same number if it has the same name (graph/dim_names.h) and all given dimensions of that name are
// equal. The shape of an input that nothing reads decides nothing else, and need not be known.
// Shapes of values made by nodes are reset, to be inferred again; their element types stay. Throws
// InvalidArgument for a name that is not an input (listing the inputs), another rank, a number that
// contradicts the declared one, and an input that is read but still has an unknown dimension
// (naming the input, the dimension and how to give it).
Graph specialise(const Graph& graph, const InputShapes& shapes);

// Whether specialise() would lack a dimension of an input that is read.
bool needs_shapes(const Graph& graph, const InputShapes& shapes);
// Throws as specialise() does for what is wrong with `shapes`; dimensions may be missing.
void check_given_shapes(const Graph& graph, const InputShapes& shapes);

// Dimensions to which the model gives one name, although `shapes` gives them different numbers.
struct UnequalDims {
  struct Place {
    std::string input;
    size_t axis = 0;
    int64_t size = 0;
  };

  std::string name;
  std::vector<Place> places;  // all that `shapes` gives, in the order of the inputs
};

// All such names, of inputs that are read, in the order of their first dimension. Ignores shapes
// that specialise() refuses.
std::vector<UnequalDims> find_unequal_dims(const Graph& graph, const InputShapes& shapes);

// The graph in which all dimensions of inputs that have one name are one symbol, and the types that
// follow. The graph as it is if these dimensions cannot be equal. No plan may rely on it.
Graph with_equal_names(const Graph& graph, const ops::Registry& registry);

}  // namespace tessera
