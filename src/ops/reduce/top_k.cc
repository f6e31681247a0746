// TopK: the largest or smallest elements along an axis, and their indices.
#include <algorithm>
#include <cmath>
#include <memory_resource>
#include <numeric>
#include <type_traits>
#include <vector>

#include "base/threads/parallel_slots.h"
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

constexpr int kInputVersion = 10;  // from this version on, K is an input
constexpr int kOrderVersion = 11;

std::optional<int64_t> known_count(const InferContext& context) {
  if (context.version() < kInputVersion) return context.node().attributes.get_int("k");
  const auto elements = context.known_integers(1);
  if (!elements) return std::nullopt;
  if (elements->size() != 1) {
    context.fail_input(1, "expected one element, found " + std::to_string(elements->size()));
  }
  return elements->front();
}

void infer_top_k(InferContext& context) {
  const Shape* shape = context.shape(0);
  const std::optional<int64_t> count = known_count(context);
  if (count && *count < 0) {
    context.fail("expected a number of elements of 0 or more, found " + std::to_string(*count));
  }
  std::optional<Shape> output;
  if (shape != nullptr) {
    const int64_t axis = context.normalized_axis(context.node().attributes.get_int("axis"),
                                                 static_cast<int64_t>(shape->size()));
    output = *shape;
    Dim& length = (*output)[static_cast<size_t>(axis)];
    if (count && length.is_known() && *count > length.value()) {
      context.fail("expected at most " + std::to_string(length.value()) + " elements along axis " +
                   std::to_string(axis) + ", found " + std::to_string(*count));
    }
    length = count ? Dim(*count) : unknown_dim(context, 0, static_cast<size_t>(axis));
  }
  context.set_output(0, context.element(0), output);
  context.set_output(1, DataType::Int64, output);
}

// Whether `one` precedes `other`. NaN is larger than all numbers.
template <class C>
bool is_larger(C one, C other) {
  if constexpr (!std::is_integral_v<C>) {
    if (std::isnan(one) || std::isnan(other)) return std::isnan(one) && !std::isnan(other);
  }
  return one > other;
}

// The addresses of the elements of a line in inputs and outputs.
struct Lines {
  int64_t count = 0;
  int64_t length = 0;
  int64_t stride = 1;
};

Lines lines_of(const TensorView& input, int64_t axis) {
  Lines lines{.length = input.dims[static_cast<size_t>(axis)]};
  for (int64_t inner_axis = axis + 1; inner_axis < input.rank(); ++inner_axis) {
    lines.stride *= input.dims[static_cast<size_t>(inner_axis)];
  }
  lines.count = input.elements / lines.length;
  return lines;
}

void run_top_k(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const Attributes& attributes = call.node.attributes;
  int64_t axis = attributes.get_int("axis");
  if (axis < 0) axis += input.rank();
  const MutableTensorView& kept = call.has_output(0) ? call.outputs[0] : call.outputs[1];
  if (kept.elements == 0) return;
  const Lines lines = lines_of(input, axis);
  const int64_t count = kept.dims[static_cast<size_t>(axis)];
  const bool wants_largest =
      call.node.version < kOrderVersion || attributes.get_int("largest") != 0;
  visit_numeric(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const T* source = input.as<T>().data();
    const int64_t grain = std::max<int64_t>(1, 4096 / lines.length);
    const int64_t slots = slot_count(call.pool, lines.count, grain);
    std::pmr::vector<int64_t> orders(static_cast<size_t>(slots * lines.length), &call.scratch);
    const auto sort_lines = [&](int64_t slot, int64_t begin, int64_t end) {
      const auto order = std::span(orders).subspan(static_cast<size_t>(slot * lines.length),
                                                   static_cast<size_t>(lines.length));
      for (int64_t line = begin; line < end; ++line) {
        const int64_t outer = line / lines.stride;
        const int64_t inner = line % lines.stride;
        const T* elements = source + outer * lines.length * lines.stride + inner;
        std::iota(order.begin(), order.end(), int64_t{0});
        // Ties keep their original order.
        const auto is_before = [&](int64_t left, int64_t right) {
          const C one = static_cast<C>(elements[left * lines.stride]);
          const C other = static_cast<C>(elements[right * lines.stride]);
          if (wants_largest ? is_larger(one, other) : is_larger(other, one)) return true;
          if (wants_largest ? is_larger(other, one) : is_larger(one, other)) return false;
          return left < right;
        };
        std::partial_sort(order.begin(), order.begin() + count, order.end(), is_before);
        for (int64_t rank = 0; rank < count; ++rank) {
          const int64_t target = (outer * count + rank) * lines.stride + inner;
          const int64_t index = order[static_cast<size_t>(rank)];
          if (call.has_output(0)) {
            call.outputs[0].as<T>()[static_cast<size_t>(target)] = elements[index * lines.stride];
          }
          if (call.has_output(1)) {
            call.outputs[1].as<int64_t>()[static_cast<size_t>(target)] = index;
          }
        }
      }
    };
    parallel_for_in_slots(call.pool, lines.count, grain, sort_lines);
  });
}

}  // namespace

std::vector<Op> top_k_ops() {
  // Unsorted output may have any order, so sorted output serves both.
  return {
      {.name = "TopK",
       .versions = {1, 10, 11, 24},
       .inputs = {{"X", "T"}, {"K", "tensor(int64)", Arity::Required, kInputVersion}},
       .outputs = {{"Values", "T"}, {"Indices", "I"}},
       .type_variables = {{"T", kNumericTypes}, {"tensor(int64)", kInt64Type}, {"I", kInt64Type}},
       .attributes = {{"axis", AttributeKind::Int, int64_t{-1}},
                      {"k", AttributeKind::Int, std::nullopt, 1, kInputVersion - 1, true},
                      {"largest", AttributeKind::Int, int64_t{1}, kOrderVersion},
                      {"sorted", AttributeKind::Int, int64_t{1}, kOrderVersion}},
       .infer = infer_top_k,
       .flops = flops_per_input,
       .kernel = run_top_k}};
}

}  // namespace tessera::ops
