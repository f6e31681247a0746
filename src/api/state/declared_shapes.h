// The shapes of inputs and outputs that a model declares, and the ranges that bind() was given.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/state/shape_plan.h"
#include "graph/graph.h"
#include "graph/type.h"
#include "tessera/tessera.h"

namespace tessera {

// Immutable.
class DeclaredShapes {
 public:
  // `loaded` is the graph before any shape was bound. Inputs have sizes in `ranges`, by name.
  explicit DeclaredShapes(const Graph& loaded,
                          std::map<std::string, std::vector<SizeRange>> ranges = {});

  // Whether anything in the model depends on the dimensions of this input. After binding, a node
  // that reads only the shape no longer counts as a reader of the input, because the shape is then
  // a constant.
  bool is_read(size_t input) const { return is_read_[input]; }
  size_t input_count() const { return is_read_.size(); }
  // Whether the model declares fixed dimensions for all inputs that are read.
  bool are_fixed() const { return are_fixed_; }
  // Whether the model leaves this dimension of the input open.
  bool is_open(const std::string& input, size_t axis) const;
  // Whether a value of this name can have these dimensions for some shapes of the inputs.
  bool permit(const std::string& name, const Dims& dims) const;
  // Whether a value of this name can have these dimensions if other shapes are bound.
  bool may_become(const std::string& name, const Dims& dims) const {
    return !are_fixed_ && permit(name, dims);
  }
  // Throws InvalidArgument unless `input` can have these dimensions.
  void check(const ValueDescription& input, const Dims& dims) const;
  // The same, but looks at the ranges only.
  void check_range(const ValueDescription& input, const Dims& dims) const;

 private:
  std::vector<bool> is_read_;  // by input
  bool are_fixed_ = true;
  std::map<std::string, Shape> shapes_;  // of inputs and outputs, if the model declares them
  std::map<std::string, std::vector<SizeRange>> ranges_;  // of inputs
};

}  // namespace tessera
