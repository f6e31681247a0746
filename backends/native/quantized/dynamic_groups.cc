// Products of dynamically quantised numbers, as onnxruntime's quantize_dynamic() writes them:
// MatMulInteger or ConvInteger -> Cast -> Mul by the scale -> Add of a bias, which may be missing.
#include <algorithm>
#include <exception>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/families.h"
#include "base/refusal.h"
#include "matmul/matmul_problem.h"
#include "quantized/integer_offer.h"

namespace tessera::native {

using plugin::Node;
using plugin::ProposeContext;
using plugin::Value;

namespace {

// The order of roles is that of IntegerRole.
constexpr IntegerRoles kIntegerInputs = {{0, 1, -1, 2, -1, 3, -1, -1, -1, -1}};

// The other operand of a Mul or an Add.
Value other_operand(const Node& node, const Value& value) {
  return node.input(node.input(0).id() == value.id() ? 1 : 0);
}

// Whether it has one number, or one for each column of the result, when it is broadcast to that.
bool is_by_column(const Value& operand, const plugin::Type& result, bool is_convolution) {
  const plugin::Type type = operand.type();
  if (!type.is_known() || type.rank > result.rank) return false;
  if (type.elements() == 1) return true;
  // The axis of columns, from the end.
  const int32_t from_end = is_convolution ? result.rank - 1 : 1;
  if (type.rank < from_end) return false;
  const auto axis = static_cast<size_t>(type.rank - from_end);
  const int64_t columns = result.dims[static_cast<size_t>(result.rank - from_end)];
  return type.dims[axis] == columns && type.elements() == columns;
}

void offer_group(ProposeContext& context, const std::vector<int32_t>& match) {
  const plugin::Graph& graph = context.graph();
  const Node product = graph.node(match[0]);
  const Node cast = graph.node(match[1]);
  const Node scaling = graph.node(match[2]);
  const Node last = graph.node(match.back());
  const bool is_convolution = product.op() == "ConvInteger";
  if (cast.output(0).type().data_type != TESSERA_FLOAT32) refuse("gives float32 only");
  IntegerOffer offer = offer_of_node(product, kIntegerInputs);
  const plugin::Type type = product.output(0).type();
  const Value& zero = offer.input(kRightZero);
  // Those of a convolution are a list, which is not broadcast to the result.
  const bool is_list = is_convolution && zero.type().rank == 1;
  if (zero.is_present() && !is_list && !is_by_column(zero, type, false)) {
    refuse("takes zero points of columns only");
  }
  if (offer.input(kLeftZero).is_present() && offer.input(kLeftZero).type().elements() != 1) {
    refuse("takes one zero point on the left");
  }
  offer.has_checked_columns = true;
  offer.nodes = match;
  std::sort(offer.nodes.begin(), offer.nodes.end());
  if (!context.is_wanted(offer.nodes)) return;
  offer.result = last.output(0);
  offer.work.to = SumsTo::Reals;
  offer.work.low = -std::numeric_limits<float>::infinity();
  offer.work.high = std::numeric_limits<float>::infinity();
  if (offer.result.type().dims != type.dims) refuse("is followed by a sum of another shape");
  const Value scale = other_operand(scaling, cast.output(0));
  const auto is_real = [](const Value& value) { return value.type().data_type == TESSERA_FLOAT32; };
  if (!is_real(scale) || !is_by_column(scale, type, is_convolution))
    refuse("takes scales of columns only");
  offer.inputs[kRightScale] = scale;
  if (match.size() > 3) {
    const Value bias = other_operand(last, scaling.output(0));
    if (!is_real(bias) || !is_by_column(bias, type, is_convolution))
      refuse("takes a bias of columns only");
    offer.inputs[kRealBias] = bias;
  }
  if (is_convolution) return offer_integer_convolution(context, offer);
  offer_integer_matmul(context, std::move(offer), MatMulOp());
}

}  // namespace

void propose_dynamic_groups(ProposeContext& context) {
  for (const std::string op : {"MatMulInteger", "ConvInteger"}) {
    const std::string scaled = "p = " + op + "; c = Cast(p); ";
    for (const std::string& pattern : {scaled + "m = Mul(c, _); Add(m, _)", scaled + "Mul(c, _)"}) {
      for (const auto& match : context.graph().match(pattern)) {
        try {
          offer_group(context, match);
        } catch (const std::exception& failure) {
          context.refuse(match[0], failure.what());
        }
      }
    }
  }
}

}  // namespace tessera::native
