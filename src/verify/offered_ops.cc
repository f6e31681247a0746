#include "verify/offered_ops.h"

#include <memory>
#include <span>
#include <vector>

#include "backend/candidates.h"
#include "backend/graph_view.h"
#include "backend/plugin.h"
#include "ops/registry.h"
#include "tessera/error.h"
#include "verify/op_case.h"

namespace tessera::verification {
namespace {

std::vector<std::string> cases_of_all_ops(const ops::Registry& registry) {
  std::vector<std::string> texts;
  std::set<std::string> covered;
  for (const char* text : case_table()) {
    texts.emplace_back(text);
    covered.insert(ops_of(text));
  }
  for (const ops::Op* op : registry.all()) {
    // Nodes with nested graphs, and those of lists and strings, run on no plug-in.
    const bool runs_on_plugins = op->kernel != nullptr && op->bodies.empty();
    if (!op->domain.empty() || !runs_on_plugins || covered.contains(op->name)) continue;
    for (std::string& text : cases_for(*op)) texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace

std::set<std::string> offered_ops(const std::filesystem::path& library) {
  constexpr uint64_t kSeed = 1;
  std::set<std::string> offered;
  std::shared_ptr<const Plugin> plugin;
  try {
    plugin = Plugin::open(std::filesystem::absolute(library),
                          std::make_shared<HostServices>([](const std::string&) {}));
  } catch (const Error&) {
    return offered;
  }
  const std::span plugins(&plugin, 1);
  LayoutTable layouts(plugins);
  const ops::Registry registry = ops::make_registry();
  for (const std::string& text : cases_of_all_ops(registry)) {
    try {
      const OpCase op_case = read_op_case(text, registry, kSeed);
      const tessera_graph view(op_case.graph, registry);
      const Offers offers = collect_offers(view, plugins, layouts, {.threads = 1});
      for (const Candidate& candidate : offers.candidates) {
        for (const NodeId node : candidate.nodes) offered.insert(op_case.graph[node].op);
      }
    } catch (const Error&) {
      continue;  // the op does not take inputs of this shape
    }
  }
  return offered;
}

}  // namespace tessera::verification
