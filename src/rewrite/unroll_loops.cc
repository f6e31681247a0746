#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "infer/infer.h"
#include "ops/control_flow/bodies.h"
#include "rewrite/node_builder.h"
#include "rewrite/passes.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// Up to these, plans of the unrolled nodes were faster in all measurements
// (docs/decisions/0068-nested-graphs.md). More nodes take longer to bind.
constexpr int64_t kMaxIterations = 16;
constexpr int64_t kMaxUnrolledNodes = 64;

constexpr int kFirstScanWithoutBatch = 9;
constexpr size_t kLoopInputs = 2;  // the number of iterations and the condition

template <class T>
std::optional<T> known_element(const Graph& graph, ValueId id, DataType type) {
  const Tensor& constant = graph[id].constant;
  const bool is_known =
      constant.type() == type && constant.has_elements() && constant.elements() == 1;
  if (!is_known) return std::nullopt;
  return constant.as<T>()[0];
}

// The number of iterations if it is known; 0 if it is not.
int64_t iterations_of_loop(const Graph& graph, const Node& node) {
  // Omitted inputs at the end are not in the list.
  const auto input = [&](size_t index) {
    return index < node.inputs.size() ? node.inputs[index] : ValueId();
  };
  if (input(0).is_none()) return 0;
  const ValueId condition = input(1);
  if (!condition.is_none()) {
    const std::optional<uint8_t> holds = known_element<uint8_t>(graph, condition, DataType::Bool);
    if (holds.value_or(0) == 0 || !ops::goes_on_always(node.bodies[0].graph)) return 0;
  }
  return known_element<int64_t>(graph, input(0), DataType::Int64).value_or(0);
}

std::vector<int64_t> list_of(const Node& node, const std::string& attribute, size_t count) {
  const std::vector<int64_t>* given = node.attributes.find_ints(attribute);
  return given == nullptr ? std::vector<int64_t>(count, 0) : *given;
}

size_t scanned_by(const Node& node) {
  return static_cast<size_t>(node.attributes.get_int("num_scan_inputs"));
}

int64_t iterations_of_scan(const Graph& graph, const Node& node) {
  if (node.version < kFirstScanWithoutBatch) return 0;
  const std::optional<Shape>& shape = graph[node.inputs.back()].type.shape;
  if (!shape) return 0;
  int64_t axis = list_of(node, "scan_input_axes", scanned_by(node)).back();
  if (axis < 0) axis += static_cast<int64_t>(shape->size());
  const Dim& size = (*shape)[static_cast<size_t>(axis)];
  return size.is_known() ? size.value() : 0;
}

// Appends copies of the nodes of a Loop or a Scan.
class Unrolling {
 public:
  Unrolling(Graph graph, const PassContext& context)
      : graph_(std::move(graph)), context_(context), builder_(graph_, context.registry) {}

  Graph run() {
    for (Node& node : std::exchange(graph_.nodes, {})) {
      const bool is_loop = is_op(node, "Loop");
      const int64_t iterations = is_loop               ? iterations_of_loop(graph_, node)
                                 : is_op(node, "Scan") ? iterations_of_scan(graph_, node)
                                                       : 0;
      if (!may_unroll(node, iterations) || !unroll(node, is_loop, iterations)) {
        graph_.nodes.push_back(std::move(node));
        continue;
      }
      context_.changes.push_back(location_of(node) + " unrolled into " +
                                 std::to_string(iterations) +
                                 (iterations == 1 ? " iteration" : " iterations"));
    }
    return std::move(graph_);
  }

 private:
  bool may_unroll(const Node& node, int64_t iterations) const {
    if (iterations < 1 || iterations > kMaxIterations) return false;
    const std::vector<Node>& nodes = node.bodies[0].graph.nodes;
    if (iterations * static_cast<int64_t>(nodes.size()) > kMaxUnrolledNodes) return false;
    // Random nodes of one iteration go on where those of the last one ended.
    return std::ranges::all_of(nodes, [&](const Node& inner) {
      return inner.bodies.empty() && (context_.registry.of(inner).traits & ops::kRandom) == 0;
    });
  }

  // False if an iteration cannot be run: then the run reports the error.
  bool unroll(const Node& node, bool is_loop, int64_t iterations) {
    builder_.begin(node);
    begin_body(node.bodies[0].graph);
    try {
      if (is_loop) {
        unroll_loop(node, iterations);
      } else {
        unroll_scan(node, iterations);
      }
    } catch (const Error&) {
      return false;
    }
    builder_.commit();
    return true;
  }

  void unroll_loop(const Node& node, int64_t iterations) {
    const Graph& body = node.bodies[0].graph;
    const auto first = static_cast<ptrdiff_t>(std::min(node.inputs.size(), kLoopInputs));
    std::vector<ValueId> carried(node.inputs.begin() + first, node.inputs.end());
    std::vector<std::vector<ValueId>> collected(body.outputs.size() - 1 - carried.size());
    Tensor goes_on(DataType::Bool, dims_from(*body[body.inputs[1]].type.shape));
    goes_on.mutable_as<uint8_t>()[0] = 1;
    const ValueId condition = builder_.constant(std::move(goes_on));
    for (int64_t iteration = 0; iteration < iterations; ++iteration) {
      Tensor number(DataType::Int64, dims_from(*body[body.inputs[0]].type.shape));
      number.mutable_as<int64_t>()[0] = iteration;
      std::vector<ValueId> inputs = {builder_.constant(std::move(number)), condition};
      inputs.insert(inputs.end(), carried.begin(), carried.end());
      take_outputs(copy_body(body, inputs), 1, carried, collected);
    }
    for (size_t index = 0; index < carried.size(); ++index) builder_.give(index, carried[index]);
    for (size_t index = 0; index < collected.size(); ++index) {
      give_collected(carried.size() + index, std::move(collected[index]), 0);
    }
  }

  void unroll_scan(const Node& node, int64_t iterations) {
    const Graph& body = node.bodies[0].graph;
    const size_t scanned = scanned_by(node);
    const auto states = static_cast<ptrdiff_t>(node.inputs.size() - scanned);
    std::vector<ValueId> carried(node.inputs.begin(), node.inputs.begin() + states);
    std::vector<std::vector<ValueId>> collected(body.outputs.size() - carried.size());
    const std::vector<int64_t> axes = list_of(node, "scan_input_axes", scanned);
    const std::vector<int64_t> goes_back = list_of(node, "scan_input_directions", scanned);
    for (int64_t iteration = 0; iteration < iterations; ++iteration) {
      std::vector<ValueId> inputs = carried;
      for (size_t index = 0; index < scanned; ++index) {
        const int64_t at = goes_back[index] != 0 ? iterations - 1 - iteration : iteration;
        Attributes attributes;
        attributes.set("axis", axes[index]);
        inputs.push_back(builder_.add("Gather",
                                      {node.inputs[carried.size() + index],
                                       builder_.constant(Tensor::from<int64_t>(
                                           DataType::Int64, {}, std::vector<int64_t>{at}))},
                                      std::move(attributes)));
      }
      take_outputs(copy_body(body, inputs), 0, carried, collected);
    }
    for (size_t index = 0; index < carried.size(); ++index) builder_.give(index, carried[index]);
    const std::vector<int64_t> output_axes = list_of(node, "scan_output_axes", collected.size());
    const std::vector<int64_t> is_reversed =
        list_of(node, "scan_output_directions", collected.size());
    for (size_t index = 0; index < collected.size(); ++index) {
      if (is_reversed[index] != 0) std::ranges::reverse(collected[index]);
      give_collected(carried.size() + index, std::move(collected[index]), output_axes[index]);
    }
  }

  // The outputs of one iteration: from `first` on the carried values, then those that are
  // collected.
  static void take_outputs(const std::vector<ValueId>& outputs, size_t first,
                           std::vector<ValueId>& carried,
                           std::vector<std::vector<ValueId>>& collected) {
    for (size_t index = 0; index < carried.size(); ++index) carried[index] = outputs[first + index];
    for (size_t index = 0; index < collected.size(); ++index) {
      collected[index].push_back(outputs[first + carried.size() + index]);
    }
  }

  void give_collected(size_t output, std::vector<ValueId> elements, int64_t axis) {
    if (!builder_.has_output(output)) return;
    for (ValueId& element : elements) {
      element = builder_.add("Unsqueeze", {element, builder_.integers({axis})});
    }
    Attributes attributes;
    attributes.set("axis", axis);
    builder_.give(output, builder_.add("Concat", std::move(elements), std::move(attributes)));
  }

  // Captures and constants are the same in all iterations.
  void begin_body(const Graph& body) {
    shared_.assign(body.values.size(), ValueId{});
    for (const Capture& capture : body.captures) {
      shared_[static_cast<size_t>(capture.inner.index)] = capture.outer;
    }
    for (size_t index = 0; index < body.values.size(); ++index) {
      if (body.values[index].is_constant()) shared_[index] = builder_.copy(body.values[index]);
    }
  }

  // Appends the nodes of one iteration. Returns the values of the outputs.
  std::vector<ValueId> copy_body(const Graph& body, const std::vector<ValueId>& inputs) {
    std::vector<ValueId> outer = shared_;  // by value of the body
    const auto outer_of = [&](ValueId id) {
      return id.is_none() ? id : outer[static_cast<size_t>(id.index)];
    };
    for (size_t index = 0; index < inputs.size(); ++index) {
      outer[static_cast<size_t>(body.inputs[index].index)] = inputs[index];
    }
    for (const Node& node : body.nodes) {
      std::vector<ValueId> read;
      std::ranges::transform(node.inputs, std::back_inserter(read), outer_of);
      const std::vector<ValueId> made = builder_.copy(node, std::move(read));
      for (size_t index = 0; index < made.size(); ++index) {
        if (node.outputs[index].is_none()) continue;
        outer[static_cast<size_t>(node.outputs[index].index)] = made[index];
      }
    }
    std::vector<ValueId> outputs;
    std::ranges::transform(body.outputs, std::back_inserter(outputs), outer_of);
    return outputs;
  }

  Graph graph_;
  const PassContext& context_;
  NodeBuilder builder_;
  std::vector<ValueId> shared_;  // by value of the body; none() for those of one iteration
};

}  // namespace

Graph unroll_loops(Graph graph, const PassContext& context) {
  const bool has_loops = std::ranges::any_of(graph.nodes, [](const Node& node) {
    return !node.is_removed && (is_op(node, "Loop") || is_op(node, "Scan"));
  });
  if (!has_loops) return graph;
  std::erase_if(graph.nodes, [](const Node& node) { return node.is_removed; });
  const size_t changes = context.changes.size();
  graph = Unrolling(std::move(graph), context).run();
  if (context.changes.size() == changes) return graph;
  // The numbers of the iterations are constants now.
  const Log silent([](const std::string&) {});
  return fold_constants(infer_types(graph, context.registry, silent), context);
}

}  // namespace tessera
