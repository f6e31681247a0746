#include "candidate_check.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "backend/graph_view.h"
#include "backend/host.h"
#include "infer/infer.h"
#include "infer/mark_sparse.h"
#include "ops/evaluate.h"
#include "other_sizes.h"
#include "price/stored_plans.h"

namespace tessera {
namespace {

constexpr int kThreads = 2;
constexpr int kMaxFailures = 12;

// Computes all values with the reference.
std::vector<Tensor> evaluate_all(const Graph& graph, const std::map<std::string, Tensor>& fed,
                                 const ops::Registry& registry, ThreadPool& pool) {
  std::vector<Tensor> values(graph.values.size());
  for (size_t index = 0; index < values.size(); ++index) {
    const Value& value = graph.values[index];
    if (value.is_constant()) values[index] = value.constant;
    const auto found = fed.find(value.name);
    if (found != fed.end()) values[index] = found->second;
  }
  for (const Node& node : graph.nodes) {
    std::vector<Tensor> inputs;
    for (const ValueId input : node.inputs) {
      inputs.push_back(input.is_none() ? Tensor() : values[static_cast<size_t>(input.index)]);
    }
    const std::vector<Tensor> outputs = evaluate(registry.of(node), node, inputs, pool);
    for (size_t index = 0; index < outputs.size(); ++index) {
      const ValueId output = node.outputs[index];
      if (!output.is_none()) values[static_cast<size_t>(output.index)] = outputs[index];
    }
  }
  return values;
}

std::string describe(const Graph& graph, const Candidate& candidate, const LayoutTable& layouts) {
  std::string text = candidate.algorithm + " for";
  for (const NodeId id : candidate.nodes) text += " " + graph[id].op;
  for (const CandidateInput& input : candidate.inputs) {
    text += ", " + layouts.name(input.layout) + " " + tessera::text(graph[input.value].type);
    if (input.pack != nullptr) text += " (packed)";
  }
  for (const CandidateOutput& output : candidate.outputs) {
    text += " -> " + layouts.name(output.layout) + " " + tessera::text(graph[output.value].type);
  }
  return text;
}

}  // namespace

CandidateCheck::CandidateCheck(const std::string& backend)
    : registry_(ops::make_registry()), pool_(kThreads) {
  const auto file_of = [](const std::string& name) {
    return std::string(TESSERA_PLUGIN_FOLDER) + "/backend_" + name + ".so";
  };
  std::istringstream names(backend);
  bool has_onednn = false;
  for (std::string name; std::getline(names, name, '+');) {
    if (!plugins_.empty() && !std::filesystem::exists(file_of(name))) continue;
    plugins_.push_back(Plugin::open(file_of(name), std::make_shared<HostServices>()));
    has_onednn = has_onednn || name == "onednn";
  }
  layout_plugins_ = plugins_;
  // oneDNN's plug-in brings the shared layouts, which other backends use if it was built.
  if (!has_onednn && std::filesystem::exists(file_of("onednn"))) {
    layout_plugins_.push_back(Plugin::open(file_of("onednn"), std::make_shared<HostServices>()));
  }
}

// All offers, together with those that replace them if NaN must be kept.
Offers CandidateCheck::offers_for(const tessera_graph& view, const LayoutTable& layouts,
                                  int precision) const {
  OfferOptions options;
  options.threads = kThreads;
  options.precision = precision;
  options.nan = TESSERA_NAN_FAST;
  Offers offers = collect_offers(view, plugins_, layouts, options);
  constexpr std::array<std::string_view, 4> kRewritten = {"Clip", "Max", "Min", "Relu"};
  const bool is_rewritten = std::ranges::any_of(view.graph.nodes, [&](const Node& node) {
    return std::ranges::find(kRewritten, node.op) != kRewritten.end();
  });
  if (!is_rewritten) return offers;
  options.nan = TESSERA_NAN_EXACT;
  Offers exact = collect_offers(view, plugins_, layouts, options);
  std::ranges::move(exact.candidates, std::back_inserter(offers.candidates));
  return offers;
}

std::vector<std::string> CandidateCheck::missing_where_wanted(const tessera_graph& view,
                                                              const LayoutTable& layouts) const {
  const std::span plugin(plugins_.data(), 1);
  const OfferOptions all = {.threads = kThreads};
  const Offers offers = collect_offers(view, plugin, layouts, all);
  const auto task_of = [&](const Offers& of) {
    return tuning::TuningTask{.graph = view.graph,
                              .offers = of,
                              .layouts = layouts,
                              .registry = registry_,
                              .threads = kThreads,
                              .nan = all.nan};
  };
  std::vector<std::string> missing;
  std::vector<bool> is_tried(offers.candidates.size());
  for (size_t first = 0; first < offers.candidates.size(); ++first) {
    if (is_tried[first]) continue;
    // A plan with this candidate, and for the other nodes candidates that were not tried yet.
    std::vector<int> chosen;
    std::set<NodeId> covered;
    for (size_t index = first; index < offers.candidates.size(); ++index) {
      const std::vector<NodeId>& nodes = offers.candidates[index].nodes;
      const bool is_free =
          std::ranges::none_of(nodes, [&](const NodeId node) { return covered.contains(node); });
      if (is_tried[index] || !is_free) continue;
      is_tried[index] = true;
      covered.insert(nodes.begin(), nodes.end());
      chosen.push_back(static_cast<int>(index));
    }
    const std::vector<CandidateId> steps = planned_steps(task_of(offers), chosen);
    OfferOptions some = all;
    some.wanted = &steps;
    const Offers found = collect_offers(view, plugin, layouts, some);
    std::string one = explain_missing(task_of(found), steps);
    if (!one.empty()) missing.push_back(std::move(one));
  }
  return missing;
}

CheckResult CandidateCheck::run(const Graph& graph, const std::map<std::string, Tensor>& fed,
                                const Tolerance& tolerance,
                                const std::map<std::string, SparseForm>& sparse) {
  Graph typed = infer_types(graph, registry_, Log());
  mark_sparse(typed, sparse, registry_);
  const LayoutTable layouts(layout_plugins_, sparse_forms(typed));
  const std::vector<Tensor> values = evaluate_all(typed, fed, registry_, pool_);
  const tessera_graph view(typed, registry_);
  CheckResult result;
  result.failures = missing_where_wanted(view, layouts);
  const Offers offers = offers_for(view, layouts, tolerance.precision);
  // Kernels that take sizes when they run are built for other sizes, too, for some of the graphs.
  const bool is_resized = ++graphs_ % 3 == 0;
  const std::optional<Graph> other =
      is_resized ? with_other_sizes(typed, registry_, graphs_) : std::nullopt;
  Offers of_other;
  if (other && sparse.empty()) {
    of_other = offers_for(tessera_graph(*other, registry_), layouts, tolerance.precision);
  }
  std::set<int32_t> taken;
  for (const Candidate& candidate : offers.candidates) {
    if (candidate.plugin != plugins_[0]) continue;
    ++result.candidates;
    const auto is_sparse = [&](const CandidateInput& port) {
      return layouts.sparse_form(port.layout).has_value();
    };
    if (std::any_of(candidate.inputs.begin(), candidate.inputs.end(), is_sparse)) ++result.sparse;
    result.largest = std::max(result.largest, candidate.nodes.size());
    for (const NodeId node : candidate.nodes) taken.insert(node.index);
    const std::string wrong = explain_wrong(typed, values, layouts, candidate, pool_, tolerance);
    if (!wrong.empty()) {
      result.failures.push_back(describe(typed, candidate, layouts) + ": " + wrong);
      continue;
    }
    const std::optional<Candidate> resized =
        other ? with_kernel_of(of_other.candidates, *other, candidate, typed) : std::nullopt;
    if (!resized) continue;
    ++result.resized;
    const std::string unfit =
        explain_wrong(typed, values, layouts, *resized, pool_, tolerance, KernelSizes::Other);
    if (unfit.empty()) continue;
    result.failures.push_back(describe(typed, candidate, layouts) + ", built for those of " +
                              describe(*other, *resized, layouts) + ": " + unfit);
  }
  for (const Refusal& refusal : offers.refusals) {
    if (refusal.backend != plugins_[0]->name()) continue;
    if (taken.contains(refusal.node.index)) {
      // A candidate that the host refused is always a failure of the test.
      result.failures.push_back(typed[refusal.node].op + ": " + refusal.reason);
    } else {
      result.refusals.push_back(typed[refusal.node].op + ": " + refusal.reason);
    }
  }
  return result;
}

void expect_answers(const Totals& totals, int answered, size_t largest) {
  EXPECT_GE(totals.answered, answered);
  EXPECT_EQ(totals.largest, largest);
}

void expect_refusal(const Totals& totals, const std::string& reason) {
  EXPECT_EQ(totals.answered, 0) << reason;
  ASSERT_EQ(totals.refusals.size(), 1U) << reason;
  EXPECT_THAT(totals.refusals.begin()->first, HasSubstr(reason));
}

Totals check_cases(const std::string& backend, uint64_t seed, int cases, const MakeCase& make,
                   const Tolerance& tolerance) {
  static std::map<std::string, std::unique_ptr<CandidateCheck>> checks;
  std::unique_ptr<CandidateCheck>& check = checks[backend];
  if (!check) check = std::make_unique<CandidateCheck>(backend);
  Totals totals;
  for (int number = 0; number < cases; ++number) {
    Dice dice(seed * 100000 + static_cast<uint64_t>(number));
    const RandomGraph made = make(dice, check->registry());
    const CheckResult result = check->run(made.builder.graph(), made.fed, tolerance, made.sparse);
    totals.candidates += result.candidates;
    totals.resized += result.resized;
    totals.largest = std::max(totals.largest, result.largest);
    if (result.candidates > 0) ++totals.answered;
    if (result.sparse > 0) ++totals.sparse;
    for (const std::string& refusal : result.refusals) ++totals.refusals[refusal];
    for (const std::string& failure : result.failures) {
      ADD_FAILURE() << "case " << number << ": " << failure;
      ++totals.failures;
    }
    if (totals.failures > kMaxFailures) {
      ADD_FAILURE() << "too many failures, stopped at case " << number;
      break;
    }
  }
  std::cout << "           " << cases << " cases, " << totals.answered << " answered by "
            << totals.candidates << " candidates of up to " << totals.largest << " nodes, "
            << totals.resized << " with kernels of other sizes\n";
  for (const auto& [refusal, count] : totals.refusals) {
    std::cout << "           refused " << count << " x " << refusal << "\n";
  }
  return totals;
}

}  // namespace tessera
