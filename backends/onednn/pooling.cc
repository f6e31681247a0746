// MaxPool, AveragePool and the global poolings, in the layout of their input.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "base/accuracy.h"
#include "base/eltwise.h"
#include "base/families.h"
#include "base/formats.h"
#include "base/primitive.h"
#include "base/window.h"

namespace tessera::onednn {

using dnnl::algorithm;
using dnnl::memory;
using plugin::Node;

namespace {

struct PoolingProblem {
  algorithm kind = algorithm::undef;
  memory::dims input;
  memory::dims output;
  Window window;
};

// A window that contains only padding has no maximum and no mean.
void check_windows_see_input(const Window& window) {
  for (size_t axis = 0; axis < window.kernel.size(); ++axis) {
    if (std::max(window.pads_begin[axis], window.pads_end[axis]) >= window.extent(axis)) {
      refuse("has windows that cover padding only");
    }
  }
}

PoolingProblem pooling_problem(const Node& node) {
  for (const plugin::Value& value : {node.input(0), node.output(0)}) {
    const auto reason = explain_unusable(value);
    if (reason) refuse(*reason);
  }
  if (node.output(1).is_present()) refuse("oneDNN does not return the indices of maxima");
  PoolingProblem problem;
  problem.input = node.input(0).type().dims;
  problem.output = node.output(0).type().dims;
  const memory::dims input = spatial(problem.input);
  if (input.size() > 3) refuse("has more than three spatial axes");
  const plugin::Attributes attributes = node.attributes();
  const bool is_global = node.op().starts_with("Global");
  const memory::dims kernel = is_global ? input : memory::dims(attributes.get_ints("kernel_shape"));
  problem.window = window_of(attributes, kernel, input, spatial(problem.output));
  check_windows_see_input(problem.window);
  if (node.op() == "MaxPool" || node.op() == "GlobalMaxPool") {
    problem.kind = algorithm::pooling_max;
  } else if (attributes.get_int("count_include_pad") != 0) {
    // oneDNN would also count the elements beyond the padding.
    if (problem.window.reaches_beyond_padding)
      refuse("would count the padding that ceil_mode adds");
    problem.kind = algorithm::pooling_avg_include_padding;
  } else {
    problem.kind = algorithm::pooling_avg_exclude_padding;
  }
  if (problem.kind == algorithm::pooling_max) return problem;
  if (const std::string reason = explain_inexact_sum(problem.window.taps()); !reason.empty()) {
    refuse(reason);
  }
  return problem;
}

void offer(Context& context, const Node& node) {
  const PoolingProblem problem = pooling_problem(node);
  const Window& window = problem.window;
  bool is_offered = false;
  for (const Format format : kFormats) {
    const memory::desc source = describe(format, problem.input);
    // If all layouts have the same bytes, the first one stands for all.
    if (format != Format::RowMajor &&
        std::string_view(layout_of(source)) == TESSERA_LAYOUT_DEFAULT) {
      continue;
    }
    const dnnl::pooling_forward::primitive_desc pooling(
        context.engine(), dnnl::prop_kind::forward_inference, problem.kind, source,
        describe_pooled(format, problem.input, problem.output), window.strides, window.kernel,
        window.dilations, window.pads_begin, window.pads_end, context.attributes(), true);
    // Its portable code takes ten times as long as that of other libraries.
    if (!pooling || std::string_view(pooling.impl_info_str()).starts_with("simple")) continue;
    PrimitiveOffer offer({node.id()}, pooling);
    offer.read(DNNL_ARG_SRC, node.input(0), pooling.src_desc());
    offer.write(DNNL_ARG_DST, node.output(0), pooling.dst_desc());
    const auto bytes =
        static_cast<double>(pooling.src_desc().get_size() + pooling.dst_desc().get_size());
    const double comparisons =
        static_cast<double>(node.output(0).type().elements()) * static_cast<double>(window.taps());
    context.add(
        offer.candidate(context.optimistic_seconds(comparisons, bytes, pooling.impl_info_str())));
    is_offered = true;
  }
  if (!is_offered) refuse("oneDNN has no such pooling");
}

}  // namespace

void propose_poolings(Context& context) {
  context.for_each({"AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"},
                   [&](const Node& node) {
                     if (context.keeps_nan() && node.op().ends_with("MaxPool")) {
                       return context.refuse(node.id(), explain_lost_nan(node.op()));
                     }
                     offer(context, node);
                   });
}

}  // namespace tessera::onednn
