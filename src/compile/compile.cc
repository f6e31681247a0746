#include "compile/compile.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "graph/verify.h"
#include "infer/infer.h"
#include "infer/specialise.h"
#include "tessera/error.h"

namespace tessera {
namespace {

std::vector<ValueId> values_made_by_nodes(const Graph& graph) {
  std::vector<ValueId> made;
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.outputs) {
      if (!id.is_none()) made.push_back(id);
    }
  }
  return made;
}

std::vector<ValueId> values_named(const LoadedModel& model, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  std::unordered_map<std::string, ValueId> by_name;
  for (size_t index = 0; index < model.graph.values.size(); ++index) {
    by_name.emplace(model.graph.values[index].name, ValueId{static_cast<int32_t>(index)});
  }
  std::vector<ValueId> found;
  for (const std::string& name : names) {
    const auto entry = by_name.find(name);
    if (entry != by_name.end()) {
      found.push_back(entry->second);
      continue;
    }
    const bool was_removed = std::find(model.made_values.begin(), model.made_values.end(), name) !=
                             model.made_values.end();
    throw Error(ErrorKind::InvalidArgument, "fetch '" + name + "'",
                was_removed ? "a pass removed this value when the model was loaded; load the "
                              "model with keeps_all_values to fetch it"
                            : "expected the name of a value of the model, found none of that name");
  }
  return found;
}

}  // namespace

LoadedModel load_model(const std::filesystem::path& file, const CompileOptions& options,
                       const ops::Registry& registry, ThreadPool& pool, const Log& log) {
  return load_model(import_onnx(file, registry, log), options, registry, pool, log);
}

LoadedModel load_model(ImportedModel source, const CompileOptions& options,
                       const ops::Registry& registry, ThreadPool& pool, const Log& log) {
  LoadedModel model;
  model.source = std::move(source);
  const Graph imported = std::move(model.source.graph);
  model.source.graph = {};
#ifdef TESSERA_CHECKS
  verify(imported, "import");
#endif

  Graph typed = infer_types(imported, registry, log, {.is_strict = options.is_strict});
  const std::vector<ValueId> made = values_made_by_nodes(typed);
  for (const ValueId id : made) model.made_values.push_back(typed[id].name);
  if (options.keeps_all_values) typed.kept = made;

  Rewritten rewritten = rewrite(typed, registry, pool);
  model.graph = std::move(rewritten.graph);
  model.passes = std::move(rewritten.reports);
  return model;
}

Graph bind_graph(const LoadedModel& model,
                 const std::map<std::string, std::vector<int64_t>>& shapes,
                 const std::vector<std::string>& fetch, const ops::Registry& registry,
                 ThreadPool& pool, const Log& log) {
  Graph graph = specialise(model.graph, shapes);
  graph.kept = values_named(model, fetch);
  const Graph typed = infer_types(graph, registry, log);
  return rewrite(typed, registry, pool).graph;
}

}  // namespace tessera
