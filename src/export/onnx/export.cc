#include "export/onnx/export.h"

#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>

#include "base/check.h"
#include "base/log.h"
#include "export/onnx/explain_difference.h"
#include "export/onnx/file_names.h"
#include "export/onnx/model_writer.h"
#include "export/onnx/opsets.h"
#include "graph/extract_group.h"
#include "import/onnx/import.h"
#include "tessera/error.h"

namespace tessera {
namespace {

constexpr int64_t kMaxBytes = std::numeric_limits<int32_t>::max();

int64_t constant_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Value& value : graph.values) bytes += value.constant.bytes();
  for (const Node& node : graph.nodes) {
    for (const Body& body : node.bodies) bytes += constant_bytes(body.graph);
  }
  return bytes;
}

void check_size(int64_t bytes) {
  if (bytes <= kMaxBytes) return;
  throw Error(ErrorKind::Unsupported, "export",
              "expected at most 2 GiB (" + std::to_string(kMaxBytes) +
                  " bytes), protobuf's limit, found " + std::to_string(bytes));
}

}  // namespace

std::string export_onnx(const Graph& graph, const ops::Registry& registry) {
  // Checked before anything is copied.
  check_size(constant_bytes(graph));
  const std::map<std::string, int> opsets = onnx_export::choose_opsets(graph, registry);
  const Graph named = onnx_export::with_file_names(graph, registry, opsets.at(""));
  std::string bytes;
  {
    const onnx::ModelProto model = onnx_export::write_model(named, opsets);
    check_size(static_cast<int64_t>(model.ByteSizeLong()));
    bytes = model.SerializeAsString();
  }
  const Log silent([](const std::string&) {});
  const ImportedModel read = import_onnx_bytes(bytes, "", registry, silent);
  const std::string difference = onnx_export::explain_difference(named, read.graph);
  if (!difference.empty()) {
    throw Error(ErrorKind::Internal, "export", "what was written reads otherwise: " + difference);
  }
  return bytes;
}

std::string export_group(const Graph& graph, std::span<const NodeId> nodes,
                         const ops::Registry& registry) {
  return export_onnx(extract_group(graph, nodes), registry);
}

std::string export_open_group(const Graph& graph, std::span<const NodeId> nodes,
                              std::span<const ValueId> constants, const ops::Registry& registry) {
  Graph group = extract_group(graph, nodes);
  std::unordered_map<std::string_view, ValueId> by_name;
  for (size_t index = 0; index < group.values.size(); ++index) {
    by_name.emplace(group.values[index].name, ValueId{static_cast<int32_t>(index)});
  }
  for (const ValueId constant : constants) {
    const auto found = by_name.find(graph[constant].name);
    if (found == by_name.end() || !group[found->second].is_constant()) {
      throw Error(
          ErrorKind::InvalidArgument, "group",
          "expected constants that its nodes read, found value '" + graph[constant].name + "'");
    }
    Value& value = group[found->second];
    value.constant = {};
    value.sparse_constant = nullptr;
    value.digest.reset();
    value.elements.reset();
    group.inputs.push_back(found->second);
  }
  return export_onnx(group, registry);
}

}  // namespace tessera
