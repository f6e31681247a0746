// Copies whose parameters (starts, shapes, pads) are inputs of the graph, as in plans for families
// of shapes: the types of the outputs are known, the parameters only in a run.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "any_tensor.h"
#include "backend/candidates.h"
#include "backend/graph_view.h"
#include "backend/host.h"
#include "infer/infer.h"
#include "ops/evaluate.h"
#include "other_sizes.h"

namespace tessera {
namespace {

// A graph with the types of all values, and its values.
struct KnownGraph {
  Graph graph;
  std::vector<Tensor> values;
};

class NativeRunParameters : public ::testing::Test {
 protected:
  KnownGraph known(const RandomGraph& made) {
    KnownGraph result{infer_types(made.builder.graph(), all_ops(), Log()), {}};
    Graph& graph = result.graph;
    std::vector<Tensor>& values = result.values;
    for (const Value& value : graph.values) {
      const auto fed = made.fed.find(value.name);
      values.push_back(fed != made.fed.end() ? fed->second : value.constant);
    }
    for (const Node& node : graph.nodes) {
      std::vector<Tensor> inputs;
      for (const ValueId input : node.inputs) {
        inputs.push_back(input.is_none() ? Tensor() : values[static_cast<size_t>(input.index)]);
      }
      const std::vector<Tensor> outputs = ops::evaluate(all_ops().of(node), node, inputs, pool_);
      for (size_t index = 0; index < outputs.size(); ++index) {
        const ValueId output = node.outputs[index];
        values[static_cast<size_t>(output.index)] = outputs[index];
        graph[output].type = Type::tensor(outputs[index].type(), shape_from(outputs[index].dims()));
      }
    }
    return result;
  }

  std::vector<Candidate> candidates_for(const Graph& graph) const {
    OfferOptions options;
    options.threads = pool_.threads();
    Offers offers = collect_offers(tessera_graph(graph, all_ops()), plugins_, layouts_, options);
    std::erase_if(offers.candidates,
                  [](const Candidate& candidate) { return !candidate.has_kernel(); });
    return std::move(offers.candidates);
  }

  std::string explain(const KnownGraph& run, const Candidate& candidate,
                      KernelSizes sizes = KernelSizes::AsBuilt) {
    return explain_wrong(run.graph, run.values, layouts_, candidate, pool_, {}, sizes);
  }

  // Runs each kernel, also if it was built for the sizes and parameters of `other`.
  void expect_right(const RandomGraph& made, const RandomGraph& other) {
    const KnownGraph run = known(made);
    const KnownGraph built = known(other);
    const std::vector<Candidate> candidates = candidates_for(run.graph);
    const std::vector<Candidate> others = candidates_for(built.graph);
    EXPECT_FALSE(candidates.empty());
    for (const Candidate& candidate : candidates) {
      EXPECT_EQ(explain(run, candidate), "");
      const auto resized = with_kernel_of(others, built.graph, candidate, run.graph);
      ASSERT_TRUE(resized.has_value()) << candidate.algorithm;
      EXPECT_EQ(explain(run, *resized, KernelSizes::Other), "");
    }
  }

  Tensor tensor(std::vector<int64_t> dims) { return dice_.tensor(std::move(dims)); }

  Dice dice_ = Dice(1);
  ThreadPool pool_ = ThreadPool(2);
  std::vector<std::shared_ptr<const Plugin>> plugins_ = {Plugin::open(
      std::string(TESSERA_PLUGIN_FOLDER) + "/backend_native.so", std::make_shared<HostServices>())};
  LayoutTable layouts_ = LayoutTable(plugins_);
};

// From `first` of the last row on upwards, and from column `first` on.
RandomGraph slice(const Tensor& x, int64_t first, DataType type) {
  const int64_t rows = x.dims()[0];
  const int64_t columns = x.dims()[1];
  RandomGraph made(all_ops(), 13);
  made.input("x", x).input("starts", integer_list({-first, first}, type));
  made.input("ends", integer_list({-rows - 1, columns - 1}, type));
  made.constant("axes", integer_list({0, 1}, type));
  made.constant("steps", integer_list({-2, 1}, type));
  made.node("y", "Slice", {"x", "starts", "ends", "axes", "steps"});
  return made.ending_in("y");
}

TEST_F(NativeRunParameters, Slice) {
  for (const DataType type : {DataType::Int32, DataType::Int64}) {
    expect_right(slice(tensor({7, 10}), 1, type), slice(tensor({12, 20}), 3, type));
    expect_right(slice(tensor({12, 20, 5, 3}), 3, type), slice(tensor({7, 10, 5, 3}), 1, type));
  }
}

TEST_F(NativeRunParameters, SliceReadsNothingOutside) {
  KnownGraph known_graph = known(slice(tensor({7, 10}), 1, DataType::Int64));
  const std::vector<Candidate> candidates = candidates_for(known_graph.graph);
  ASSERT_FALSE(candidates.empty());
  const ValueId starts = find_value(known_graph.graph, "starts");
  for (const int64_t start : {4, 10, 99}) {
    known_graph.values[static_cast<size_t>(starts.index)] = integer_list({-1, start});
    EXPECT_THAT(explain(known_graph, candidates.front()), HasSubstr("expected a range in an axis"));
  }
}

// A node that reads `x` and the list `parameter`.
RandomGraph with_list(const std::string& op, const Tensor& x, const std::vector<int64_t>& parameter,
                      Attributes attributes = {}) {
  RandomGraph made(all_ops(), 18);
  made.input("x", x).input("parameter", integer_list(parameter));
  made.node("y", op, {"x", "parameter"}, std::move(attributes));
  return made.ending_in("y");
}

TEST_F(NativeRunParameters, ShapesOfOutputs) {
  expect_right(with_list("Expand", tensor({7, 1}), {7, 10}),
               with_list("Expand", tensor({4, 1}), {4, 19}));
  expect_right(with_list("Tile", tensor({3, 5}), {2, 3}),
               with_list("Tile", tensor({4, 9}), {2, 2}));
  expect_right(with_list("Reshape", tensor({3, 10}), {5, 6}),
               with_list("Reshape", tensor({7, 6}), {-1, 14}));
}

RandomGraph split(const Tensor& x, const std::vector<int64_t>& sizes) {
  RandomGraph made(all_ops(), 18);
  made.input("x", x).input("sizes", integer_list(sizes));
  made.node("split", "Split", {"x", "sizes"}, {"y", "z"}, attributes_of({{"axis", int64_t{1}}}));
  return made.ending_in("y", "z");
}

TEST_F(NativeRunParameters, Split) {
  expect_right(split(tensor({3, 10}), {4, 6}), split(tensor({5, 9}), {6, 3}));
  expect_right(split(tensor({5, 19, 3}), {16, 3}), split(tensor({7, 24, 3}), {21, 3}));
}

TEST_F(NativeRunParameters, Pad) {
  for (const std::string mode : {"constant", "edge", "reflect"}) {
    const Attributes attributes = attributes_of({{"mode", mode}});
    expect_right(with_list("Pad", tensor({5, 6}), {1, 2, 3, -1}, attributes),
                 with_list("Pad", tensor({8, 11}), {3, 1, 2, -2}, attributes));
  }
}

RandomGraph range(int64_t start, int64_t limit, int64_t delta) {
  RandomGraph made(all_ops(), 18);
  const auto scalar = [](int64_t number) {
    Tensor tensor(DataType::Int64, {});
    tensor.mutable_as<int64_t>()[0] = number;
    return tensor;
  };
  made.input("start", scalar(start)).input("limit", scalar(limit)).input("delta", scalar(delta));
  made.node("y", "Range", {"start", "limit", "delta"});
  return made.ending_in("y");
}

RandomGraph zeros(const std::vector<int64_t>& shape) {
  RandomGraph made(all_ops(), 18);
  made.input("shape", integer_list(shape));
  made.node("y", "ConstantOfShape", {"shape"});
  return made.ending_in("y");
}

TEST_F(NativeRunParameters, Generators) {
  expect_right(range(10, 1, -2), range(0, 9, 1));
  expect_right(zeros({3, 5}), zeros({40, 7}));
}

}  // namespace
}  // namespace tessera
