// Which function of one variable oneDNN computes a node with; alone (eltwise.cc), or behind another
// primitive (chain.h).
#pragma once

#include <optional>
#include <string>

#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

// A function of oneDNN; its header says what alpha and beta mean to each algorithm.
struct Eltwise {
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  float alpha = 0;
  float beta = 0;

  // Whether it gives zero for zero, so that padding stays as it must be.
  bool keeps_zero() const;
};

// A node that is such a function of one of its inputs; its other inputs are constants.
struct EltwiseNode {
  Eltwise function;
  size_t input = 0;
};

// The answer for any node: `function`, or why there is none. Looks at the op, its attributes and
// constants; the type of the input is for the caller to check. A binary op with a constant of one
// element is a function of the other input where the output has that input's shape.
struct EltwiseAnswer {
  std::optional<EltwiseNode> node;
  std::string reason;  // where there is no node; "" for ops that are no functions of one variable
};
EltwiseAnswer find_eltwise(const plugin::Node& node);

// The number in `value` where it is a constant of one float32 element.
std::optional<float> constant_number(const plugin::Value& value);

}  // namespace tessera::onednn
