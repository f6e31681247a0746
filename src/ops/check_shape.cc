#include "ops/check_shape.h"

#include <algorithm>

namespace tessera::ops {

bool can_be_equal(const Shape& left, const Shape& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const Dim& first, const Dim& second) {
                      return !first.is_known() || !second.is_known() || first == second;
                    });
}

void check_shape(const InferContext& context, size_t index, const Shape& expected) {
  const Shape* found = context.has_input(index) ? context.shape(index) : nullptr;
  if (found == nullptr || can_be_equal(*found, expected)) return;
  context.fail_input(index, "expected shape [" + text(expected) + "] as the other inputs say, " +
                                "found [" + text(*found) + "]");
}

}  // namespace tessera::ops
