#include "ops/convolution/convolution.h"

#include <string>

#include "ops/check_shape.h"

namespace tessera::ops {

Op convolution_op() {
  return {.versions = {1, 11, 22},
          .inputs = {{"X", "T"}, {"W", "T"}, {"B", "T", Arity::Optional}},
          .outputs = {{"Y", "T"}},
          .type_variables = {{"T", kFloatTypes}},
          .attributes = {{"auto_pad", AttributeKind::String, "NOTSET"},
                         {"dilations", AttributeKind::Ints, std::nullopt},
                         {"group", AttributeKind::Int, int64_t{1}},
                         {"kernel_shape", AttributeKind::Ints, std::nullopt},
                         {"pads", AttributeKind::Ints, std::nullopt},
                         {"strides", AttributeKind::Ints, std::nullopt}}};
}

void check_ranks(const InferContext& context, const Shape& input, const Shape& weights) {
  check_spatial_rank(context.node(), input.size());
  if (weights.size() != input.size()) {
    context.fail_input(1, "expected rank " + std::to_string(input.size()) + " as input 'X' (" +
                              text(input) + ") has, found " + text(weights));
  }
}

int64_t group_of(const InferContext& context) {
  const int64_t group = context.node().attributes.get_int("group");
  if (group < 1) context.fail("expected a 'group' of at least 1, found " + std::to_string(group));
  return group;
}

void check_channels(const InferContext& context, const Shape& input, const Shape& weights) {
  const int64_t group = group_of(context);
  if (weights[1] == Dim(0)) {
    context.fail_input(1, "expected at least 1 channel, found " + text(weights));
  }
  if (weights[0].is_known() && weights[0].value() % group != 0) {
    context.fail_input(1, "expected output channels in " + std::to_string(group) +
                              " equal groups, found " + text(weights));
  }
  if (!input[1].is_known() || !weights[1].is_known()) return;
  if (input[1] != multiply(weights[1], group)) {
    context.fail_input(1, "expected weights over " + input[1].text() + " / " +
                              std::to_string(group) + " channels as input 'X' (" + text(input) +
                              ") and 'group' say, found " + text(weights));
  }
}

std::optional<std::vector<int64_t>> kernel_of(const InferContext& context, const Shape& weights) {
  const std::vector<int64_t>* declared = context.node().attributes.find_ints("kernel_shape");
  const Shape spatial(weights.begin() + 2, weights.end());
  if (declared == nullptr) {
    return is_known(spatial) ? std::optional(dims_from(spatial)) : std::nullopt;
  }
  if (!can_be_equal(spatial, shape_from(*declared))) {
    context.fail_input(1, "expected weights for a kernel of " + text(shape_from(*declared)) +
                              " as attribute 'kernel_shape' says, found " + text(weights));
  }
  return *declared;
}

int64_t convolution_flops(const Type& pictures, const Type& weights) {
  Dim work = 2;
  for (const Dim& dim : *pictures.shape) work = multiply(work, dim);
  for (size_t axis = 1; axis < weights.shape->size(); ++axis) {
    work = multiply(work, (*weights.shape)[axis]);
  }
  return work.value();
}

std::array<int64_t, kMaxSpatialAxes> tap_at(const Window& window, int64_t tap) {
  return {tap / window[2].kernel / window[1].kernel, tap / window[2].kernel % window[1].kernel,
          tap % window[2].kernel};
}

}  // namespace tessera::ops
