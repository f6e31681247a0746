// Tunes small graphs with plug-ins defined here.
#include "measure/check_offers.h"

#include "backend/graph_view.h"
#include "backend/test_plugins.h"
#include "measure/capture.h"
#include "measure/measure_group.h"
#include "microbench/group_bench.h"
#include "ops/graph_test.h"
#include "price/prices.h"
#include "price/stored_plans.h"

namespace tessera::tuning {
namespace {

using testing_plugins::Buffer;
using testing_plugins::MirrorBackend;
using testing_plugins::open_mirror;
using testing_plugins::Proposals;
using testing_plugins::relu_candidate;

plugin::Candidate wrong_candidate(const plugin::Node& node) {
  plugin::Candidate candidate = relu_candidate(node, TESSERA_LAYOUT_DEFAULT);
  candidate.algorithm = "wrong";
  candidate.build = [](const plugin::BuildOptions&) {
    return plugin::make_kernel(
        [](plugin::RunContext&, std::span<const Buffer>, std::span<const Buffer> outputs) {
          for (int64_t index = 0; index < outputs[0].elements(); ++index) {
            outputs[0].as<float>()[index] = 1;
          }
        });
  };
  return candidate;
}

const PriceOptions kBounded{.unmeasured = Unmeasured::Bounded,
                            .conversion_seconds = [](int64_t) { return 8.0; }};

// The groups of a task and their prices.
struct PricedGroups {
  explicit PricedGroups(const TuningTask& task)
      : of(task), groups(collect_groups(of)), keys(cost_keys(of, groups)) {}

  Prices prices(const CostTable& table, const PriceOptions& options = kBounded) const {
    return look_up_prices(of, groups, make_price_basis(of, groups), keys, table, options);
  }

  TuningTask of;
  std::vector<TuneGroup> groups;
  std::vector<std::optional<CostKey>> keys;
};

class Tunings : public testing::Test {
 protected:
  // x -> Relu -> y -> Relu -> z, then y + z.
  Tunings() {
    GraphBuilder builder(all_ops());
    const Type type = float_type(Shape{8, 16});
    builder.input("x", type)
        .node("first", "Relu", {"x"}, {"y"})
        .node("second", "Relu", {"y"}, {"z"})
        .node("sum", "Add", {"y", "z"}, {"w"})
        .output("w");
    graph_ = builder.graph();
    for (Value& value : graph_.values) value.type = type;
  }

  void offer(MirrorBackend::Propose propose) {
    plugins_ = {open_mirror(std::move(propose))};
    layouts_ = std::make_unique<LayoutTable>(plugins_);
    const tessera_graph view(graph_, all_ops());
    offers_ = collect_offers(view, plugins_, *layouts_, {});
  }

  void offer_relus() {
    offer([](const auto& graph, Proposals& proposals) {
      for (const plugin::Node& node : graph.nodes()) {
        if (node.op() != "Relu") continue;
        proposals.add(relu_candidate(node, TESSERA_LAYOUT_DEFAULT));
        proposals.add(relu_candidate(node, "mirror:a", true));
        proposals.add(wrong_candidate(node));
      }
    });
  }

  TuningTask task() const { return {graph_, offers_, *layouts_, all_ops()}; }

  TuneReport tune_all(const TuneOptions& options = {}) {
    return tune(task(), plugins_, options, table_);
  }

  tessera::Graph graph_;
  std::vector<std::shared_ptr<const Plugin>> plugins_;
  std::unique_ptr<LayoutTable> layouts_;
  Offers offers_;
  CostTable table_;
};

TEST_F(Tunings, MeasureWhatIsRightAndRefuseWhatIsWrong) {
  offer_relus();
  const TuneReport report = tune_all();
  EXPECT_TRUE(report.notes.empty());
  // Both Relus are the same work.
  ASSERT_EQ(table_.kernels.size(), 3U);
  EXPECT_EQ(report.refused, 1);
  for (const auto& [key, cost] : table_.kernels) {
    EXPECT_THAT(key.work, HasSubstr("Relu."));
    EXPECT_EQ(key.work.find("first"), std::string::npos) << "keys must not know the model's names";
    if (key.candidate.algorithm == "wrong") {
      EXPECT_THAT(cost.refusal, HasSubstr("numbers: element"));
      EXPECT_GT(cost.error, cost.tolerance);
    } else {
      EXPECT_EQ(cost.refusal, "");
      EXPECT_GT(cost.warm->seconds, 0);
      EXPECT_LE(cost.warm->low, cost.warm->seconds);
    }
  }
  EXPECT_EQ(table_.machine, this_machine());
  // To mirror:a and back.
  EXPECT_EQ(table_.conversions.size(), 2U);
}

// Correct for normal numbers. Replaces NaN by 0 and denormals by 5, unless `keeps_nan` or
// `keeps_denormals` is set.
plugin::Candidate candidate_that(const plugin::Node& node, bool keeps_nan, bool keeps_denormals) {
  plugin::Candidate candidate = relu_candidate(node, TESSERA_LAYOUT_DEFAULT);
  candidate.algorithm = "special";
  candidate.build = [=](const plugin::BuildOptions&) {
    return plugin::make_kernel(
        [=](plugin::RunContext&, std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
          for (int64_t index = 0; index < inputs[0].elements(); ++index) {
            const float x = inputs[0].as<float>()[index];
            float& y = outputs[0].as<float>()[index];
            y = x > 0 || (keeps_nan && x != x) ? x : 0;
            if (!keeps_denormals && x > 0 && x < 1e-39F) y = 5;
          }
        });
  };
  return candidate;
}

TEST_F(Tunings, RefuseWhatLosesNanUnlessThatIsAllowed) {
  offer([](const auto& graph, Proposals& proposals) {
    proposals.add(candidate_that(graph.node(0), false, true));
  });
  tune_all();
  ASSERT_EQ(table_.kernels.size(), 1U);
  EXPECT_THAT(table_.kernels.begin()->second.refusal, HasSubstr("special values: element"));
  EXPECT_THAT(table_.kernels.begin()->second.refusal, HasSubstr("expected nan, found 0"));
  // A refusal under this rule is separate from the result under the other.
  TuningTask fast{graph_, offers_, *layouts_, all_ops()};
  fast.nan = TESSERA_NAN_FAST;
  tune(fast, plugins_, {}, table_);
  ASSERT_EQ(table_.kernels.size(), 2U);
  EXPECT_EQ(table_.kernels.rbegin()->first.nan, TESSERA_NAN_FAST);
  EXPECT_EQ(table_.kernels.rbegin()->second.refusal, "");
}

TEST_F(Tunings, JudgeDenormalsAsTheyAreTreated) {
  offer([](const auto& graph, Proposals& proposals) {
    proposals.add(candidate_that(graph.node(0), true, false));
  });
  tune_all({.denormals = Denormals::Flush});
  EXPECT_EQ(table_.kernels.begin()->second.refusal, "");
  table_ = {};
  tune_all({.denormals = Denormals::Keep});
  EXPECT_THAT(table_.kernels.begin()->second.refusal, HasSubstr("special values"));
}

TEST_F(Tunings, MeasureNothingTwice) {
  offer_relus();
  const TuneReport first = tune_all();
  const CostTable before = table_;
  const TuneReport again = tune_all();
  EXPECT_EQ(again.measured, 0);
  EXPECT_EQ(again.known, first.measured + first.known);
  EXPECT_EQ(table_, before);
}

TEST_F(Tunings, StopWhenAskedAndKeepWhatTheyHave) {
  offer_relus();
  int calls = 0;
  const TuneReport report = tune_all({.on_progress = [&](const TuneProgress& progress) {
    EXPECT_TRUE(progress.can_stop);
    if (progress.phase != BindPhase::Measuring) return true;
    EXPECT_LT(progress.done, progress.total);
    return ++calls < 2;
  }});
  EXPECT_TRUE(report.is_stopped);
  EXPECT_EQ(calls, 2);
  EXPECT_LE(table_.kernels.size(), 1U);
  EXPECT_FALSE(tune_all().is_stopped);
  EXPECT_EQ(table_.kernels.size(), 3U);
}

TEST_F(Tunings, ManageWithLittleMemoryForTrueValues) {
  offer_relus();
  EXPECT_GT(tune_all({.capture_bytes = 1, .buffer_bytes = 1}).measured, 0);
  EXPECT_EQ(table_.kernels.size(), 3U);
}

TEST_F(Tunings, OnlyCheckWhereThatIsWanted) {
  offer_relus();
  tune_all({.only_checks = true});
  ASSERT_EQ(table_.kernels.size(), 3U);
  for (const auto& [key, cost] : table_.kernels) {
    EXPECT_FALSE(cost.warm || cost.cold);
    EXPECT_EQ(cost.refusal.empty(), key.candidate.algorithm != "wrong");
  }
  EXPECT_TRUE(table_.conversions.empty());
}

TEST_F(Tunings, GivePricesAndGuesses) {
  offer_relus();
  const PricedGroups priced(task());
  const PriceOptions unmeasured{.conversion_seconds = [](int64_t) { return 7.0; }};
  const Prices guessed = priced.prices(table_, unmeasured);
  for (const CandidatePrice& price : guessed.candidates) {
    EXPECT_EQ(price.cost, nullptr);
    EXPECT_GT(price.seconds, 0);
  }
  const ValueId y = find_value(graph_, "y");
  const auto conversion = [&](const Prices& prices) {
    return prices.conversions[static_cast<size_t>(y.index)][layouts_->find("mirror:a")->index];
  };
  EXPECT_EQ(conversion(guessed), 7);
  tune_all();
  const Prices known = priced.prices(table_, unmeasured);
  EXPECT_LT(conversion(known), 1);
  int refused = 0;
  for (const CandidatePrice& price : known.candidates) {
    ASSERT_NE(price.cost, nullptr);
    if (price.is_refused()) {
      ++refused;
    } else {
      EXPECT_EQ(price.seconds, price.timing->seconds);
    }
  }
  EXPECT_EQ(refused, 2);
}

// The measurement of one Relu gives the ratio to the bound for similar ones.
TEST_F(Tunings, BoundWhatNobodyMeasuredByItsLike) {
  offer_relus();
  PricedGroups priced(task());
  const auto plain = static_cast<size_t>(priced.groups[0].candidates[0]);
  const double roofline = priced.prices(table_).candidates[plain].seconds;
  EXPECT_GT(roofline, 0);
  // Another work of the same family: a hundred times its bound.
  CostKey other = *priced.keys[plain];
  other.work = "another size";
  priced.keys[static_cast<size_t>(priced.groups[1].candidates[0])] = other;
  table_.kernels[other].warm = Timing{.seconds = 100 * roofline, .low = 0, .high = 1, .rounds = 9};
  const Prices prices = priced.prices(table_);
  EXPECT_EQ(prices.candidates[plain].timing, nullptr);
  const double learned = prices.candidates[plain].seconds;
  EXPECT_GT(learned, 40 * roofline);
  EXPECT_LE(learned, 100 * roofline);
  // An estimate is never less than the bound.
  const Prices guessed = priced.prices(table_, {.conversion_seconds = kBounded.conversion_seconds});
  EXPECT_GE(guessed.candidates[plain].seconds, learned);
}

// Small kernels are slow for reasons that large ones do not share; the reverse is rare.
TEST_F(Tunings, ASmallKernelHardlyBoundsALargeOne) {
  for (const bool is_large_known : {false, true}) {
    SCOPED_TRACE(is_large_known ? "the large one was measured" : "the small one was measured");
    constexpr int64_t kSizes[] = {int64_t{1} << 12, int64_t{1} << 24};
    GraphBuilder builder(all_ops());
    for (const int64_t size : kSizes) {
      const std::string name = std::to_string(size);
      builder.input("x" + name, float_type(Shape{size}))
          .node("relu" + name, "Relu", {"x" + name}, {"y" + name})
          .output("y" + name);
    }
    graph_ = builder.graph();
    for (const int64_t size : kSizes) {
      graph_[find_value(graph_, "y" + std::to_string(size))].type = float_type(Shape{size});
    }
    offer([](const auto& graph, Proposals& proposals) {
      for (const plugin::Node& node : graph.nodes()) {
        proposals.add(relu_candidate(node, TESSERA_LAYOUT_DEFAULT));
      }
    });
    const PricedGroups priced(task());
    const auto known = static_cast<size_t>(priced.groups[is_large_known ? 1 : 0].candidates[0]);
    const auto other = static_cast<size_t>(priced.groups[is_large_known ? 0 : 1].candidates[0]);
    table_ = {};
    const std::vector<CandidatePrice> bounds = priced.prices(table_).candidates;
    table_.kernels[*priced.keys[known]].warm =
        Timing{.seconds = 100 * bounds[known].seconds, .low = 0, .high = 1, .rounds = 9};
    const double learned = priced.prices(table_).candidates[other].seconds / bounds[other].seconds;
    if (is_large_known) {
      EXPECT_GT(learned, 40);
    } else {
      EXPECT_LT(learned, 5);
    }
  }
}

// An op of an instruction that is fused to a product hardly changes its time, a longer one may.
TEST_F(Tunings, BoundAProductByTheSameOneWithOtherOps) {
  for (const auto& [op, is_short] : {std::pair{"Relu", true}, std::pair{"Tanh", false}}) {
    SCOPED_TRACE(op);
    GraphBuilder builder(all_ops());
    const Tensor weight(DataType::Float32, {16, 16});
    builder.input("x", float_type(Shape{8, 16}))
        .constant("w", weight)
        .node("product", "MatMul", {"x", "w"}, {"y"})
        .node("fused", op, {"y"}, {"z"})
        .output("z");
    graph_ = builder.graph();
    for (const char* name : {"y", "z"}) {
      graph_[find_value(graph_, name)].type = float_type(Shape{8, 16});
    }
    offer([](const auto&, Proposals&) {});
    const auto candidate = [&](std::vector<NodeId> nodes, const char* output) {
      return Candidate{
          .plugin = plugins_.front(),
          .nodes = std::move(nodes),
          .inputs = {{.value = find_value(graph_, "x"), .layout = kDefaultLayout},
                     {.value = find_value(graph_, "w"), .layout = kDefaultLayout}},
          .outputs = {{.value = find_value(graph_, output), .layout = kDefaultLayout}}};
    };
    offers_.candidates = {candidate({{0}}, "y"), candidate({{0}, {1}}, "z")};
    const PricedGroups priced(task());
    table_ = {};
    table_.kernels[*priced.keys[1]].warm = Timing{.seconds = 1, .low = 1, .high = 1, .rounds = 9};
    const Prices prices = priced.prices(table_);
    EXPECT_EQ(prices.candidates[0].seconds > 0.9, is_short);
    EXPECT_LT(prices.candidates[0].seconds, 1);
  }
}

// Where nothing was measured, the bound is raised for what its own backend expects to be slower.
TEST_F(Tunings, TryFirstWhatItsBackendExpectsToBeFastest) {
  offer([](const auto& graph, Proposals& proposals) {
    for (const plugin::Node& node : graph.nodes()) {
      if (node.op() != "Relu") continue;
      for (const double seconds : {3e-3, 1e-3, 0.0, 1.0}) {
        plugin::Candidate candidate = relu_candidate(node, TESSERA_LAYOUT_DEFAULT);
        candidate.algorithm = "expects " + std::to_string(seconds);
        candidate.optimistic_seconds = seconds;
        proposals.add(std::move(candidate));
      }
    }
  });
  const PricedGroups priced(task());
  const Prices prices = priced.prices(table_);
  std::map<std::string, double> seconds;
  for (const int index : priced.groups[0].candidates) {
    const auto position = static_cast<size_t>(index);
    seconds[offers_.candidates[position].algorithm] = prices.candidates[position].seconds;
  }
  const double least = seconds.at("expects 0.001000");
  EXPECT_GT(least, 0);
  EXPECT_NEAR(seconds.at("expects 0.003000"), 3 * least, 1e-12);
  EXPECT_NEAR(seconds.at("expects 0.000000"), least, 1e-12);  // not known
  EXPECT_NEAR(seconds.at("expects 1.000000"), 4 * least, 1e-12) << "an error of a backend counts";
}

TEST_F(Tunings, FindTheCandidatesOfAPlanAgain) {
  offer_relus();
  const std::vector<int> chosen = {4, 1};
  const std::vector<CandidateId> steps = planned_steps(task(), chosen);
  EXPECT_EQ(find_candidates(task(), steps), chosen);
  EXPECT_EQ(explain_missing(task(), steps), "");
  const auto key = plan_key(task(), plugins_);
  ASSERT_TRUE(key.has_value());
  EXPECT_EQ(plan_key(task(), plugins_), key);
  EXPECT_NE(plan_key(task(), {}), key) << "others were asked";
  // A candidate that is no longer offered cannot be found.
  offers_.candidates.erase(offers_.candidates.begin() + 1);
  EXPECT_EQ(find_candidates(task(), steps), std::nullopt);
  EXPECT_THAT(explain_missing(task(), steps), HasSubstr("no longer offers"));
  graph_.nodes[0].op = "Abs";
  EXPECT_NE(plan_key(task(), plugins_), key) << "it computes something else";
}

TEST_F(Tunings, TellWhereTheirTimeGoes) {
  offer_relus();
  const TuneReport report = tune_all();
  double sum = 0;
  for (const auto& [phase, seconds] : report.phases) sum += seconds;
  EXPECT_NEAR(sum, report.seconds, 0.05);
  for (const char* phase : {"build", "check", "time", "reference"}) {
    EXPECT_TRUE(report.phases.contains(phase)) << phase;
  }
}

TEST_F(Tunings, MeasureOnlyWhatTheyAreAskedFor) {
  offer_relus();
  const auto [of, groups, keys] = PricedGroups(task());
  Tuner tuner(of, groups, keys, plugins_, {}, table_);
  const int wanted = groups[0].candidates[1];
  EXPECT_TRUE(tuner.measure(std::vector{wanted}, {}));
  ASSERT_EQ(table_.kernels.size(), 1U);
  EXPECT_EQ(table_.kernels.begin()->first, *keys[static_cast<size_t>(wanted)]);
  EXPECT_TRUE(table_.conversions.empty());
  EXPECT_EQ(tuner.report().measured, 1);
  // A repeated request costs nothing.
  EXPECT_TRUE(tuner.measure(std::vector{wanted}, {}));
  EXPECT_EQ(tuner.report().measured, 1);
  EXPECT_EQ(tuner.report().known, 1);
}

TEST_F(Tunings, EndWhenTheirTimeIsSpent) {
  offer_relus();
  const TuneReport report = tune_all({.budget_seconds = 1e-9});
  EXPECT_TRUE(report.is_stopped);
  EXPECT_TRUE(report.is_out_of_time);
  EXPECT_EQ(report.measured, 0);
  EXPECT_FALSE(tune_all().is_out_of_time);
}

TEST_F(Tunings, FindACandidateAgainForTheGroupAlone) {
  offer_relus();
  const TuningTask of = task();
  const TuneGroup group = collect_groups(of)[1];
  Capture capture(graph_, all_ops(), 1, draw_inputs(graph_, 1));
  const CapturedValues values =
      *capture.run(std::vector{find_value(graph_, "y"), find_value(graph_, "z")});
  GroupCase given{.graph = group.graph,
                  .inputs = {values.at(find_value(graph_, "y"))},
                  .outputs = {values.at(find_value(graph_, "z"))}};
  GroupBench bench(plugins_, all_ops(), 1);
  bench.load(given);
  // Nothing was provided by offer(), so the plug-in is asked.
  const CandidateId id = bench_id(of, group.candidates[1]);
  EXPECT_TRUE(bench.build(id).is_fine());
  EXPECT_EQ(bench.check(id).reason, "");
  EXPECT_GT(bench.run(id, Weights::Cold, 1).seconds, 0);
  EXPECT_GT(bench.run(id, Weights::Warm, 1).seconds, 0);
  bench.drop(id);
  CandidateId other = id;
  other.algorithm = "another";
  EXPECT_TRUE(bench.build(other).is_unknown);
  EXPECT_THAT(bench
                  .convert({.backend = "mirror",
                            .from = "row_major",
                            .to = "nowhere",
                            .element = DataType::Float32,
                            .dims = {3}},
                           1)
                  .reason,
              HasSubstr("does not convert"));
}

// A plug-in finds its candidates in the wanted list by comparing text. If host and plug-in
// formatted it differently, warm starts would collect all offers again, and no other test would
// notice.
TEST_F(Tunings, PortsOfStepsAreWrittenAsPluginsWriteThem) {
  offer_relus();
  tessera_pack pack = {};
  pack.id = "mylib:wide";
  const LayoutId own = *layouts_->find("mirror:a");
  offers_.candidates = {
      {.plugin = plugins_.front(),
       .nodes = {{2}},
       .inputs = {{.value = {1}, .layout = own},
                  {.value = {2}, .layout = kDefaultLayout, .pack = &pack}},
       .outputs = {{.value = {3}, .layout = own}, {.value = {3}, .layout = kDefaultLayout}}}};
  plugin::Candidate theirs;
  theirs.inputs = {{.value = 1, .layout = "mirror:a"}, {.value = 2}};
  theirs.inputs[1].pack.emplace().id = "mylib:wide";
  theirs.outputs = {{.value = 3, .layout = "mirror:a"}, {.value = 3}};
  const std::vector<CandidateId> steps = planned_steps(task(), {0});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps.front().ports, plugin::ports_text(theirs));
}

}  // namespace
}  // namespace tessera::tuning
