#include "assemble/stored_kernels.h"

#include <utility>

#include "assemble/kernel_judge.h"
#include "backend/packs.h"
#include "cache/fingerprint.h"
#include "graph/extract_group.h"
#include "microbench/group_bench.h"
#include "price/group_text.h"
#include "tessera/error.h"

namespace tessera {
namespace {

constexpr const char* kKeyStart = "kernel;";
// The key of a kernel takes time, which grows with the graph. Others are as well built again.
constexpr double kSecondsWorthSharing = 0.01;

}  // namespace

bool is_kernel_key(const std::string& name) { return name.starts_with(kKeyStart); }

bool is_kernel_of(const std::string& key, const std::string& backend) {
  return key.starts_with(kKeyStart + backend + ";");
}

std::optional<std::string> StoredKernels::key_of(const Candidate& candidate, const Graph& graph,
                                                 const LayoutTable& layouts) const {
  Graph group;
  try {
    group = extract_group(graph, candidate.nodes);
  } catch (const Error&) {
    return std::nullopt;
  }
  const std::optional<tuning::GroupText> text = tuning::group_text(group, registry_);
  if (!text) return std::nullopt;
  const int threads = candidate.threads == 0 ? threads_ : candidate.threads;
  std::string all =
      text->text + "\n" + candidate.plugin->ingredients() + "\n" + candidate.algorithm + "\n" +
      tuning::layouts_text(candidate, graph, layouts, group, *text) + "\n" +
      std::to_string(threads) + " threads, precision " + std::to_string(latitude_.precision) +
      ", nan " + std::to_string(latitude_.nan) + ", accuracy " + std::to_string(latitude_.accuracy);
  for (const ValueId id : candidate.absorbed) {
    const Value& weight = graph[id];
    if (!weight.digest && !weight.constant.has_elements()) return std::nullopt;
    all += "\n" + tessera::text(PackKey{.weight = weight.digest ? *weight.digest
                                                                : digest_of(weight.constant)});
  }
  return kKeyStart + candidate.backend() + ";" + cache::digest_text(all);
}

StoredKernels::Found StoredKernels::find(const Candidate& candidate, const Graph& graph,
                                         const LayoutTable& layouts) const {
  const bool can_load = static_cast<bool>(candidate.load);
  const bool is_shared =
      can_load && shared_ != nullptr && candidate.build_seconds >= kSecondsWorthSharing;
  const bool is_stored = can_load && find_;
  if (!is_stored && !is_shared && !is_judged(candidate)) return {};
  Found found = {.shared = nullptr, .stored = {}, .key = key_of(candidate, graph, layouts)};
  if (!found.key) return found;
  if (is_shared) found.shared = shared_->of(*found.key, candidate.plugin.get());
  if (is_stored) found.stored = find_(*found.key);
  return found;
}

std::vector<SavableKernel> StoredKernels::savable(const BuiltPlan& built) const {
  std::vector<SavableKernel> savable;
  for (size_t index = 0; index < built.plan.steps.size(); ++index) {
    const std::shared_ptr<const Kernel>& kernel = built.kernels[index];
    if (kernel == nullptr || !kernel->can_be_saved()) continue;
    const int index_of_candidate = built.plan.steps[index].candidate;
    const Candidate& candidate = built.offers.candidates[static_cast<size_t>(index_of_candidate)];
    if (!candidate.load) continue;
    std::optional<std::string> key = key_of(candidate, built.graph, *built.layouts);
    if (key) savable.push_back({*std::move(key), kernel});
  }
  return savable;
}

}  // namespace tessera
