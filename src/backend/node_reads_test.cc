#include "backend/node_reads.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/candidates.h"
#include "backend/test_plugins.h"
#include "base/tensor/tensors_test.h"
#include "graph/graph.h"
#include "infer/infer.h"
#include "ops/graph_test.h"

namespace tessera {
namespace {

using testing_plugins::open_made;
using testing_plugins::open_mirror;
using testing_plugins::Proposals;

using Given = std::vector<std::pair<std::string, Attribute>>;
using Ask = std::function<void(const plugin::Graph& graph, const plugin::Node& node)>;

// One node named "n" on inputs named "x", "x1", ..., of which those after the first are constants.
struct GivenNode {
  std::string op;
  Given attributes;
  std::vector<Tensor> constants = {};
  Shape shape = {1, 4, 4, 4};
  int opset = 28;
};

Tensor number(float value) { return floats({}, {value}); }

class ExplainUnread : public testing::Test {
 protected:
  Graph graph_of(const GivenNode& given) {
    Attributes attributes;
    for (const auto& [name, value] : given.attributes) attributes.set(name, value);
    GraphBuilder builder(all_ops(), given.opset);
    builder.input("x", float_type(given.shape));
    std::vector<std::string> inputs = {"x"};
    for (const Tensor& constant : given.constants) {
      inputs.push_back("x" + std::to_string(inputs.size()));
      builder.constant(inputs.back(), constant);
    }
    builder.node("n", given.op, inputs, {"y"}, attributes).output("y");
    return infer_types(builder.graph(), all_ops(), Log([](const std::string&) {}));
  }

  // Why the host refuses a plug-in that calls `ask` and then offers a kernel for input 0 and output
  // 0 of the node; "" if it accepts the offer.
  std::string refusal_of(const GivenNode& given, const Ask& ask) {
    const Graph graph = graph_of(given);
    const tessera_graph view(graph, all_ops());
    return refusal_of(view, ask);
  }

  static std::string refusal_of(const tessera_graph& view, const Ask& ask) {
    const std::vector plugins = {open_offering(ask)};
    const LayoutTable table(plugins);
    const Offers offers = collect_offers(view, plugins, table, {});
    EXPECT_EQ(offers.candidates.empty(), !offers.refusals.empty());
    return offers.refusals.empty() ? "" : offers.refusals[0].reason;
  }

  static std::shared_ptr<const Plugin> open_offering(const Ask& ask) {
    return open_mirror([ask](const plugin::Graph& seen, Proposals& proposals) {
      const plugin::Node node = seen.node(0);
      ask(seen, node);
      proposals.add(testing_plugins::relu_candidate(node, TESSERA_LAYOUT_DEFAULT));
    });
  }
};

const Ask kNothing = [](const plugin::Graph&, const plugin::Node&) {};

Ask reading(const char* attribute) {
  return [attribute](const plugin::Graph&, const plugin::Node& node) {
    node.attributes().has(attribute);
  };
}

GivenNode space_to_depth(const char* mode) {
  return {"SpaceToDepth", {{"blocksize", int64_t{2}}, {"mode", std::string(mode)}}};
}

TEST_F(ExplainUnread, RefusesWhoIgnoresAnAttribute) {
  using Ints = std::vector<int64_t>;
  const std::pair<GivenNode, const char*> cases[] = {
      {space_to_depth("CRD"), "mode"},
      {{"DepthToSpace", {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}}}, "mode"},
      {{"Gelu", {{"approximate", std::string("tanh")}}}, "approximate"},
      {{"LeakyRelu", {{"alpha", 0.5F}}}, "alpha"},
      {{"Softmax", {{"axis", int64_t{0}}}}, "axis"},
      {{"Transpose", {{"perm", Ints{1, 0, 3, 2}}}}, "perm"},
      {{"ArgMax", {{"select_last_index", int64_t{1}}}}, "select_last_index"},
      {{"Clip", {{"max", 1.0F}}, {}, {4}, 10}, "max"},
  };
  for (const auto& [given, attribute] : cases) {
    EXPECT_THAT(refusal_of(given, kNothing),
                HasSubstr(std::string("is not legal: it ignores attribute '") + attribute +
                          "' of node 'n'"))
        << given.op;
    EXPECT_EQ(refusal_of(given, reading(attribute)), "") << given.op;
  }
}

TEST_F(ExplainUnread, AcceptsWhoIgnoresWhatChangesNothing) {
  EXPECT_EQ(refusal_of(space_to_depth("DCR"), kNothing), "");
  EXPECT_EQ(refusal_of({"ReduceMax", {{"keepdims", int64_t{0}}}}, kNothing), "");
  EXPECT_EQ(refusal_of({"Flatten", {{"axis", int64_t{2}}}}, kNothing), "");
  EXPECT_EQ(refusal_of({"LayerNormalization", {}, {floats({4}, {1, 1, 1, 1})}}, kNothing), "");
  EXPECT_EQ(refusal_of({"Dropout", {{"seed", int64_t{5}}}}, kNothing), "");
}

TEST_F(ExplainUnread, RefusesWhoIgnoresAnOptionalConstant) {
  const GivenNode clip = {"Clip", {}, {number(0), number(6)}};
  EXPECT_THAT(refusal_of(clip, kNothing), HasSubstr("it ignores input 'min' of node 'n'"));
  const auto look_at = [](size_t count) {
    return [count](const plugin::Graph&, const plugin::Node& node) {
      for (size_t index = 1; index <= count; ++index) node.input(index);
    };
  };
  EXPECT_THAT(refusal_of(clip, look_at(1)), HasSubstr("it ignores input 'max' of node 'n'"));
  EXPECT_EQ(refusal_of(clip, look_at(2)), "");
}

TEST_F(ExplainUnread, WhatTheHostPassesOnOrComputesIsRead) {
  const GivenNode tanh = {"Gelu", {{"approximate", std::string("tanh")}}};
  const std::vector<int32_t> first = {0};
  const Ask exports = [&](const plugin::Graph& graph, const plugin::Node&) {
    graph.group_as_onnx(first);
  };
  const Ask takes_reference = [](const plugin::Graph& graph, const plugin::Node& node) {
    tessera_kernel kernel = {};
    kernel.struct_size = sizeof(kernel);
    tessera_error error = {};
    error.struct_size = sizeof(error);
    ASSERT_EQ(graph.host()->reference_kernel(graph.handle(), node.id(), &kernel, &error),
              TESSERA_OK);
    kernel.release(kernel.self);
  };
  const auto fuse = [](const plugin::Graph& graph, const plugin::Node& node) {
    tessera_error error = {};
    error.struct_size = sizeof(error);
    const int32_t id = node.id();
    return graph.host()->fuse_nodes(
        graph.handle(), &id, 1, TESSERA_EXPRESSION_VERSION,
        [](void*, const tessera_fused_group*) {}, nullptr, &error);
  };
  const auto matches = [](const char* pattern) {
    return [pattern](const plugin::Graph& graph, const plugin::Node&) { graph.match(pattern); };
  };
  EXPECT_EQ(refusal_of(tanh, exports), "");
  EXPECT_EQ(refusal_of(tanh, takes_reference), "");
  EXPECT_EQ(refusal_of(tanh, fuse), "");
  EXPECT_EQ(refusal_of(tanh, matches("Gelu{approximate='tanh'}(x)")), "");
  EXPECT_NE(refusal_of(tanh, matches("Gelu{approximate='none'}(x)")), "");
  EXPECT_NE(refusal_of(tanh, matches("Gelu(x)")), "");
  // The host cannot fuse this op, so the plug-in has read nothing.
  EXPECT_NE(refusal_of(space_to_depth("CRD"), fuse), "");
  // A number in a pattern is the value of the constant.
  EXPECT_EQ(refusal_of({"Clip", {}, {number(0), number(6)}}, matches("Clip(x, 0, 6)")), "");
  EXPECT_NE(refusal_of({"Clip", {}, {number(0), number(6)}}, matches("Clip(x, #, #)")), "");
}

TEST_F(ExplainUnread, WhatOnePluginReadsAnotherHasNotRead) {
  const Graph graph = graph_of(space_to_depth("CRD"));
  const tessera_graph view(graph, all_ops());
  const std::vector plugins = {open_offering(reading("mode")), open_offering(kNothing)};
  // Both have the same name and layouts.
  const std::vector first = {plugins[0]};
  const LayoutTable table(first);
  for (int round = 0; round < 2; ++round) {
    const Offers offers = collect_offers(view, plugins, table, {});
    ASSERT_EQ(offers.candidates.size(), 1U);
    EXPECT_EQ(offers.candidates[0].preference, 0);
    ASSERT_EQ(offers.refusals.size(), 1U);
    EXPECT_EQ(offers.refusals[0].preference, 1);
  }
}

// --- The short form ------------------------------------------------------------------------------

// A LeakyRelu that reads its attribute where it is told to.
class ShortBackend : public plugin::Backend {
 public:
  ShortBackend(bool predicate_reads, bool run_reads)
      : predicate_reads_(predicate_reads), run_reads_(run_reads) {}

  plugin::Description describe() override {
    plugin::Description description{.name = "short", .version = "1"};
    description.simple_kernels = {
        {.op = "LeakyRelu",
         .explain_refusal = [this](const plugin::Node& node) -> std::optional<std::string> {
           if (predicate_reads_) node.attributes().has("alpha");
           return std::nullopt;
         },
         .run =
             [this](const plugin::Attributes& attributes, plugin::RunContext&,
                    std::span<const plugin::Buffer>, std::span<const plugin::Buffer> outputs) {
               const float alpha = run_reads_ ? attributes.get_float("alpha") : 0.01F;
               std::fill_n(outputs[0].as<float>(), outputs[0].elements(), alpha);
             }}};
    return description;
  }

 private:
  bool predicate_reads_;
  bool run_reads_;
};

class ShortForm : public ExplainUnread {
 protected:
  // The text of the failure of each of two runs; "" for success.
  std::vector<std::string> failures(bool predicate_reads, bool run_reads, float alpha,
                                    const Shape& shape = {2}) {
    const Graph graph = graph_of({"LeakyRelu", {{"alpha", alpha}}, {}, shape});
    const tessera_graph view(graph, all_ops());
    const std::vector plugins = {
        open_made([&] { return std::make_unique<ShortBackend>(predicate_reads, run_reads); })};
    const LayoutTable table(plugins);
    const Offers offers = collect_offers(view, plugins, table, {});
    if (offers.candidates.size() != 1) return {"no candidate"};
    const Kernel kernel = offers.candidates[0].build(1);
    ThreadPool pool(1);
    std::vector<std::string> texts;
    for (int round = 0; round < 2; ++round) texts.push_back(failure_of(kernel, pool, shape));
    return texts;
  }

 private:
  static std::string failure_of(const Kernel& kernel, ThreadPool& pool, const Shape& shape) {
    std::vector<float> memory(2);
    const std::vector<int64_t> dims = dims_from(shape);
    tessera_buffer buffer = {};
    buffer.data = memory.data();
    buffer.bytes = shape == Shape{0} ? 0 : 8;
    buffer.data_type = TESSERA_FLOAT32;
    buffer.rank = 1;
    buffer.dims = dims.data();
    RunContext context(pool);
    return error_of([&] { kernel.run("node 'n'", context, &buffer, &buffer); });
  }
};

TEST_F(ShortForm, MustReadAnAttributeInItsPredicateOrWhenItRuns) {
  const auto fails = HasSubstr("the kernel ignores attribute 'alpha'");
  EXPECT_THAT(failures(false, false, 0.5F), ElementsAre(fails, fails));
  EXPECT_THAT(failures(true, false, 0.5F), ElementsAre("", ""));
  EXPECT_THAT(failures(false, true, 0.5F), ElementsAre("", ""));
  EXPECT_THAT(failures(false, false, 0.01F), ElementsAre("", ""));
  // Without elements, nothing has to be read.
  EXPECT_THAT(failures(false, false, 0.5F, Shape{0}), ElementsAre("", ""));
}

}  // namespace
}  // namespace tessera
