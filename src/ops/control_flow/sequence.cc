// Ops on sequences and optionals. Their types are represented, but there are no kernels yet.
#include "ops/op.h"

namespace tessera::ops {
namespace {

Op sequence_op(const char* name, std::vector<int> versions, std::vector<std::string> bodies = {}) {
  return {
      .name = name,
      .versions = std::move(versions),
      .bodies = std::move(bodies),
      .unsupported_reason = "sequences and optionals are understood but cannot be computed yet"};
}

}  // namespace

std::vector<Op> sequence_ops() {
  return {sequence_op("ConcatFromSequence", {11}),
          sequence_op("Optional", {15, 28}),
          sequence_op("OptionalGetElement", {15, 18, 28}),
          sequence_op("OptionalHasElement", {15, 18, 28}),
          sequence_op("SequenceAt", {11}),
          sequence_op("SequenceConstruct", {11}),
          sequence_op("SequenceEmpty", {11}),
          sequence_op("SequenceErase", {11}),
          sequence_op("SequenceInsert", {11}),
          sequence_op("SequenceLength", {11}),
          sequence_op("SequenceMap", {17}, {"body"}),
          sequence_op("SplitToSequence", {11, 24})};
}

}  // namespace tessera::ops
