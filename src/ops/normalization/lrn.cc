// LRN (local response normalisation): scales each element by the squares of its neighbours along
// the channels.
#include <algorithm>
#include <cmath>

#include "ops/convert_element.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

void infer_lrn(InferContext& context) {
  const int64_t size = context.node().attributes.get_int("size");
  if (size < 1) context.fail("expected a 'size' of at least 1, found " + std::to_string(size));
  const Shape* input = context.shape(0);
  if (input != nullptr && input->size() < 2) {
    context.fail_input(0, "expected batch and channels, found " + text(*input));
  }
  context.set_output(0, context.element(0), context.input(0).type.shape);
}

struct Neighbourhood {
  int64_t before = 0;  // channels
  int64_t after = 0;
  double factor = 0;  // alpha / size
  double bias = 0;
  double exponent = 0;
};

Neighbourhood neighbourhood_of(const Node& node, int64_t channels) {
  const Attributes& attributes = node.attributes;
  const int64_t size = attributes.get_int("size");
  return {.before = std::min(channels, (size - 1) / 2),
          .after = std::min(channels, size - 1 - (size - 1) / 2),
          .factor = static_cast<double>(attributes.get_float("alpha")) / static_cast<double>(size),
          .bias = attributes.get_float("bias"),
          .exponent = attributes.get_float("beta")};
}

// Normalises one channel of a feature map with `channels` channels of `length` elements each.
template <class T>
void normalize_channel(const T* picture, T* target, int64_t channel, int64_t channels,
                       int64_t length, const Neighbourhood& neighbours) {
  const int64_t first = std::max<int64_t>(0, channel - neighbours.before);
  const int64_t last = std::min(channels - 1, channel + neighbours.after);
  for (int64_t index = 0; index < length; ++index) {
    double squares = 0;
    for (int64_t other = first; other <= last; ++other) {
      const double value = to_double(picture[other * length + index]);
      squares += value * value;
    }
    const double value = to_double(picture[channel * length + index]);
    const double base = neighbours.bias + neighbours.factor * squares;
    target[channel * length + index] = from_double<T>(value / std::pow(base, neighbours.exponent));
  }
}

void run_lrn(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  if (input.elements == 0) return;
  const int64_t channels = input.dims[1];
  const int64_t rows = input.dims[0] * channels;
  const int64_t length = input.elements / rows;
  const Neighbourhood neighbours = neighbourhood_of(call.node, channels);
  visit_floating(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = input.as<T>().data();
    T* target = call.outputs[0].as<T>().data();
    call.pool.parallel_for(rows, 1024 / length + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t picture = row / channels * channels * length;
        normalize_channel(source + picture, target + picture, row % channels, channels, length,
                          neighbours);
      }
    });
  });
}

// A square and an addition per neighbour; then scale, shift, power and division.
int64_t lrn_flops(const Node& node, std::span<const Type> inputs, std::span<const Type> outputs) {
  const Shape& shape = *inputs[0].shape;
  const int64_t size = std::min(node.attributes.get_int("size"), shape[1].value());
  return multiply(flops_per_output(node, inputs, outputs), add(multiply(2, size), 4)).value();
}

}  // namespace

std::vector<Op> lrn_ops() {
  return {{.name = "LRN",
           .versions = {1, 13},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .attributes = {{"alpha", AttributeKind::Float, 1e-4F},
                          {"beta", AttributeKind::Float, 0.75F},
                          {"bias", AttributeKind::Float, 1.0F},
                          {"size", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true}},
           .infer = infer_lrn,
           .flops = lrn_flops,
           .kernel = run_lrn}};
}

}  // namespace tessera::ops
