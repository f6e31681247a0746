// The unary function with which oneDNN computes a node, alone (eltwise.cc) or as a post-operation
// (chain.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

// A function of oneDNN, whose header defines alpha and beta for each algorithm.
struct Eltwise {
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  float alpha = 0;
  float beta = 0;
  // For a Relu as post-operation: a PReLU with slope 0, which compares and multiplies and so keeps
  // NaN. The Relu of the library is a maximum and gives 0 for NaN.
  bool is_prelu = false;

  // Whether it maps zero to zero, so that padding stays zero.
  bool keeps_zero() const;
};

// Functions that together compute `function` and keep NaN; empty if the library has none: its
// maximum and minimum with a number give that number for NaN. With `follows_matmul`, for
// post-operations of a matmul or convolution, also functions that give NaN for -infinity if the
// result there would be finite.
std::vector<Eltwise> keeping_nan(const Eltwise& function, bool follows_matmul = false);

// A node that applies such functions to one of its inputs; its other inputs are constants.
struct EltwiseNode {
  std::vector<Eltwise> functions;
  size_t input = 0;
};

// The functions of a node, or the reason why there are none. It looks at the op, its attributes and
// constants; the caller checks the type of the input. A binary op with a constant of one element is
// a function of the other input if the output has the shape of that input. `nan` is
// TESSERA_NAN_...: with EXACT, functions are those of keeping_nan().
struct EltwiseAnswer {
  std::optional<EltwiseNode> node;
  std::string reason;  // if there is no node; "" for ops that are no functions of one variable
};
EltwiseAnswer find_eltwise(const plugin::Node& node, int32_t nan, bool follows_matmul = false);

// The refusal of a function that does not keep NaN.
std::string explain_lost_nan(std::string_view what);

// The number in `value` if it is a constant of one element of float32, int32 or int64. No primitive
// here computes in float64.
std::optional<double> constant_scalar(const plugin::Value& value);

// The number in `value` if it is a constant of one float32 element.
std::optional<float> constant_float(const plugin::Value& value);

}  // namespace tessera::onednn
