// The stages in order, from a file to something that runs. The file to read first is compile.cc.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/parallel.h"
#include "graph/graph.h"
#include "import/onnx/import.h"
#include "ops/registry.h"
#include "rewrite/pipeline.h"

namespace tessera {

struct CompileOptions {
  bool is_strict = false;         // see InferOptions
  bool keeps_all_values = false;  // no pass removes a value of the model's file
  bool copies_weights = false;    // see ImportOptions
  bool takes_leases = false;      // see ImportOptions
};

// What load() keeps of a model: typed as far as symbols allow, and rewritten.
struct LoadedModel {
  ImportedModel source;  // its graph has moved on to `graph`
  Graph graph;
  std::vector<PassReport> passes;
  std::vector<std::string> made_values;  // names of the values that the file's nodes make, in order
  // Binding without new shapes and values to fetch gives `graph` as it is, as it has before.
  bool binds_unchanged = false;
};

struct BoundGraph {
  Graph graph;
  bool is_unchanged = false;  // the model's, as it was asked for nothing new: it is settled
};

// import -> infer -> rewrite. Errors as those stages throw them.
LoadedModel load_model(const std::filesystem::path& file, const CompileOptions& options,
                       const ops::Registry& registry, ThreadPool& pool, const Log& log);
// The same stages from a model that has been imported already.
LoadedModel load_model(ImportedModel source, const CompileOptions& options,
                       const ops::Registry& registry, ThreadPool& pool, const Log& log);

// specialise -> infer -> rewrite, for inputs of the given shapes, by name. The result's `kept` are
// the values named in `fetch`, in that order. Throws InvalidArgument where a name in `fetch` is not
// a value of the model, or one that a pass removed. Where the model is settled and nothing new is
// asked for, no stage runs.
BoundGraph bind_graph(const LoadedModel& model,
                      const std::map<std::string, std::vector<int64_t>>& shapes,
                      const std::vector<std::string>& fetch, const ops::Registry& registry,
                      ThreadPool& pool, const Log& log);

}  // namespace tessera
