// GroupNormalization: each group of channels by its own mean and variance. Version 18 scales and
// shifts group by group, version 21 channel by channel.
#include <algorithm>

#include "ops/check_shape.h"
#include "ops/normalize.h"
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
  const int64_t length = input.elements / rows;
  const int64_t channel_length = length / group_channels;
  const bool is_per_channel = call.node.version >= kFirstPerChannelVersion;
  const std::vector<double> scale = to_doubles(call.inputs[1]);
  const std::vector<double> shift = to_doubles(call.inputs[2]);
  const double epsilon = call.node.attributes.get_float("epsilon");
  visit_floating(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = input.as<T>().data();
    T* target = call.outputs[0].as<T>().data();
    call.pool.parallel_for(rows, 4096 / length + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* elements = source + row * length;
        const Moments moments = moments_of(std::span(elements, static_cast<size_t>(length)));
        const double inverse = moments.inverse_deviation(epsilon);
        for (int64_t index = 0; index < length; ++index) {
          const int64_t group = row % groups;
          const auto parameter = static_cast<size_t>(
              is_per_channel ? group * group_channels + index / channel_length : group);
          const double normalized = (to_double(elements[index]) - moments.mean) * inverse;
          target[row * length + index] =
              from_double<T>(normalized * scale[parameter] + shift[parameter]);
        }
      }
    });
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
