#include "export/onnx/export.h"

#include <limits>
#include <map>

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

constexpr int64_t kMostBytes = std::numeric_limits<int32_t>::max();

int64_t constant_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Value& value : graph.values) bytes += value.constant.bytes();
  for (const Node& node : graph.nodes) {
    for (const Body& body : node.bodies) bytes += constant_bytes(body.graph);
  }
  return bytes;
}

void check_size(int64_t bytes) {
  if (bytes <= kMostBytes) return;
  throw Error(ErrorKind::Unsupported, "export",
              "expected at most 2 GiB (" + std::to_string(kMostBytes) +
                  " bytes), protobuf's limit, found " + std::to_string(bytes));
}

}  // namespace

std::string export_onnx(const Graph& graph, const ops::Registry& registry) {
  // Before anything is copied.
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

}  // namespace tessera
