#include "backend/candidates.h"

#include <cstddef>

#include "backend/test_plugins.h"
#include "base/tensor/tensors_test.h"
#include "graph/released_weight.h"
#include "ops/graph_test.h"

namespace tessera {
namespace {

using testing_plugins::Buffer;
using testing_plugins::Description;
using testing_plugins::MirrorBackend;
using testing_plugins::open_made;
using testing_plugins::open_mirror;
using testing_plugins::Proposals;
using testing_plugins::ProposeOptions;
using testing_plugins::relu_candidate;

class Candidates : public testing::Test {
 protected:
  // x -> Relu -> y -> Relu -> z; z is the output.
  static tessera::Graph two_relus() {
    GraphBuilder builder(all_ops());
    builder.input("x", float_type(Shape{2, 3}))
        .node("first", "Relu", {"x"}, {"y"})
        .node("second", "Relu", {"y"}, {"z"})
        .output("z");
    tessera::Graph graph = builder.graph();
    for (Value& value : graph.values) value.type = float_type(Shape{2, 3});
    return graph;
  }

  void use(std::shared_ptr<const Plugin> plugin) {
    plugins_ = {std::move(plugin)};
    table_ = std::make_unique<LayoutTable>(plugins_);
  }

  Offers collect(const OfferOptions& options = {}) const {
    const tessera_graph view(graph_, all_ops());
    return collect_offers(view, plugins_, *table_, options);
  }

  Offers offers(MirrorBackend::Propose propose) {
    use(open_mirror(std::move(propose)));
    return collect();
  }

  // The reason of the first node's refusal if `change` makes a candidate illegal.
  std::string refusal_of(const std::function<void(plugin::Candidate&)>& change) {
    const Offers got = offers([&](const auto& graph, Proposals& proposals) {
      plugin::Candidate candidate = relu_candidate(graph.node(0), TESSERA_LAYOUT_DEFAULT);
      change(candidate);
      proposals.add(std::move(candidate));
    });
    EXPECT_TRUE(got.candidates.empty());
    for (const Refusal& refusal : got.refusals) {
      if (refusal.node == NodeId{0}) return refusal.reason;
    }
    return "";
  }

  tessera::Graph graph_ = two_relus();
  std::vector<std::shared_ptr<const Plugin>> plugins_;
  std::unique_ptr<LayoutTable> table_;
};

// Records the options with which propose() is called.
class AskedBackend : public plugin::Backend {
 public:
  explicit AskedBackend(ProposeOptions& asked) : asked_(asked) {}
  Description describe() override { return {.name = "asked", .version = "1"}; }
  void propose(const plugin::Graph&, const ProposeOptions& options, Proposals&) override {
    asked_ = options;
  }

 private:
  ProposeOptions& asked_;
};

TEST_F(Candidates, AreAskedForWithWhatNanMayBecome) {
  ProposeOptions asked;
  use(open_made([&] { return std::make_unique<AskedBackend>(asked); }));
  collect({.nan = TESSERA_NAN_FAST});
  EXPECT_EQ(asked.nan, TESSERA_NAN_FAST);
  collect();
  EXPECT_EQ(asked.nan, TESSERA_NAN_EXACT);
}

TEST_F(Candidates, AreAskedForWithHowLargeErrorsMayBe) {
  ProposeOptions asked;
  use(open_made([&] { return std::make_unique<AskedBackend>(asked); }));
  collect({.accuracy = TESSERA_ACCURACY_FAST});
  EXPECT_EQ(asked.accuracy, TESSERA_ACCURACY_FAST);
  collect();
  EXPECT_EQ(asked.accuracy, TESSERA_ACCURACY_BOUNDED);
}

TEST_F(Candidates, ThatAreRoughAreRefusedUnlessThatIsAllowed) {
  const Offers bounded = offers([](const auto& seen, Proposals& proposals) {
    plugin::Candidate rough = relu_candidate(seen.node(0), TESSERA_LAYOUT_DEFAULT);
    rough.algorithm = "rough";
    rough.flags |= TESSERA_CANDIDATE_ROUGH;
    proposals.add(std::move(rough));
    proposals.add(relu_candidate(seen.node(1), TESSERA_LAYOUT_DEFAULT));
  });
  ASSERT_EQ(bounded.candidates.size(), 1U);
  EXPECT_EQ(bounded.candidates[0].nodes, std::vector<NodeId>{{1}});
  ASSERT_EQ(bounded.refusals.size(), 1U);
  EXPECT_EQ(bounded.refusals[0].node, NodeId{0});
  EXPECT_EQ(bounded.refusals[0].reason,
            "the error of its candidate 'rough' may exceed the op's bound, which only "
            "accuracy=fast allows");
  const Offers fast = collect({.accuracy = TESSERA_ACCURACY_FAST});
  EXPECT_EQ(fast.candidates.size(), 2U);
  EXPECT_TRUE(fast.refusals.empty());
}

TEST_F(Candidates, OfSmallTypesNeedAPlugInThatSaysThatItKnowsThem) {
  for (Value& value : graph_.values) value.type = Type::tensor(DataType::Int4, Shape{2, 3});
  const Offers got = offers([](const auto& seen, Proposals& proposals) {
    const plugin::Value x = seen.node(0).input(0);
    EXPECT_EQ(x.type().data_type, TESSERA_UNDEFINED);
    EXPECT_EQ(x.type().rank, -1);
    EXPECT_EQ(x.small_type().data_type, TESSERA_INT4);
    EXPECT_EQ(x.small_type().dims, (std::vector<int64_t>{2, 3}));
    proposals.add(relu_candidate(seen.node(0), TESSERA_LAYOUT_DEFAULT));
    plugin::Candidate knowing = relu_candidate(seen.node(1), TESSERA_LAYOUT_DEFAULT);
    knowing.flags |= TESSERA_CANDIDATE_KNOWS_SMALL_TYPES;
    proposals.add(std::move(knowing));
  });
  ASSERT_EQ(got.candidates.size(), 1U);
  EXPECT_EQ(got.candidates[0].nodes, std::vector<NodeId>{{1}});
  ASSERT_EQ(got.refusals.size(), 1U);
  EXPECT_THAT(got.refusals[0].reason,
              testing::HasSubstr("it does not say that it knows int4, the type of value 'x'"));
}

TEST_F(Candidates, OfAnOlderHostAreExactAndStillWanted) {
  const tessera_graph view(graph_, all_ops());
  ProposeOptions asked;
  use(open_made([&] { return std::make_unique<AskedBackend>(asked); }));
  tessera_wanted wanted = {};
  wanted.algorithm = wanted.ports = "";
  tessera_propose_options options = {};
  options.struct_size = offsetof(tessera_propose_options, nan);
  options.wanted = &wanted;
  options.wanted_count = 1;
  options.nan = TESSERA_NAN_FAST;  // beyond the older struct, memory may hold anything
  tessera_proposals sink = {};
  sink.struct_size = sizeof(sink);
  const tessera_backend& abi = plugins_[0]->abi();
  tessera_error error = {};
  EXPECT_EQ(abi.propose(abi.self, &view, &options, &sink, &error), TESSERA_OK);
  EXPECT_EQ(asked.nan, TESSERA_NAN_EXACT);
  EXPECT_TRUE(asked.wanted.has_value());
}

TEST_F(Candidates, KeepTheirPorts) {
  const Offers got = offers([](const auto& graph, Proposals& proposals) {
    proposals.add(relu_candidate(graph.node(0), "mirror:a", true));
    proposals.refuse(1, "it is the second");
  });
  ASSERT_EQ(got.candidates.size(), 1U);
  EXPECT_EQ(got.candidates[0].algorithm, "relu in mirror:a");
  EXPECT_EQ(table_->name(got.candidates[0].inputs[0].layout), "mirror:a");
  EXPECT_EQ(got.candidates[0].outputs[0].in_place_input, 0);
  ASSERT_EQ(got.refusals.size(), 1U);
  EXPECT_EQ(got.refusals[0].reason, "it is the second");
}

TEST_F(Candidates, InAnyDenseLayoutBecomeOneForEach) {
  const Offers got = offers([](const auto& graph, Proposals& proposals) {
    proposals.add(relu_candidate(graph.node(0), TESSERA_LAYOUT_ANY_DENSE));
  });
  std::vector<std::string> layouts;
  for (const tessera::Candidate& candidate : got.candidates) {
    layouts.push_back(table_->name(candidate.inputs[0].layout));
    EXPECT_EQ(candidate.inputs[0].layout, candidate.outputs[0].layout);
  }
  EXPECT_THAT(layouts, ElementsAre("row_major", "mirror:a", "mirror:b"));
}

TEST_F(Candidates, NameSparseLayoutsWithoutTheCapacityThatTheValueHas) {
  graph_[find_value(graph_, "x")].sparse = {SparseFormat::Csr, 4};
  graph_[find_value(graph_, "y")].sparse = {SparseFormat::Csr, 5};
  const tessera_graph view(graph_, all_ops());
  plugins_ = {open_mirror([](const auto& seen, Proposals& proposals) {
    EXPECT_EQ(seen.node(0).input(0).sparse_format(), TESSERA_CSR);
    EXPECT_EQ(seen.node(0).input(0).sparse_capacity(), 4);
    EXPECT_EQ(seen.node(1).output(0).sparse_format(), TESSERA_DENSE);
    proposals.add(relu_candidate(seen.node(0), TESSERA_LAYOUT_CSR));
    proposals.add(relu_candidate(seen.node(1), TESSERA_LAYOUT_ANY_DENSE));
  })};
  const LayoutTable table(plugins_, sparse_forms(graph_));
  const Offers got = collect_offers(view, plugins_, table, {});
  std::vector<std::string> layouts;
  for (const tessera::Candidate& candidate : got.candidates) {
    layouts.push_back(table.name(candidate.inputs[0].layout) + " " +
                      table.name(candidate.outputs[0].layout));
  }
  EXPECT_THAT(layouts, ElementsAre("csr:4 csr:5", "row_major row_major", "mirror:a mirror:a",
                                   "mirror:b mirror:b"));
}

TEST_F(Candidates, ThatAreNotLegalBecomeRefusals) {
  using C = plugin::Candidate;
  const struct {
    std::function<void(C&)> change;
    std::string reason;
  } cases[] = {
      {[](C& c) { c.nodes = {7}; }, ""},
      {[](C& c) { c.nodes = {0, 0}; }, "not ascending"},
      {[](C& c) { c.inputs.clear(); }, "leaves out input value 'x'"},
      {[](C& c) { c.inputs[0].layout = "csr"; }, "'csr' is not one that value 'x' may lie in"},
      {[](C& c) { c.inputs[0].layout = "csr:4"; }, "no backend provides"},
      {[](C& c) { c.inputs.push_back(c.inputs[0]); }, "twice"},
      {[](C& c) { c.inputs[0].value = 2; }, "not read by its nodes"},
      {[](C& c) { c.inputs[0].layout = "mirror:none"; }, "no backend provides"},
      {[](C& c) { c.outputs.clear(); }, "swallows value 'y'"},
      {[](C& c) { c.outputs[0].value = 2; }, "not made by its nodes"},
      {[](C& c) { c.outputs[0].value = 99; }, "not made by its nodes"},
      {[](C& c) {
         c.outputs[0].requests = TESSERA_REQUEST_IN_PLACE;
         c.outputs[0].in_place_input = 5;
       },
       "in-place input that does not exist"},
      {[](C& c) { c.workspace_bytes = -1; }, "negative memory"},
      {[](C& c) { c.inputs[0].alignment_bytes = 128; }, "does not promise"},
      {[](C& c) {
         c.flags = TESSERA_CANDIDATE_VIEW;
         c.outputs[0].part.offset_bytes = 4;
       },
       "its output value 'y' reaches beyond the 24 bytes"},
      {[](C& c) {
         c.flags = TESSERA_CANDIDATE_VIEW;
         c.outputs[0].part.strides = {4, 1};
       },
       "reaches beyond"},
      {[](C& c) {
         c.flags = TESSERA_CANDIDATE_VIEW;
         c.outputs[0].part.strides = {1};
       },
       "1 strides for 2 dimensions"},
      {[](C& c) {
         c.flags = TESSERA_CANDIDATE_VIEW;
         c.inputs[0].layout = c.outputs[0].layout = "mirror:a";
         c.outputs[0].part.strides = {1, 2};
       },
       "strides cannot locate the elements"},
      {[](C& c) {
         c.flags = TESSERA_CANDIDATE_JOINT;
         c.inputs[0].part.offset_bytes = 8;
       },
       "its input value 'x' reaches beyond the 24 bytes"},
      {[](C& c) {
         c.flags = TESSERA_CANDIDATE_JOINT;
         c.inputs[0].part.strides = {2, 1};
       },
       "its part 0 is no box"},
      {[](C& c) { c.flags = TESSERA_CANDIDATE_VIEW | TESSERA_CANDIDATE_JOINT; }, "at once"},
      {[](C& c) { c.outputs[0].alignment_bytes = 24; }, "no power of two"},
      {[](C& c) { c.inputs[0].pack = plugin::Pack{"p", 4, nullptr}; }, "no constant"},
      {[](C& c) { c.absorbed = {0}; }, "absorbs 0, which is no constant that its nodes read"},
      {[](C& c) { c.absorbed = {2}; }, "absorbs 2, which is no constant that its nodes read"},
  };
  for (const auto& [change, reason] : cases) EXPECT_THAT(refusal_of(change), HasSubstr(reason));
}

TEST_F(Candidates, ThatAreViewsNeedNoKernelNorLayoutsThatNobodyBrings) {
  const Offers got = offers([](const auto& graph, Proposals& proposals) {
    for (const char* layout : {"row_major", "nhwc"}) {
      plugin::Candidate view = relu_candidate(graph.node(0), layout);
      view.flags = TESSERA_CANDIDATE_VIEW;
      view.build = {};
      view.outputs[0].part = {.offset_bytes = 0, .strides = {3, 1}};
      proposals.add(std::move(view));
    }
  });
  ASSERT_EQ(got.candidates.size(), 1U);
  EXPECT_TRUE(got.candidates[0].is_view());
  // Strides that describe dense storage are removed.
  EXPECT_TRUE(got.candidates[0].outputs[0].part.is_dense());
  for (const Refusal& refusal : got.refusals) EXPECT_NE(refusal.node, NodeId{0});
}

TEST_F(Candidates, OfAPluginThatThrowsAreRefusalsOfEveryNode) {
  const Offers got = offers([](const auto&, Proposals&) { throw std::runtime_error("broken"); });
  ASSERT_EQ(got.refusals.size(), 2U);
  EXPECT_THAT(got.refusals[1].reason, HasSubstr("broken"));
}

// x + w, where w is absorbed.
class Absorbing : public Candidates {
 protected:
  Absorbing() {
    GraphBuilder builder(all_ops());
    builder.input("x", float_type(Shape{2}))
        .constant("w", floats({2}, {5, 7}))
        .node("sum", "Add", {"x", "w"}, {"y"})
        .output("y");
    graph_ = builder.graph();
    for (Value& value : graph_.values) value.type = float_type(Shape{2});
  }

  tessera::Candidate propose() {
    Offers got = offers([](const auto& graph, Proposals& proposals) {
      plugin::Candidate candidate;
      candidate.nodes = {0};
      candidate.inputs = {{.value = graph.node(0).input(0).id()}};
      candidate.outputs = {{.value = graph.node(0).output(0).id()}};
      candidate.absorbed = {graph.node(0).input(1).id()};
      candidate.build = [](const plugin::BuildOptions& options) {
        const auto* weight = options.absorbed[0].as<float>();
        return plugin::make_kernel([weight](plugin::RunContext&, std::span<const Buffer> inputs,
                                            std::span<const Buffer> outputs) {
          for (int index = 0; index < 2; ++index) {
            outputs[0].as<float>()[index] = inputs[0].as<float>()[index] + weight[index];
          }
        });
      };
      proposals.add(std::move(candidate));
    });
    EXPECT_EQ(got.candidates.size(), 1U);
    return std::move(got.candidates.at(0));
  }
};

TEST_F(Absorbing, KernelsKeepWhatTheyAreBuiltOf) {
  tessera::Candidate candidate = propose();
  const tessera::Kernel kernel = candidate.build(1);
  // Now only the kernel holds the weight.
  candidate = {};
  graph_ = {};
  std::vector<float> from = {1, 2};
  std::vector<float> to = {0, 0};
  const std::vector<int64_t> dims = {2};
  const auto abi = [&](std::vector<float>& elements) {
    tessera_buffer buffer = {};
    buffer.data = elements.data();
    buffer.bytes = 8;
    buffer.data_type = TESSERA_FLOAT32;
    buffer.rank = 1;
    buffer.dims = dims.data();
    return buffer;
  };
  const tessera_buffer input = abi(from);
  const tessera_buffer output = abi(to);
  ThreadPool pool(1);
  tessera::RunContext context(pool);
  kernel.run("sum", context, &input, &output);
  EXPECT_THAT(to, ElementsAre(6, 9));
}

TEST_F(Absorbing, NothingIsBuiltOfReleasedWeights) {
  Value& weight = graph_[find_value(graph_, "w")];
  weight.constant = weight.constant.without_elements();
  const tessera::Candidate candidate = propose();
  const std::optional<ReleasedWeight> released = find_released_weight(graph_, candidate.absorbed);
  ASSERT_TRUE(released.has_value());
  EXPECT_EQ(released->name, "w");
  EXPECT_THAT(error_of([&] { candidate.build(1); }), HasSubstr("weight 'w'"));
}

TEST_F(Candidates, ThatFailToBuildSayWhy) {
  const Offers got = offers([](const auto& graph, Proposals& proposals) {
    plugin::Candidate candidate = relu_candidate(graph.node(0), TESSERA_LAYOUT_DEFAULT);
    candidate.build = [](const plugin::BuildOptions&) -> std::unique_ptr<plugin::Kernel> {
      throw plugin::Failure(TESSERA_UNSUPPORTED, "not today");
    };
    proposals.add(std::move(candidate));
  });
  ASSERT_EQ(got.candidates.size(), 1U);
  EXPECT_THAT(error_of([&] { got.candidates[0].build(1); }),
              AllOf(HasSubstr("Unsupported"), HasSubstr("not today")));
}

}  // namespace
}  // namespace tessera
