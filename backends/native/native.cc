#include "native.h"

#include <string>

#include "base/families.h"
#include "hwy/targets.h"

namespace tessera::native {

namespace {

using Propose = void (*)(plugin::ProposeContext& context);

// Among equal candidates, the one that is proposed first is chosen.
constexpr Propose kFamilies[] = {
    propose_views,
    propose_byte_poolings,
    propose_byte_softmaxes,
    propose_dynamic_quantizations,
    propose_linear_wheres,
    propose_quantized_pairs,
    propose_quantized_concats,
    propose_linear_functions,
    propose_arg_max,
    propose_attentions,
    propose_group_query_attentions,
    propose_channel_normalizations,
    propose_concats,
    propose_convolutions,
    propose_cum_sums,
    propose_depth_to_space,
    propose_elementwise,
    propose_gathers,
    propose_group_normalizations,
    propose_integer_convolutions,
    propose_integer_matmuls,
    propose_layer_normalizations,
    propose_recurrences,
    propose_one_hots,
    propose_pads,
    propose_poolings,
    propose_matmuls,
    propose_block_products,
    propose_ranges,
    propose_reductions,
    propose_expands,
    propose_reshapes,
    propose_resizes,
    propose_rotary_embeddings,
    propose_scatters,
    propose_slices,
    propose_softmaxes,
    propose_sparse_elementwise,
    propose_sparse_matmul,
    propose_sparse_reduce,
    propose_sparse_rows,
    propose_top_k,
    propose_transposed_convolutions,
    propose_transposes,
    propose_trilus,
    propose_fused_convolutions,
    propose_depthwise_strips,
    propose_dynamic_groups,
    propose_quantized_regions,
};

}  // namespace

plugin::Description Native::describe() {
  plugin::Description description;
  description.name = "native";
  description.version = TESSERA_VERSION;
  // Targets are bits, of which the lowest one is the best target.
  const int64_t targets = hwy::SupportedTargets();
  const std::string best = hwy::TargetName(targets & -targets);
  description.ingredients = {
      {"version", TESSERA_VERSION}, {"revision", kernel_revision()}, {"isa", best}};
  description.devices.front().architecture = best;
  description.layouts = shared_layouts();
  description.conversions = direct_conversions();
  return description;
}

void Native::propose(const plugin::Graph& graph, const plugin::ProposeOptions& options,
                     plugin::Proposals& proposals) {
  plugin::ProposeContext context(graph, options, proposals);
  for (const Propose family : kFamilies) family(context);
  context.report_refusals("there is no native kernel for this op");
}

}  // namespace tessera::native

TESSERA_PLUGIN(tessera::native::Native)
