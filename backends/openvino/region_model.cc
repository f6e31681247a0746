#include "regions.h"

#include <algorithm>
#include <map>

namespace tessera::openvino {

namespace {

// Two fused multiply-adds of 16 lanes per cycle at 4 GHz, and what one core reads from memory.
constexpr double kFlopsPerSecond = 2 * 16 * 2 * 4e9;
constexpr double kBytesPerSecond = 20e9;
// Winograd's F(4x4, 3x3) needs 36 multiplications instead of 144.
constexpr double kFastConvolution = 4;

constexpr double kBuildSeconds = 0.1;
constexpr double kBuildSecondsForNode = 5e-3;
constexpr double kBuildBytesPerSecond = 200e6;

template <class Visit>
void for_each_input(const plugin::Node& node, const Visit& visit) {
  for (size_t index = 0; index < node.input_count(); ++index) {
    if (node.input(index).is_present()) visit(node.input(index));
  }
}

template <class Visit>
void for_each_output(const plugin::Node& node, const Visit& visit) {
  for (size_t index = 0; index < node.output_count(); ++index) {
    if (node.output(index).is_present()) visit(node.output(index));
  }
}

void add_new(std::vector<int32_t>& list, int32_t item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

bool is_weight(const plugin::Value& value) {
  return value.is_constant() && value.type().data_type == TESSERA_FLOAT32 &&
         value.type().dense_bytes() > TESSERA_SMALL_CONSTANT_BYTES;
}

bool is_inside(const Region& region, int32_t node) {
  return std::binary_search(region.begin(), region.end(), node);
}

double matmul_flops(const plugin::Node& node) {
  const auto flops = static_cast<double>(std::max<int64_t>(node.flops(), 0));
  if (node.op() == "Conv" || node.op() == "ConvTranspose") return flops / kFastConvolution;
  return node.op() == "MatMul" || node.op() == "Gemm" ? flops : 0;
}

// The peak of the bytes of values inside, if the region runs node by node.
int64_t max_inner_bytes(const plugin::Graph& graph, const Region& region) {
  std::map<int32_t, int> reads;  // still to come, by value
  for (const int32_t id : region) {
    for_each_input(graph.node(id), [&](const plugin::Value& value) {
      if (is_inside(region, value.producer())) ++reads[value.id()];
    });
  }
  int64_t live = 0;
  int64_t peak = 0;
  for (const int32_t id : region) {
    const plugin::Node node = graph.node(id);
    for_each_output(node, [&](const plugin::Value& value) {
      if (reads.contains(value.id())) live += value.type().dense_bytes();
    });
    peak = std::max(peak, live);
    for_each_input(node, [&](const plugin::Value& value) {
      const auto found = reads.find(value.id());
      if (found != reads.end() && --found->second == 0) live -= value.type().dense_bytes();
    });
  }
  return peak;
}

std::vector<plugin::Type> types_of(const plugin::Graph& graph, const std::vector<int32_t>& values) {
  std::vector<plugin::Type> types;
  types.reserve(values.size());
  for (const int32_t value : values) types.push_back(graph.value(value).type());
  return types;
}

}  // namespace

RegionBoundary boundary_of(const plugin::Graph& graph, const Region& region) {
  RegionBoundary boundary;
  for (const int32_t id : region) {
    const plugin::Node node = graph.node(id);
    for_each_input(node, [&](const plugin::Value& value) {
      if (is_inside(region, value.producer())) return;
      if (!value.is_constant()) add_new(boundary.inputs, value.id());
      if (is_weight(value)) add_new(boundary.weights, value.id());
    });
    for_each_output(node, [&](const plugin::Value& value) {
      const auto readers = value.consumers();
      const bool is_read = std::any_of(readers.begin(), readers.end(),
                                       [&](int32_t reader) { return !is_inside(region, reader); });
      if (is_read || value.is_needed()) boundary.outputs.push_back(value.id());
    });
  }
  return boundary;
}

RegionWork work_of(const plugin::Graph& graph, const Region& region,
                   const RegionBoundary& boundary) {
  RegionWork work;
  for (const int32_t id : region) work.matmul_flops += matmul_flops(graph.node(id));
  for (const int32_t value : boundary.weights) {
    work.weight_bytes += graph.value(value).type().dense_bytes();
  }
  work.boundary_bytes = static_cast<double>(work.weight_bytes);
  for (const auto* values : {&boundary.inputs, &boundary.outputs}) {
    for (const int32_t value : *values) {
      work.boundary_bytes += static_cast<double>(graph.value(value).type().dense_bytes());
    }
  }
  work.inner_bytes = max_inner_bytes(graph, region);
  return work;
}

double optimistic_seconds(const RegionWork& work, int32_t threads) {
  const double used = std::max(threads, 1);
  return std::max(work.matmul_flops / kFlopsPerSecond, work.boundary_bytes / kBytesPerSecond) /
         used;
}

double build_seconds(const RegionWork& work, size_t node_count) {
  return kBuildSeconds + kBuildSecondsForNode * static_cast<double>(node_count) +
         static_cast<double>(work.weight_bytes) / kBuildBytesPerSecond;
}

RegionModel model_of(const plugin::Graph& graph, const Region& region,
                     const RegionBoundary& boundary) {
  return {.onnx = graph.open_group_as_onnx(region, boundary.weights),
          .inputs = types_of(graph, boundary.inputs),
          .weights = types_of(graph, boundary.weights),
          .outputs = types_of(graph, boundary.outputs)};
}

}  // namespace tessera::openvino
