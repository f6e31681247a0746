// The stages in order: from a file to a loaded model, and from that to a graph with bound shapes.
// Read compile.cc first.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/errors/log.h"
#include "base/threads/parallel.h"
#include "graph/graph.h"
#include "import/onnx/import.h"
#include "ops/registry.h"
#include "rewrite/pipeline.h"
#include "tessera/bind_options.h"

namespace tessera {

struct CompileOptions {
  bool is_strict = false;         // see InferOptions
  bool keeps_all_values = false;  // no pass removes a value of the model's file
  bool copies_weights = false;    // see ImportOptions
  bool takes_leases = false;      // see ImportOptions
  std::set<std::string> free_inputs = {};
};

// A loaded model: rewritten, with types as far as symbols allow.
struct LoadedModel {
  ImportedModel source;  // its graph was moved to `graph`
  Graph graph;
  std::vector<PassReport> passes;
  std::vector<std::string> made_values;  // names of the outputs of the file's nodes, in order
  // A bind without new shapes or fetched values did not change `graph`, so later such binds reuse
  // it.
  bool binds_unchanged = false;
};

struct BoundGraph {
  Graph graph;
  bool is_unchanged = false;  // nothing new was requested, and `graph` equals that of the model
};

// import -> infer -> rewrite. Throws the errors of these stages.
LoadedModel load_model(const std::filesystem::path& file, const CompileOptions& options,
                       const ops::Registry& registry, ThreadPool& pool, const Log& log);
// Same as load_model() above, but the model is imported already.
LoadedModel load_model(ImportedModel source, const CompileOptions& options,
                       const ops::Registry& registry, ThreadPool& pool, const Log& log);

// specialise -> infer -> rewrite, for inputs of the given shapes, by name. The result's `kept` are
// the values named in `fetch`, in that order. Throws InvalidArgument if a name in `fetch` is not a
// value of the model, or if a pass removed that value. If `model.binds_unchanged` is set and
// nothing new is requested, no stage runs. If given sizes of dimensions with one name differ, `log`
// gets a warning; if a node needs them equal, throws InvalidArgument with all of them. The output
// of a state pair has the shape of its input where its node does not tell: of a cache with space,
// which a number that is known only in the run would decide.
BoundGraph bind_graph(const LoadedModel& model,
                      const std::map<std::string, std::vector<int64_t>>& shapes,
                      const std::vector<std::string>& fetch, const ops::Registry& registry,
                      ThreadPool& pool, const Log& log,
                      const std::vector<StatePair>& state_pairs = {});

}  // namespace tessera
