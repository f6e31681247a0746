// GlobalAveragePool, GlobalMaxPool and GlobalLpPool: one number per channel.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/compensated_sum.h"
#include "ops/convert_element.h"
#include "ops/lp_norm.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

void infer_global_pool(InferContext& context) {
  const Shape* input = context.shape(0);
  context.set_output(0, context.element(0));
  if (input == nullptr) return;
  if (input->size() < 2) {
    context.fail_input(0, "expected batch and channels, found " + text(*input));
  }
  Shape output(input->size(), Dim(1));
  std::copy_n(input->begin(), 2, output.begin());
  context.set_output(0, context.element(0), std::move(output));
}

template <class T>
double average_of(std::span<const T> elements) {
  CompensatedSum sum;
  for (const T element : elements) sum.add(to_double(element));
  return sum.value() / static_cast<double>(elements.size());
}

// NaN counts as the largest, so that it propagates.
template <class T>
double largest_of(std::span<const T> elements) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const T element : elements) {
    const double value = to_double(element);
    if (value > largest || std::isnan(value)) largest = value;
    if (std::isnan(largest)) break;
  }
  return largest;
}

// Writes pooled(elements of a channel) for each channel.
template <class Pooled>
void pool_channels(const KernelCall& call, const Pooled& pooled) {
  const TensorView& input = call.inputs[0];
  const int64_t channels = call.outputs[0].elements;
  if (channels == 0) return;
  const int64_t length = input.elements / channels;
  visit_floating(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::span<const T> source = input.as<T>();
    const std::span<T> target = call.outputs[0].as<T>();
    const int64_t grain = 4096 / (length + 1) + 1;
    call.pool.parallel_for(channels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t channel = begin; channel < end; ++channel) {
        const auto elements =
            source.subspan(static_cast<size_t>(channel * length), static_cast<size_t>(length));
        target[static_cast<size_t>(channel)] = from_double<T>(pooled(elements));
      }
    });
  });
}

void run_global_average_pool(const KernelCall& call) {
  pool_channels(call, [](const auto& elements) { return average_of(elements); });
}

void run_global_max_pool(const KernelCall& call) {
  pool_channels(call, [](const auto& elements) { return largest_of(elements); });
}

void infer_global_lp_pool(InferContext& context) {
  check_lp_order(context);
  infer_global_pool(context);
}

void run_global_lp_pool(const KernelCall& call) {
  const int64_t p = call.node.attributes.get_int("p");
  pool_channels(call, [&](const auto& elements) {
    const auto visit_elements = [&](const auto& visit) {
      for (const auto element : elements) visit(to_double(element));
    };
    return lp_norm(visit_elements, p);
  });
}

// One operation for each input element.
int64_t global_pool_flops(const Node&, std::span<const Type> inputs, std::span<const Type>) {
  return element_count(dims_from(*inputs[0].shape));
}

Op global_pool_op(const char* name, uint32_t traits, ReferenceKernel kernel) {
  return {.name = name,
          .versions = {1, 22},
          .inputs = {{"X", "T"}},
          .outputs = {{"Y", "T"}},
          .type_variables = {{"T", kFloatTypes}},
          .traits = traits,
          .infer = infer_global_pool,
          .flops = global_pool_flops,
          .kernel = kernel};
}

}  // namespace

std::vector<Op> global_pool_ops() {
  Op lp = global_pool_op("GlobalLpPool", kBoundsMagnitude, run_global_lp_pool);
  lp.versions = {2, 22};
  lp.attributes = {{"p", AttributeKind::Int, int64_t{2}}};
  lp.infer = infer_global_lp_pool;
  return {global_pool_op("GlobalAveragePool", kBoundsMagnitude, run_global_average_pool),
          global_pool_op("GlobalMaxPool", kNoTrait, run_global_max_pool), lp};
}

}  // namespace tessera::ops
