// Which function of one variable oneDNN computes a node with; alone (eltwise.cc), or behind another
// primitive (chain.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

// A function of oneDNN; its header says what alpha and beta mean to each algorithm.
struct Eltwise {
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  float alpha = 0;
  float beta = 0;
  // Of a Relu that is a post-operation: a PReLU with the slope 0, which compares and multiplies,
  // and so keeps NaN where the library's Relu, a maximum, gives 0.
  bool is_prelu = false;

  // Whether it gives zero for zero, so that padding stays as it must be.
  bool keeps_zero() const;
};

// What computes `function` and gives NaN for NaN, one after the other; empty if
// nothing of the library does: its maximum and minimum with a number give that number for NaN. With
// `behind_product`, for post-operations there, also what gives NaN for -infinity where that is
// finite.
std::vector<Eltwise> keeping_nan(const Eltwise& function, bool behind_product = false);

// A node that is such functions, one after the other, of one of its inputs; its other inputs are
// constants.
struct EltwiseNode {
  std::vector<Eltwise> functions;
  size_t input = 0;
};

// The answer for any node: its functions, or why there are none. Looks at the op, its attributes
// and constants; the type of the input is for the caller to check. A binary op with a constant of
// one element is a function of the other input where the output has that input's shape. `nan` is
// TESSERA_NAN_: with EXACT, functions are those of keeping_nan().
struct EltwiseAnswer {
  std::optional<EltwiseNode> node;
  std::string reason;  // where there is no node; "" for ops that are no functions of one variable
};
EltwiseAnswer find_eltwise(const plugin::Node& node, int32_t nan, bool behind_product = false);

// Why something that loses NaN is not offered.
std::string explain_lost_nan(std::string_view what);

// The number in `value` where it is a constant of one float32 element.
std::optional<float> constant_number(const plugin::Value& value);

}  // namespace tessera::onednn
