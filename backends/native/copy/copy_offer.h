// Candidates for ops that only copy elements, as strided copies from inputs to outputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "copy/strided_copy.h"
#include "layout/strided_layout.h"
#include "tessera/backend.h"

namespace tessera::native {

// A strided copy from an input port to an output port. strided_copy.h runs it.
struct PortCopy {
  struct Axis {
    int64_t count = 0;
    int input_axis = -1;  // -1: the same elements are repeated along this axis
    int64_t step = 1;     // along the axis of the input
    int64_t to = 0;       // stride in the output
  };
  size_t input = 0;  // ports
  size_t output = 0;
  std::vector<Axis> axes;
  std::vector<int64_t> starts;   // first index along each axis of the input; empty: all 0
  std::vector<int64_t> strides;  // of the input, if it is dense
  int64_t to_offset = 0;

  LoopNest loop_nest(const int64_t* input_strides) const;
  int64_t from_offset(const int64_t* input_strides) const;
};

// The description from which a candidate is made.
struct CopyOffer {
  std::string input_layout = TESSERA_LAYOUT_DEFAULT;
  std::string output_layout = TESSERA_LAYOUT_DEFAULT;
  std::vector<plugin::Value> inputs;  // one port each
  std::vector<plugin::Value> outputs;
  std::vector<PortCopy> port_copies;
  bool is_same = false;  // the output has the bytes of the input, which it may overwrite
};

// Offers a candidate that runs these copies. Row-major inputs may be strided.
void offer_copies(plugin::ProposeContext& context, const plugin::Node& node,
                  const CopyOffer& offer);

// The reason why the elements of `value` cannot be copied; nullopt if they can.
std::optional<std::string> explain_uncopyable(const plugin::Value& value);
// Checks the first input and all outputs of a node, which have one element type.
std::optional<std::string> explain_uncopyable(const plugin::Node& node);

// The port of `candidate` that reads `value`. Requires that there is one.
size_t port_of(const plugin::Candidate& candidate, const plugin::Value& value);

}  // namespace tessera::native
