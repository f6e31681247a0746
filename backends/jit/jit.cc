#include "jit.h"

#include <algorithm>
#include <string>
#include <utility>

#include "compile.h"
#include "fused_kernel.h"

namespace tessera::jit {

using plugin::Candidate;
using plugin::Failure;
using plugin::FusedAccess;
using plugin::FusedGroup;

namespace {

constexpr const char* kAlgorithm = "fused";
constexpr double kSecondsPerKernel = 0.005;
constexpr double kSecondsPerInstruction = 0.00005;

// In layouts with blocks of channels, channels cannot be reduced.
std::string layout_of_whole(const FusedGroup& group) {
  const bool reduces_channels = group.dims.size() > 1 && group.is_reduced(1);
  return reduces_channels ? TESSERA_LAYOUT_DEFAULT : TESSERA_LAYOUT_ANY_DENSE;
}

}  // namespace

Jit::Jit(const tessera_host* host)
    : store_(std::make_shared<KernelStore>(this_processor(), plugin::Blobs(host),
                                           kernel_revision())) {}

plugin::Description Jit::describe() {
  plugin::Description description;
  description.name = "jit";
  description.version = "1";
  description.ingredients = {{"revision", kernel_revision()},
                             {"compiler", kCompilerRevision},
                             {"level", store_->target().level}};
  description.devices = {plugin::Device{.architecture = store_->target().level}};
  return description;
}

std::vector<FusedGroup> Jit::groups_of(plugin::ProposeContext& context) const {
  if (!context.options().wanted) return plugin::find_fused_groups(context.graph());
  std::vector<FusedGroup> groups;
  for (const plugin::Wanted& wanted : *context.options().wanted) {
    if (wanted.algorithm != kAlgorithm) continue;
    try {
      groups.push_back(plugin::fuse_nodes(context.graph(), wanted.nodes));
    } catch (const Failure& failure) {
      for (const int32_t node : wanted.nodes) context.refuse(node, failure.what());
    }
  }
  return groups;
}

void Jit::offer(plugin::ProposeContext& context, const FusedGroup& given) const {
  bool is_stored = true;
  for (const KernelPart& part : kernel_parts(given, TESSERA_LAYOUT_DEFAULT, store_->target())) {
    if (store_->has(part.source)) continue;
    is_stored = false;
    store_->check(part.source, part.check_printable);
  }
  if (!is_stored) {
    const std::string missing = store_->explain_absent_compiler();
    if (!missing.empty()) throw Failure(TESSERA_UNSUPPORTED, missing);
  }
  Candidate candidate = plugin::fused_candidate(context.graph(), given, kAlgorithm,
                                                {.whole = layout_of_whole(given)});
  // Compiled code accesses elements wherever they can be, so nothing is copied to other addresses.
  for (const FusedAccess& operand : given.operands) {
    candidate.inputs[static_cast<size_t>(operand.port)].alignment_bytes =
        plugin::element_bytes(operand.data_type);
  }
  for (const FusedAccess& result : given.results) {
    candidate.outputs[static_cast<size_t>(result.port)].alignment_bytes =
        plugin::element_bytes(result.data_type);
  }
  candidate.optimistic_seconds = context.optimistic_seconds(static_cast<double>(given.flops),
                                                            static_cast<double>(given.bytes));
  candidate.flags = TESSERA_CANDIDATE_ONE_PASS | TESSERA_CANDIDATE_COMPILED;
  if (!is_stored) candidate.flags |= TESSERA_CANDIDATE_TO_COMPILE;
  candidate.build_seconds =
      kSecondsPerKernel + kSecondsPerInstruction * static_cast<double>(given.instructions.size());
  candidate.build = [group = std::make_shared<const FusedGroup>(given),
                     store = store_](const plugin::BuildOptions& options) {
    return build_fused_kernel(group, options.dense_layout, store);
  };
  candidate.load = [group = std::make_shared<const FusedGroup>(given), store = store_](
                       std::string_view bytes) { return load_fused_kernel(group, bytes, store); };
  context.add(std::move(candidate));
}

void Jit::propose(const plugin::Graph& graph, const plugin::ProposeOptions& options,
                  plugin::Proposals& proposals) {
  if (options.takes_sizes) return;
  plugin::ProposeContext context(graph, options, proposals);
  for (const FusedGroup& group : groups_of(context)) {
    try {
      offer(context, group);
    } catch (const Failure& failure) {
      for (const int32_t node : group.nodes) context.refuse(node, failure.what());
    }
  }
  context.report_refusals("is in no group that one compiled kernel can compute");
}

}  // namespace tessera::jit

TESSERA_PLUGIN(tessera::jit::Jit)
