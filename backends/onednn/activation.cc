#include "activation.h"

#include <algorithm>

namespace tessera::onednn {

bool is_inner(const plugin::Value& value, const std::vector<int32_t>& nodes) {
  if (value.is_needed()) return false;
  return std::all_of(value.consumers().begin(), value.consumers().end(), [&](int32_t node) {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  });
}

std::vector<Activation> activations_after(const plugin::Graph& graph, const plugin::Value& value) {
  std::vector<Activation> found;
  if (value.is_needed() || value.consumers().size() != 1) return found;
  const plugin::Node node = graph.node(value.consumers().front());
  if (node.domain().empty() && node.op() == "Relu") {
    found.push_back({dnnl::algorithm::eltwise_relu, 0, 0, {node.id()}, node.output(0).id()});
  }
  return found;
}

void append_activation(dnnl::post_ops& operations, const Activation& activation) {
  operations.append_eltwise(activation.algorithm, activation.alpha, activation.beta);
}

}  // namespace tessera::onednn
