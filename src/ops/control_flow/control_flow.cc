// If, Loop and Scan: ops with nested graphs. These graphs are imported and checked, but there are
// no kernels for the ops yet.
#include "ops/op.h"

namespace tessera::ops {
namespace {

Op control_flow_op(const char* name, std::vector<int> versions, std::vector<std::string> bodies) {
  return {.name = name,
          .versions = std::move(versions),
          .bodies = std::move(bodies),
          .unsupported_reason = "control flow is understood but cannot run yet"};
}

}  // namespace

std::vector<Op> control_flow_ops() {
  return {
      control_flow_op("If", {1, 11, 13, 16, 19, 21, 23, 24, 25}, {"then_branch", "else_branch"}),
      control_flow_op("Loop", {1, 11, 13, 16, 19, 21, 23, 24, 25}, {"body"}),
      control_flow_op("Scan", {8, 9, 11, 16, 19, 21, 23, 24, 25}, {"body"})};
}

}  // namespace tessera::ops
