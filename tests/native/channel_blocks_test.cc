// Elementwise kernels that were built for whole blocks of channels, and run for other numbers of
// channels: row-major operands then end within a block.

#include <memory>
#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/graph_view.h"
#include "backend/host.h"
#include "candidate_check.h"
#include "infer/infer.h"
#include "ops/evaluate.h"

namespace tessera {
namespace {

using Dims = std::vector<int64_t>;

// Padding of the sum is zero, that of its exponential would not be.
Graph exponential_of_sum(const Dims& x, const Dims& y) {
  GraphBuilder builder(all_ops(), 17);
  builder.input("x", float_type(shape_from(x))).input("y", float_type(shape_from(y)));
  builder.node("s", "Add", {"x", "y"}).node("z", "Exp", {"s"}).output("z");
  return infer_types(builder.graph(), all_ops(), Log());
}

// All values of `graph`.
std::vector<Tensor> computed(const Graph& graph, ThreadPool& pool) {
  Dice dice(7);
  std::vector<Tensor> values(graph.values.size());
  const auto at = [&](ValueId id) -> Tensor& { return values[static_cast<size_t>(id.index)]; };
  for (const ValueId id : graph.inputs) at(id) = dice.tensor(dims_from(*graph[id].type.shape));
  for (const Node& node : graph.nodes) {
    std::vector<Tensor> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(at(id));
    at(node.outputs[0]) = evaluate(all_ops().of(node), node, inputs, pool)[0];
  }
  return values;
}

struct Case {
  const char* name;
  Dims built_x;
  Dims built_y;
  Dims x;
  Dims y;
};

const Case kCases[] = {
    {"one element for each channel", {2, 16, 5}, {16, 1}, {3, 13, 4}, {13, 1}},
    {"more than one block", {1, 32, 3, 2}, {32, 1, 1}, {1, 21, 2, 7}, {21, 1, 1}},
    {"an image", {2, 16, 3, 4}, {16, 3, 4}, {2, 11, 4, 3}, {11, 4, 3}},
    {"one element for each row", {2, 16, 3, 4}, {16, 3, 1}, {3, 7, 2, 5}, {7, 2, 1}},
    {"one element for each column", {2, 16, 3, 4}, {16, 1, 4}, {2, 9, 5, 3}, {9, 1, 3}},
    {"single pixels", {2, 16, 1, 1}, {16, 1, 1}, {5, 10, 1, 1}, {10, 1, 1}},
    {"large images", {1, 16, 40, 40}, {16, 40, 40}, {1, 19, 50, 41}, {19, 50, 41}},
    {"three dimensions", {2, 16, 2, 3, 4}, {16, 2, 1, 4}, {3, 18, 3, 2, 5}, {18, 3, 1, 5}},
    {"whole blocks again", {2, 16, 3, 4}, {16, 1, 1}, {2, 48, 2, 2}, {48, 1, 1}},
};

TEST(NativeChannelBlocks, OperandsMayEndWithinABlock) {
  const std::vector<std::shared_ptr<const Plugin>> plugins = {Plugin::open(
      std::string(TESSERA_PLUGIN_FOLDER) + "/backend_native.so", std::make_shared<HostServices>())};
  const LayoutTable layouts(plugins);
  ThreadPool pool(2);
  for (const Case& row : kCases) {
    const Graph built = exponential_of_sum(row.built_x, row.built_y);
    const Graph graph = exponential_of_sum(row.x, row.y);
    const std::vector<Tensor> values = computed(graph, pool);
    const Offers offers = collect_offers(tessera_graph(built, all_ops()), plugins, layouts, {});
    // The sum, its exponential, and both in one pass, in four layouts.
    EXPECT_GE(offers.candidates.size(), 12U) << row.name;
    for (const Candidate& candidate : offers.candidates) {
      EXPECT_EQ(explain_wrong(graph, values, layouts, candidate, pool, {}), "")
          << row.name << ", " << layouts.name(candidate.outputs[0].layout);
    }
  }
}

}  // namespace
}  // namespace tessera
