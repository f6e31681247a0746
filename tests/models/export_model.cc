// Loads a model and writes it as ONNX again, for export_test.py:
//
//   export_model imported MODEL OUT     after import and type inference
//   export_model rewritten MODEL OUT    after all passes
//   export_model groups SIZE MODEL OUT  after all passes, in groups of SIZE nodes each, as
//                                       OUT_0.onnx, OUT_1.onnx, ...
//
// Exit code 1: the model cannot be exported; 3: it cannot be loaded.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/errors/log.h"
#include "base/threads/parallel.h"
#include "export/onnx/export.h"
#include "import/onnx/import.h"
#include "infer/infer.h"
#include "ops/registry.h"
#include "rewrite/pipeline.h"
#include "tessera/error.h"

namespace tessera {
namespace {

void write(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

void export_groups(const Graph& graph, int32_t size, const std::string& out,
                   const ops::Registry& registry) {
  const auto count = static_cast<int32_t>(graph.nodes.size());
  for (int32_t begin = 0; begin < count; begin += size) {
    std::vector<NodeId> nodes;
    for (int32_t node = begin; node < std::min(begin + size, count); ++node)
      nodes.push_back({node});
    write(out + "_" + std::to_string(begin / size) + ".onnx", export_group(graph, nodes, registry));
  }
}

std::optional<Graph> load(const std::filesystem::path& file, bool is_rewritten,
                          const ops::Registry& registry) {
  const Log silent([](const std::string&) {});
  try {
    Graph typed = infer_types(import_onnx(file, registry, silent).graph, registry, silent);
    if (!is_rewritten) return typed;
    ThreadPool pool(1);
    return rewrite(std::move(typed), registry, pool).graph;
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return std::nullopt;
  }
}

int run(const std::vector<std::string>& arguments) {
  const bool is_in_groups = arguments.size() == 4 && arguments[0] == "groups";
  if (!is_in_groups && arguments.size() != 3) {
    std::cerr << "usage: export_model imported|rewritten|groups [SIZE] MODEL OUT\n";
    return 2;
  }
  const ops::Registry registry = ops::make_registry();
  const std::string& file = arguments[arguments.size() - 2];
  const std::optional<Graph> graph = load(file, arguments[0] != "imported", registry);
  if (!graph) return 3;
  try {
    if (is_in_groups) {
      export_groups(*graph, std::stoi(arguments[1]), arguments.back(), registry);
    } else {
      write(arguments.back(), export_onnx(*graph, registry));
    }
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace tessera

int main(int count, char** arguments) {
  return tessera::run(std::vector<std::string>(arguments + 1, arguments + count));
}
