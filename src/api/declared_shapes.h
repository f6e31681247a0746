// What a model declares about the shapes of its inputs and outputs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/shape_plan.h"
#include "graph/graph.h"
#include "graph/type.h"
#include "tessera/tessera.h"

namespace tessera {

// Immutable.
class DeclaredShapes {
 public:
  // `loaded` is the graph before any shape was bound.
  explicit DeclaredShapes(const Graph& loaded);

  // Whether anything in the model depends on the dimensions of this input. A node that reads only
  // the shape no longer reads the input once that is bound.
  bool is_read(size_t input) const { return is_read_[input]; }
  size_t input_count() const { return is_read_.size(); }
  // Whether the model has numbers for the dimensions of all inputs that are read.
  bool are_fixed() const { return are_fixed_; }
  // Whether a value of this name may have these dimensions, for some shapes of the inputs.
  bool permit(const std::string& name, const Dims& dims) const;
  // Whether binding other shapes than now could give a value of this name these dimensions.
  bool may_become(const std::string& name, const Dims& dims) const {
    return !are_fixed_ && permit(name, dims);
  }
  // Throws InvalidArgument unless `input` may have these dimensions.
  void check(const ValueDescription& input, const Dims& dims) const;

 private:
  std::vector<bool> is_read_;  // by input
  bool are_fixed_ = true;
  std::map<std::string, Shape> shapes_;  // of inputs and outputs, if the model declares them
};

}  // namespace tessera
