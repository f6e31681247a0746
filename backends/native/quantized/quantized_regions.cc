// Quantised regions around Conv, MatMul and Gemm as one product of bytes: DequantizeLinear of both
// factors and of the bias, an activation, and QuantizeLinear, which may be missing.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/families.h"
#include "base/refusal.h"
#include "quantized/integer_offer.h"
#include "quantized/region.h"

namespace tessera::native {

using plugin::Node;
using plugin::ProposeContext;
using plugin::Value;

namespace {

constexpr std::string_view kRegionOps[] = {"Conv", "MatMul", "Gemm"};

bool is_byte(int32_t type) { return type == TESSERA_INT8 || type == TESSERA_UINT8; }

// The axis of the weights whose indices are columns of the product.
int32_t weight_column_axis(const Node& node, int32_t rank) {
  if (node.op() == "Conv") return 0;
  if (node.op() == "Gemm") return node.attributes().get_int("transB", 0) != 0 ? 0 : 1;
  return rank - 1;
}

class RegionOffer {
 public:
  RegionOffer(ProposeContext& context, QuantizedRegion region)
      : context_(context), region_(std::move(region)), node_(region_.node) {}

  void offer() {
    check();
    IntegerOffer offer = {.node = node_,
                          .nodes = region_.nodes(),
                          .inputs = std::vector<Value>(kIntegerRoles, Value(nullptr, -1)),
                          .result = region_.output.value,
                          .work = {}};
    if (!context_.is_wanted(offer.nodes)) return;
    offer.inputs[kLeft] = left().integers;
    offer.inputs[kRight] = right().integers;
    IntegerWork& work = offer.work;
    work.is_left_signed = left().quantization.data_type == TESSERA_INT8;
    work.is_right_signed = right().quantization.data_type == TESSERA_INT8;
    set_result(work);
    work.constants = std::make_shared<IntegerConstants>(constants());
    if (node_.op() == "Conv") return offer_integer_convolution(context_, offer);
    MatMulOp op;
    op.is_gemm = node_.op() == "Gemm";
    op.is_left_transposed = op.is_gemm && node_.attributes().get_int("transA", 0) != 0;
    op.is_right_transposed = op.is_gemm && node_.attributes().get_int("transB", 0) != 0;
    offer_integer_matmul(context_, std::move(offer), op);
  }

 private:
  const QuantizedInput& left() const { return region_.inputs[0]; }
  const QuantizedInput& right() const { return region_.inputs[1]; }
  bool has_bias() const {
    return region_.inputs.size() > 2 && region_.inputs[2].value.is_present();
  }

  void check() const {
    for (const QuantizedInput* const factor : {&left(), &right()}) {
      if (!factor->is_quantized() || !is_byte(factor->quantization.data_type)) {
        refuse("is no region of bytes");
      }
      if (!factor->integers.type().is_known()) refuse("takes tensors of known shape only");
    }
    if (!left().quantization.is_per_tensor()) refuse("takes one scale on the left");
    const Quantization& weights = right().quantization;
    const int32_t rank = right().integers.type().rank;
    if (!weights.is_per_tensor() && weights.axis != weight_column_axis(node_, rank)) {
      refuse("takes one scale on the right, or one for each column");
    }
    const QuantizedOutput& output = region_.output;
    if (output.is_quantized() &&
        (!is_byte(output.quantization.data_type) || !output.quantization.is_per_tensor())) {
      refuse("gives bytes with one scale");
    }
    if (!output.is_quantized() && output.value.type().data_type != TESSERA_FLOAT32) {
      refuse("gives bytes or float32");
    }
    if (!output.value.type().is_known()) refuse("takes tensors of known shape only");
    if (output.value.type().elements() == 0) refuse("the result has no elements");
    const auto scaling = [&](const char* name) { return node_.attributes().get_float(name, 1); };
    if (node_.op() == "Gemm" && (scaling("alpha") != 1 || (has_bias() && scaling("beta") != 1))) {
      refuse("does not scale the product");
    }
  }

  void set_result(IntegerWork& work) const {
    const QuantizedOutput& output = region_.output;
    work.low = output.function.lower_limit();
    work.high = output.function.upper_limit();
    work.to = output.is_quantized() ? SumsTo::Bytes : SumsTo::Reals;
    if (!output.is_quantized()) return;
    work.is_result_signed = output.quantization.data_type == TESSERA_INT8;
    const IntegerLimits limits = region_.limits();
    work.lowest = limits.lowest;
    work.highest = limits.highest;
  }

  float result_scale() const {
    return region_.output.is_quantized() ? region_.output.quantization.scale() : 1.0F;
  }

  // The scale of the products of a column.
  float product_scale(size_t column) const {
    const std::vector<float>& scales = right().quantization.scales;
    return left().quantization.scale() * scales[scales.size() == 1 ? 0 : column];
  }

  IntegerConstants constants() const {
    IntegerConstants made;
    made.left_zero = left().quantization.zero_point();
    made.right_zeros = right().quantization.zero_points;
    for (size_t column = 0; column < right().quantization.scales.size(); ++column) {
      made.factors.push_back(product_scale(column) / result_scale());
    }
    if (region_.output.is_quantized()) made.zero = region_.output.quantization.zero_point();
    // Where the nodes alone would overflow, their results are others than those of exact sums.
    constexpr float kLargestByte = 255;
    constexpr float kLargestSum = 0x1p31F;
    for (size_t column = 0; column < made.factors.size(); ++column) {
      const float largest = std::max({left().quantization.scale() * kLargestByte,
                                      right().quantization.scales[column] * kLargestByte,
                                      product_scale(column) * kLargestSum, made.factors[column]});
      if (!std::isfinite(largest)) refuse("has scales whose products are too large");
    }
    if (has_bias()) add_bias(made);
    return made;
  }

  // A bias with the scale of the products is added to their sums, any other one to the results.
  void add_bias(IntegerConstants& made) const {
    const QuantizedInput& bias = region_.inputs[2];
    const Value& source = bias.is_quantized() ? bias.integers : bias.value;
    const plugin::Type type = source.type();
    const bool is_list = std::ranges::count(type.dims, int64_t{1}) + 1 >= type.rank &&
                         (type.dims.empty() || type.dims.back() == type.elements());
    if (!source.is_constant() || source.constant() == nullptr || !is_list) {
      refuse("takes a constant bias, one number for each column");
    }
    const auto count = static_cast<size_t>(type.elements());
    if (!bias.is_quantized()) {
      if (type.data_type != TESSERA_FLOAT32) refuse("takes a bias of float32");
      for (const float number : source.constant_as<float>()) {
        made.offsets.push_back(number / result_scale());
      }
      return;
    }
    if (type.data_type != TESSERA_INT32) refuse("takes a bias of int32");
    const std::span<const int32_t> integers = source.constant_as<int32_t>();
    const Quantization& scaling = bias.quantization;
    const auto scale_at = [&](size_t column) {
      return scaling.scales[scaling.scales.size() == 1 ? 0 : column];
    };
    bool has_scale_of_products = !scaling.has_zero_points();
    const size_t columns = std::max({count, scaling.scales.size(), made.factors.size()});
    for (size_t column = 0; column < columns; ++column) {
      has_scale_of_products &= scale_at(column) == product_scale(column);
    }
    if (has_scale_of_products) {
      made.bias.assign(integers.begin(), integers.end());
      return;
    }
    for (size_t column = 0; column < count; ++column) {
      const int32_t zero = scaling.zero_points[scaling.zero_points.size() == 1 ? 0 : column];
      const auto steps = static_cast<double>(integers[column]) - static_cast<double>(zero);
      made.offsets.push_back(static_cast<float>(steps * static_cast<double>(scale_at(column))) /
                             result_scale());
    }
  }

  ProposeContext& context_;
  QuantizedRegion region_;
  Node node_;
};

}  // namespace

void propose_quantized_regions(ProposeContext& context) {
  for (const Node& node : context.graph().nodes()) {
    const bool is_product =
        node.domain().empty() && std::ranges::find(kRegionOps, node.op()) != std::end(kRegionOps);
    if (!is_product || !context.is_wanted(node)) continue;
    try {
      RegionOffer(context, region_around(context.graph(), node)).offer();
    } catch (const plugin::Failure& failure) {
      context.refuse(node.id(), failure.what());
    }
  }
}

}  // namespace tessera::native
