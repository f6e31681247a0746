// Ops that only move elements, as strided copies from their inputs to their outputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arrangement.h"
#include "strided_copy.h"
#include "tessera/backend.h"

namespace tessera::native {

// One strided copy from an input to an output.
struct Move {
  struct Axis {
    int64_t count = 0;
    int input_axis = -1;  // -1: along this axis the same elements come again
    int64_t step = 1;     // along the input's axis
    int64_t to = 0;       // stride in the output
  };
  size_t input = 0;  // ports
  size_t output = 0;
  std::vector<Axis> axes;
  std::vector<int64_t> starts;   // along each axis of the input; none: at 0
  std::vector<int64_t> strides;  // of the input, where it lies dense
  int64_t to_offset = 0;

  Nest nest(const int64_t* input_strides) const;
  int64_t from_offset(const int64_t* input_strides) const;
};

// What becomes a candidate.
struct MoveOffer {
  std::string input_layout = TESSERA_LAYOUT_DEFAULT;
  std::string output_layout = TESSERA_LAYOUT_DEFAULT;
  std::vector<plugin::Value> inputs;  // one port each
  std::vector<plugin::Value> outputs;
  std::vector<Move> moves;
  bool is_same = false;  // the output has the bytes of the input, which it may overwrite
};

// Row-major inputs may be strided.
void offer_moves(plugin::ProposeContext& context, const plugin::Node& node, const MoveOffer& offer);

// Why the elements of `value` cannot be moved.
std::optional<std::string> explain_immovable(const plugin::Value& value);
// The same for the inputs and outputs of a node that all have its first input's element type.
std::optional<std::string> explain_immovable(const plugin::Node& node);

// The elements of a constant list of int32 or int64; nullopt where it is not known.
std::optional<std::vector<int64_t>> known_integers(const plugin::Value& value);

// The port of `candidate` that reads `value`, which must be one of its inputs.
size_t port_of(const plugin::Candidate& candidate, const plugin::Value& value);

// `axis` counted from the front. Throws Failure where it is outside [-rank, rank).
size_t normalized_axis(int64_t axis, size_t rank);

}  // namespace tessera::native
