// GroupNormalization: normalises each group of channels by its own mean and variance. Scale and
// shift are per group in version 18 and per channel in version 21.
#include "ops/check_shape.h"
#include "ops/normalization/normalize.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

constexpr int kFirstPerChannelVersion = 21;

void infer_group_normalization(InferContext& context) {
  const int64_t groups = context.node().attributes.get_int("num_groups");
  if (groups < 1) {
    context.fail("expected 'num_groups' of at least 1, found " + std::to_string(groups));
  }
  context.set_output(0, context.element(0), context.input(0).type.shape);
  const bool is_per_channel = context.version() >= kFirstPerChannelVersion;
  const Shape* input = context.shape(0);
  if (input == nullptr) return;
  if (input->size() < 2) {
    context.fail_input(0, "expected batch and channels, found " + text(*input));
  }
  const Dim& channels = (*input)[1];
  if (channels.is_known() && channels.value() % groups != 0) {
    context.fail_input(0, "expected channels in " + std::to_string(groups) +
                              " equal groups, found " + text(*input));
  }
  for (const size_t index : {size_t{1}, size_t{2}}) {
    check_shape(context, index, {is_per_channel ? channels : Dim(groups)});
  }
}

void run_group_normalization(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  if (input.elements == 0) return;
  const int64_t groups = call.node.attributes.get_int("num_groups");
  const int64_t group_channels = input.dims[1] / groups;
  const int64_t rows = input.dims[0] * groups;
  const int64_t channel_length = input.elements / rows / group_channels;
  const bool is_per_channel = call.node.version >= kFirstPerChannelVersion;
  normalize_rows(call, rows, channel_length, [=](int64_t row, int64_t run) {
    const int64_t group = row % groups;
    return is_per_channel ? group * group_channels + run : group;
  });
}

}  // namespace

std::vector<Op> group_normalization_ops() {
  return {{.name = "GroupNormalization",
           .versions = {18, 21},
           .inputs = {{"X", "T"}, {"scale", "T"}, {"bias", "T"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .attributes = {{"epsilon", AttributeKind::Float, 1e-5F},
                          {"num_groups", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true},
                          {"stash_type", AttributeKind::Int, int64_t{1}, 21}},
           .infer = infer_group_normalization,
           .flops = normalization_flops,
           .kernel = run_group_normalization}};
}

}  // namespace tessera::ops
