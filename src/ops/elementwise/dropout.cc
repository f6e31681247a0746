// Dropout. It drops elements only if input `training_mode` (since version 12) is true; otherwise it
// copies. It also copies in version 6 with is_test=0, because that is the default, which files
// written for inference leave unchanged.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "ops/convert_elements.h"
#include "ops/op.h"
#include "ops/random/random_numbers.h"

namespace tessera::ops {
namespace {

constexpr int kFirstBoolMaskVersion = 10;
constexpr int kRatioInputVersion = 12;
constexpr double kDefaultRatio = 0.5;

void check_scalar(const InferContext& context, size_t index) {
  if (!context.has_input(index)) return;
  const Shape* shape = context.shape(index);
  if (shape == nullptr) return;
  for (const Dim& dim : *shape) {
    if (dim.is_known() && dim != Dim(1)) {
      context.fail_input(index, "expected a scalar, found shape " + text(*shape));
    }
  }
}

void infer_dropout(InferContext& context) {
  check_scalar(context, 1);
  check_scalar(context, 2);
  const auto& shape = context.input(0).type.shape;
  const bool has_bool_mask = context.version() >= kFirstBoolMaskVersion;
  context.set_output(0, context.element(0), shape);
  context.set_output(1, has_bool_mask ? DataType::Bool : context.element(0), shape);
}

bool is_training(const KernelCall& call) {
  return call.has_input(2) && call.inputs[2].elements == 1 && call.inputs[2].as<uint8_t>()[0] != 0;
}

double ratio_of(const KernelCall& call) {
  double ratio = kDefaultRatio;
  if (call.has_input(1) && call.inputs[1].elements == 1) {
    convert_elements(call.inputs[1].type, call.inputs[1].data, DataType::Float64, &ratio, 1);
  }
  if (!(ratio >= 0 && ratio < 1)) {
    call.fail("expected a ratio in [0, 1), found " + std::to_string(ratio));
  }
  return ratio;
}

uint64_t seed_of(const KernelCall& call) {
  const int64_t* seed = call.node.attributes.find_int("seed");
  return seed != nullptr ? static_cast<uint64_t>(*seed) : drawn_seed();
}

void drop(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const MutableTensorView& output = call.outputs[0];
  const double ratio = ratio_of(call);
  const double scale = 1 / (1 - ratio);
  const uint64_t seed = seed_of(call);
  const int64_t size = element_bytes(input.type);
  uint8_t* mask = call.has_output(1) ? call.outputs[1].as<uint8_t>().data() : nullptr;
  call.pool.parallel_for(input.elements, kElementGrain, [&](int64_t begin, int64_t end) {
    std::array<double, kConvertBlock> block;
    for (int64_t start = begin; start < end; start += kConvertBlock) {
      const int64_t count = std::min(kConvertBlock, end - start);
      convert_elements(input.type, static_cast<const std::byte*>(input.data) + start * size,
                       DataType::Float64, block.data(), count);
      for (int64_t index = 0; index < count; ++index) {
        const bool is_kept = uniform_number(seed, start + index) >= ratio;
        double& element = block[static_cast<size_t>(index)];
        element = is_kept ? element * scale : 0;
        if (mask != nullptr) mask[start + index] = is_kept ? 1 : 0;
      }
      if (output.is_empty()) continue;
      convert_elements(DataType::Float64, block.data(), output.type,
                       static_cast<std::byte*>(output.data) + start * size, count);
    }
  });
}

void run_dropout(const KernelCall& call) {
  if (is_training(call)) return drop(call);
  const TensorView& input = call.inputs[0];
  const int64_t bytes = input.elements * element_bytes(input.type);
  if (call.has_output(0) && bytes > 0) {
    std::memcpy(call.outputs[0].data, input.data, static_cast<size_t>(bytes));
  }
  if (!call.has_output(1)) return;
  const MutableTensorView& mask = call.outputs[1];
  // From version 12 on, the mask is bool (one byte) and true for kept elements. Before, ONNX leaves
  // it undefined at inference; zeros match ONNX Runtime.
  const int byte = call.node.version >= kRatioInputVersion ? 1 : 0;
  std::memset(mask.data, byte, static_cast<size_t>(mask.elements * element_bytes(mask.type)));
}

}  // namespace

std::vector<Op> dropout_ops() {
  const int last_float_mask = kFirstBoolMaskVersion - 1;
  const int last_attribute = kRatioInputVersion - 1;
  return {{.name = "Dropout",
           .versions = {6, 7, 10, 12, 13, 22},
           .inputs = {{"data", "T"},
                      {"ratio", "T1", Arity::Optional, kRatioInputVersion},
                      {"training_mode", "T2", Arity::Optional, kRatioInputVersion}},
           .outputs = {{"output", "T"},
                       {"mask", "T", Arity::Optional, 1, last_float_mask},
                       {"mask", "T2", Arity::Optional, kFirstBoolMaskVersion}},
           .type_variables = {{"T", kFloatTypes, {{22, kFloat8Types}}},
                              {"T1", kFloatTypes, {{22, kFloat8Types}}},
                              {"T2", kBoolType}},
           .attributes = {{"ratio", AttributeKind::Float, 0.5F, 1, last_attribute},
                          {"is_test", AttributeKind::Int, int64_t{0}, 1, 6},
                          {"seed", AttributeKind::Int, std::nullopt, kRatioInputVersion}},
           .traits = kElementwise | kRandom,
           .infer = infer_dropout,
           .flops = no_flops,
           .kernel = run_dropout}};
}

}  // namespace tessera::ops
