// Split: divides a tensor along one axis. The sizes are an attribute until version 12 and an input
// from 13 on; without them the parts are equal (from 18 on, the last one may be smaller).
#include <algorithm>
#include <cstring>

#include "ops/index_reader.h"
#include "ops/op.h"
#include "ops/shape_rules.h"

namespace tessera::ops {
namespace {

constexpr int kSplitInputVersion = 13;
constexpr int kFirstUnequalVersion = 18;

// Fails unless there is one size per output, none is negative, and they add up to `dim`.
void check_sizes(const InferContext& context, const std::vector<int64_t>& sizes, const Dim& dim) {
  if (sizes.size() != context.output_count()) {
    context.fail("expected one size for each of " + std::to_string(context.output_count()) +
                 " outputs, found " + std::to_string(sizes.size()));
  }
  int64_t sum = 0;
  for (const int64_t size : sizes) {
    if (size < 0) context.fail("expected sizes of at least 0, found " + std::to_string(size));
    if (__builtin_add_overflow(sum, size, &sum)) {
      context.fail("expected sizes whose sum fits 64 bits, found " + std::to_string(size) +
                   " more than that");
    }
  }
  if (dim.is_known() && sum != dim.value()) {
    context.fail("expected sizes with the sum " + dim.text() + ", found " + std::to_string(sum));
  }
}

std::vector<Dim> equal_parts(const InferContext& context, const Dim& dim) {
  const auto count = static_cast<int64_t>(context.output_count());
  if (count == 0) context.fail("expected at least one output, found none");
  if (count == 1) return {dim};
  if (context.version() < kFirstUnequalVersion) {
    if (dim.is_known() && dim.value() % count != 0) {
      context.fail("expected a dimension that " + std::to_string(count) +
                   " outputs divide evenly, found " + dim.text());
    }
    return std::vector<Dim>(static_cast<size_t>(count), floor_divide(dim, count));
  }
  const Dim part = ceil_divide(dim, count);
  const Dim last = subtract(dim, multiply(part, count - 1));
  if (last.is_known() && last.value() < 0) {
    context.fail("expected a dimension that fills " + std::to_string(count) + " outputs, found " +
                 dim.text());
  }
  std::vector<Dim> parts(static_cast<size_t>(count), part);
  parts.back() = last;
  return parts;
}

// Whether the node gives sizes. Fails if it also gives num_outputs, or if num_outputs is wrong.
bool has_sizes(const InferContext& context) {
  if (context.version() < kSplitInputVersion) {
    return context.node().attributes.find_ints("split") != nullptr;
  }
  const bool has_input = context.has_input(1);
  if (context.version() < kFirstUnequalVersion) return has_input;
  const int64_t* outputs = context.node().attributes.find_int("num_outputs");
  // If neither is given, as exporters of older versions do, the parts are equal.
  if (has_input && outputs != nullptr) {
    context.fail("expected either input 'split' or attribute 'num_outputs', found both");
  }
  if (outputs != nullptr && *outputs != static_cast<int64_t>(context.output_count())) {
    context.fail("expected num_outputs to be the number of outputs, " +
                 std::to_string(context.output_count()) + ", found " + std::to_string(*outputs));
  }
  return has_input;
}

// The sizes of the parts of `dim`; nullopt if they are unknown.
std::optional<std::vector<Dim>> part_sizes(const InferContext& context, const Dim& dim) {
  if (!has_sizes(context)) return equal_parts(context, dim);
  std::optional<std::vector<int64_t>> sizes;
  if (context.version() < kSplitInputVersion) {
    sizes = *context.node().attributes.find_ints("split");
  } else {
    sizes = integer_list(context, 1);
  }
  if (!sizes) return std::nullopt;
  check_sizes(context, *sizes, dim);
  return shape_from(*sizes);
}

void follow_parts(InferContext& context, const std::vector<Dim>& sizes) {
  const std::vector<Dim>* elements = propagated_elements(context, 0);
  if (elements == nullptr || context.shape(0)->size() != 1) return;
  auto begin = elements->begin();
  for (size_t index = 0; index < sizes.size(); ++index) {
    const auto end = begin + sizes[index].value();
    context.set_elements(index, std::vector<Dim>(begin, end));
    begin = end;
  }
}

void infer_split(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (shape == nullptr) {
    for (size_t index = 0; index < context.output_count(); ++index) {
      context.set_output(index, context.element(0));
    }
    return;
  }
  const auto axis = static_cast<size_t>(context.normalized_axis(
      context.node().attributes.get_int("axis"), static_cast<int64_t>(shape->size())));
  const auto sizes = part_sizes(context, (*shape)[axis]);
  for (size_t index = 0; index < context.output_count(); ++index) {
    Shape part = *shape;
    part[axis] = sizes ? (*sizes)[index] : unknown_dim(context, index, axis);
    context.set_output(index, context.element(0), part);
  }
  if (sizes) follow_parts(context, *sizes);
}

std::pmr::vector<int64_t> sizes_of(const KernelCall& call, int64_t dim) {
  std::pmr::vector<int64_t> sizes = integers_of(call, "split", 1);
  if (!sizes.empty()) return sizes;
  const auto count = static_cast<int64_t>(call.node.outputs.size());
  const int64_t part = dim / count + (dim % count != 0 ? 1 : 0);
  sizes.resize(static_cast<size_t>(count), part);
  sizes.back() = dim - part * (count - 1);
  return sizes;
}

void run_split(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  if (input.elements == 0) return;
  int64_t axis = call.node.attributes.get_int("axis");
  if (axis < 0) axis += input.rank();
  int64_t outer = 1;
  int64_t inner_bytes = element_bytes(input.type);
  for (int64_t dimension = 0; dimension < input.rank(); ++dimension) {
    const int64_t dim = input.dims[static_cast<size_t>(dimension)];
    if (dimension < axis) outer *= dim;
    if (dimension > axis) inner_bytes *= dim;
  }
  const int64_t dim = input.dims[static_cast<size_t>(axis)];
  const std::pmr::vector<int64_t> sizes = sizes_of(call, dim);
  const int64_t grain = std::max<int64_t>(1, (1 << 16) / (inner_bytes * dim));
  call.pool.parallel_for(outer, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const char* source = static_cast<const char*>(input.data) + row * dim * inner_bytes;
      for (size_t index = 0; index < sizes.size(); ++index) {
        const int64_t bytes = sizes[index] * inner_bytes;
        if (call.has_output(index)) {
          std::memcpy(static_cast<char*>(call.outputs[index].data) + row * bytes, source,
                      static_cast<size_t>(bytes));
        }
        source += bytes;
      }
    }
  });
}

}  // namespace

std::vector<Op> split_ops() {
  return {{.name = "Split",
           .versions = {2, 11, 13, 18},
           .inputs = {{"input", "T"}, {"split", "tensor(int64)", Arity::Optional, 13}},
           .outputs = {{"outputs", "T", Arity::Variadic}},
           .type_variables = {{"T", kAllTypesAndStrings}, {"tensor(int64)", kInt64Type}},
           .attributes = {{"axis", AttributeKind::Int, int64_t{0}},
                          {"split", AttributeKind::Ints, std::nullopt, 1, 12},
                          {"num_outputs", AttributeKind::Int, std::nullopt, 18}},
           .infer = infer_split,
           .flops = no_flops,
           .kernel = run_split}};
}

}  // namespace tessera::ops
