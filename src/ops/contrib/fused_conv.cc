// FusedConv, NhwcConv and NhwcFusedConv: convolutions plus another input, with an activation
// function, and with the channels as the last axis. convolution/conv.cc has the convolution.
#include <algorithm>
#include <array>
#include <cstddef>

#include "ops/contrib/contrib.h"
#include "ops/contrib/fused_activation.h"
#include "ops/convolution/convolution.h"
#include "ops/domains.h"

namespace tessera::ops {
namespace {

constexpr size_t kAddend = 3;  // Z

// [N, D1, ..., C] becomes [N, C, D1, ...].
Shape channels_second(const Shape& shape) {
  Shape result = shape;
  if (result.size() > 2) std::rotate(result.begin() + 1, result.end() - 1, result.end());
  return result;
}

Shape channels_last(const Shape& shape) {
  Shape result = shape;
  if (result.size() > 2) std::rotate(result.begin() + 1, result.begin() + 2, result.end());
  return result;
}

void infer_fused_conv(InferContext& context, bool is_last) {
  read_activation(context.node());
  std::vector<InferInput> inputs;
  for (size_t index = 0; index < std::min(context.input_count(), kAddend); ++index) {
    inputs.push_back(context.input(index));
  }
  if (is_last && inputs[0].type.shape) {
    inputs[0].type.shape = channels_second(*inputs[0].type.shape);
  }
  std::optional<Shape> shape = convolution_shape(context, inputs);
  if (shape && is_last) shape = channels_last(*shape);
  if (shape) check_shape(context, kAddend, *shape);
  context.set_output(0, context.element(0), shape);
}

void run_fused_conv(const KernelCall& call) {
  const FusedActivation activation = read_activation(call.node);
  visit_floating(call.outputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* addend = call.has_input(kAddend) ? call.inputs[kAddend].as<T>().data() : nullptr;
    run_conv(call, [&](int64_t position, std::span<double> sums) {
      for (size_t index = 0; addend != nullptr && index < sums.size(); ++index) {
        sums[index] += to_double(addend[position + static_cast<int64_t>(index)]);
      }
      activation.apply(sums);
    });
  });
}

// Copies [N, rows, columns] to [N, columns, rows].
void transpose_each(const KernelCall& call, DataType type, std::span<const int64_t> sizes,
                    const void* source, void* target) {
  const int64_t rows = sizes[1];
  const int64_t columns = sizes[2];
  visit_size(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto copy = [&](int64_t line) {
      const int64_t item = line / columns;
      const int64_t column = line % columns;
      const T* from = static_cast<const T*>(source) + item * rows * columns + column;
      T* to = static_cast<T*>(target) + line * rows;
      for (int64_t row = 0; row < rows; ++row) to[row] = from[row * columns];
    };
    call.pool.parallel_for(sizes[0] * columns, row_grain(rows), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) copy(line);
    });
  });
}

// A tensor whose channels were moved: its dimensions and elements.
struct MovedTensor {
  explicit MovedTensor(std::pmr::memory_resource* memory) : dims(memory), elements(memory) {}

  std::pmr::vector<int64_t> dims;
  std::pmr::vector<std::byte> elements;
};

// The tensor with the channels as axis 1; without `source`, with room for its elements.
MovedTensor moved(const KernelCall& call, DataType type, std::span<const int64_t> dims,
                  const void* source) {
  MovedTensor result(&call.scratch);
  result.dims.assign(dims.begin(), dims.end());
  std::rotate(result.dims.begin() + 1, result.dims.end() - 1, result.dims.end());
  result.elements.resize(static_cast<size_t>(element_count(dims) * element_bytes(type)));
  if (source == nullptr) return result;
  const int64_t positions = element_count(dims.subspan(1, dims.size() - 2));
  transpose_each(call, type, std::array{dims.front(), positions, dims.back()}, source,
                 result.elements.data());
  return result;
}

void run_nhwc_conv(const KernelCall& call) {
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  std::pmr::vector<TensorView> inputs(call.inputs.begin(), call.inputs.end(), &call.scratch);
  const MovedTensor input = moved(call, output.type, inputs[0].dims, inputs[0].data);
  inputs[0].dims = input.dims;
  inputs[0].data = input.elements.data();
  MovedTensor addend(&call.scratch);
  if (call.has_input(kAddend)) {
    addend = moved(call, output.type, inputs[kAddend].dims, inputs[kAddend].data);
    inputs[kAddend].dims = addend.dims;
    inputs[kAddend].data = addend.elements.data();
  }
  MovedTensor result = moved(call, output.type, output.dims, nullptr);
  MutableTensorView target = output;
  target.dims = result.dims;
  target.data = result.elements.data();
  run_fused_conv({call.node, inputs, std::span(&target, 1), call.pool, call.scratch});
  const int64_t positions = output.elements / output.dims.front() / output.dims.back();
  transpose_each(call, output.type, std::array{output.dims.front(), output.dims.back(), positions},
                 target.data, output.data);
}

Op conv_variant(const char* name, bool is_last, bool is_fused) {
  Op op = convolution_op();
  op.name = name;
  op.domain = kMicrosoftDomain;
  op.versions = {1};
  if (is_fused) {
    op.inputs.push_back({"Z", "T", Arity::Optional});
    op.attributes.push_back({"activation", AttributeKind::String, std::nullopt});
    op.attributes.push_back({"activation_params", AttributeKind::Floats, std::nullopt});
  }
  op.infer = [is_last](InferContext& context) { infer_fused_conv(context, is_last); };
  op.flops = conv_flops;
  op.kernel = is_last ? run_nhwc_conv : run_fused_conv;
  return op;
}

}  // namespace

std::vector<Op> fused_conv_ops() {
  return {conv_variant("FusedConv", false, true), conv_variant("NhwcConv", true, false),
          conv_variant("NhwcFusedConv", true, true)};
}

}  // namespace tessera::ops
