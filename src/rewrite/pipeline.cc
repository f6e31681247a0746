#include "rewrite/pipeline.h"

#include <chrono>
#include <iterator>
#include <utility>

#include "graph/compact.h"
#include "graph/verify.h"
#include "rewrite/passes.h"

namespace tessera {
namespace {

constexpr Pass kPasses[] = {
    // read top to bottom; passes.h explains their positions
    {"lower_functions", lower_functions},
    {"fold_constants", fold_constants},
    {"inline_branches", inline_branches},
    {"hoist_invariants", hoist_invariants},
    {"unroll_loops", unroll_loops},
    {"remove_identities", remove_identities},
    {"fold_pads", fold_pads},
    {"fold_batch_norm", fold_batch_norm},
    {"sink_dequantize", sink_dequantize},
    {"separate_dequantize", separate_dequantize},
    {"remove_dead_nodes", remove_dead_nodes},
};

}  // namespace

Rewritten rewrite(Graph graph, const ops::Registry& registry, ThreadPool& pool) {
  using Clock = std::chrono::steady_clock;
  Rewritten result{std::move(graph), {}};
  for (const Pass& pass : kPasses) {
    PassReport report;
    report.name = pass.name;
    report.nodes_before = static_cast<int64_t>(result.graph.nodes.size());
    const Clock::time_point start = Clock::now();
    result.graph = compact(pass.run(std::move(result.graph), {registry, pool, report.changes}));
    report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    report.nodes_after = static_cast<int64_t>(result.graph.nodes.size());
#ifdef TESSERA_CHECKS
    // The graph is verified after passes that report a change, and after the last pass in any case.
    if (!report.changes.empty() || &pass == std::end(kPasses) - 1) verify(result.graph, pass.name);
#endif
    result.reports.push_back(std::move(report));
  }
  return result;
}

}  // namespace tessera
