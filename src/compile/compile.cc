#include "compile/compile.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/errors/likely_name.h"
#include "graph/dim_names.h"
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
                            : "expected the name of a value of the model, found none of that name" +
                                  did_you_mean(name, model.made_values));
  }
  return found;
}

// Whether the graph already has all of `shapes`, of inputs that are read, and `fetch` is empty.
bool requests_nothing_new(const Graph& graph, const InputShapes& shapes,
                          const std::vector<std::string>& fetch) {
  if (!fetch.empty()) return false;
  const std::vector<int> uses = use_counts(graph);
  return std::ranges::all_of(shapes, [&](const auto& given) {
    return std::ranges::any_of(graph.inputs, [&](ValueId id) {
      const Value& input = graph[id];
      if (input.name != given.first || !input.type.shape) return false;
      const bool is_read = uses[static_cast<size_t>(id.index)] > 0;
      return is_read ? input.type.shape == shape_from(given.second)
                     : permits(*input.type.shape, given.second);
    });
  });
}

std::string location_of(const UnequalDims::Place& place) {
  return "dimension " + std::to_string(place.axis) + " of input '" + place.input + "'";
}

// At most `most` of the places, and how many more there are.
std::string list_places(const std::vector<UnequalDims::Place>& places, size_t most) {
  std::string list;
  for (size_t index = 0; index < std::min(places.size(), most); ++index) {
    list += (index == 0 ? "" : ", ") + location_of(places[index]);
  }
  if (places.size() > most) list += " and " + std::to_string(places.size() - most) + " more";
  return list;
}

constexpr size_t kMaxShownPlaces = 4;

// The sizes, with the places of each, for an error.
std::string contradiction_text(const UnequalDims& dims) {
  constexpr size_t kMaxShownSizes = 8;
  std::map<int64_t, std::vector<UnequalDims::Place>> by_size;
  for (const UnequalDims::Place& place : dims.places) by_size[place.size].push_back(place);
  std::string sizes;
  size_t shown = 0;
  for (const auto& [size, places] : by_size) {
    if (shown++ == kMaxShownSizes) break;
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(size) + " (" +
             list_places(places, kMaxShownPlaces) + ")";
  }
  return "the model calls several dimensions '" + dims.name + "', but they are " + sizes +
         (by_size.size() > kMaxShownSizes ? ", ..." : "");
}

// The text is equal for all shapes, so the log passes it on once.
std::string warning_text(const Graph& graph, const std::string& name) {
  const std::vector<int> uses = use_counts(graph);
  std::vector<UnequalDims::Place> places;
  for (const ValueId id : graph.inputs) {
    const std::optional<Shape>& shape = graph[id].type.shape;
    if (!shape || uses[static_cast<size_t>(id.index)] == 0) continue;
    for (size_t axis = 0; axis < shape->size(); ++axis) {
      if (name_of((*shape)[axis]) == name) places.push_back({graph[id].name, axis, 0});
    }
  }
  return "the model gives one name, '" + name + "', to dimensions that are not always equal (" +
         list_places(places, kMaxShownPlaces) + "); each counts for itself";
}

// The inference of a graph with the shapes that `unequal` is about. If these dimensions cannot
// differ, the error says that the model gives them one name.
Graph infer_bound(const Graph& graph, const std::vector<UnequalDims>& unequal,
                  const ops::Registry& registry, const Log& log) {
  constexpr size_t kMaxShown = 3;
  try {
    return infer_types(graph, registry, log);
  } catch (const Error& error) {
    if (unequal.empty() || error.kind() != ErrorKind::InvalidModel) throw;
    std::string message = error.message();
    for (size_t index = 0; index < std::min(unequal.size(), kMaxShown); ++index) {
      message += "; " + contradiction_text(unequal[index]);
    }
    throw Error(ErrorKind::InvalidArgument, error.where(), message);
  }
}

// Whether the passes changed nothing, and all values have the same types and elements as before.
// Graphs with bodies count as changed, because types within bodies are not compared.
bool is_same(const Graph& before, const Rewritten& rewritten) {
  const Graph& after = rewritten.graph;
  const auto is_same_value = [](const Value& left, const Value& right) {
    return left.name == right.name && left.type == right.type && left.elements == right.elements;
  };
  return std::ranges::all_of(rewritten.reports,
                             [](const PassReport& pass) { return pass.changes.empty(); }) &&
         before.nodes.size() == after.nodes.size() && before.kept == after.kept &&
         std::ranges::equal(before.values, after.values, is_same_value) &&
         std::ranges::all_of(after.nodes, [](const Node& node) { return node.bodies.empty(); });
}

// Declares that the output of each pair has the shape of its input. Pairs of other names are
// reported when the plan is bound.
void declare_state(Graph& graph, const std::vector<StatePair>& pairs) {
  for (const StatePair& pair : pairs) {
    const auto named = [&](const std::vector<ValueId>& ids, const std::string& name) {
      const auto found =
          std::ranges::find_if(ids, [&](ValueId id) { return graph[id].name == name; });
      return found == ids.end() ? ValueId() : *found;
    };
    const ValueId input = named(graph.inputs, pair.input);
    const ValueId output = named(graph.outputs, pair.output);
    if (input.is_none() || output.is_none() || input == output) continue;
    if (!graph[output].type.is_tensor()) continue;
    graph[output].type.shape = graph[input].type.shape;
  }
}

}  // namespace

LoadedModel load_model(const std::filesystem::path& file, const CompileOptions& options,
                       const ops::Registry& registry, ThreadPool& pool, const Log& log) {
  return load_model(import_onnx(file, registry, log,
                                {.copies_weights = options.copies_weights,
                                 .takes_leases = options.takes_leases,
                                 .free_inputs = options.free_inputs}),
                    options, registry, pool, log);
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

  Rewritten rewritten = rewrite(std::move(typed), registry, pool);
  model.graph = std::move(rewritten.graph);
  model.passes = std::move(rewritten.reports);
  return model;
}

BoundGraph bind_graph(const LoadedModel& model, const InputShapes& shapes,
                      const std::vector<std::string>& fetch, const ops::Registry& registry,
                      ThreadPool& pool, const Log& log, const std::vector<StatePair>& state_pairs) {
  const bool is_request_unchanged =
      state_pairs.empty() && requests_nothing_new(model.graph, shapes, fetch);
  if (model.binds_unchanged && is_request_unchanged) return {model.graph, true};
  Graph graph = specialise(model.graph, shapes);
  declare_state(graph, state_pairs);
  graph.kept = values_named(model, fetch);
  const std::vector<UnequalDims> unequal = find_unequal_dims(model.graph, shapes);
  Rewritten rewritten = rewrite(infer_bound(graph, unequal, registry, log), registry, pool);
  for (const UnequalDims& dims : unequal) log.warn(warning_text(model.graph, dims.name));
  const bool is_unchanged = is_request_unchanged && is_same(model.graph, rewritten);
  return {std::move(rewritten.graph), is_unchanged};
}

}  // namespace tessera
