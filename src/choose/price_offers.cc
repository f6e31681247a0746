#include "choose/price_offers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "backend/graph_view.h"
#include "choose/placement_problem.h"
#include "place/cheapest_parts.h"

namespace tessera {
namespace {

PlanPort describe_port(const tuning::TuningTask& task, ValueId value, LayoutId layout,
                       const tessera_pack* pack) {
  const Value& described = task.graph[value];
  return {.value = described.name,
          .type = text(described.type),
          .layout = task.layouts.name(layout),
          .device = task.layouts.device_label(layout),
          .pack = pack == nullptr ? "" : std::string(pack->id),
          .is_constant = described.is_constant()};
}

MeasuredTime describe_time(const tuning::Timing& timing) {
  return {timing.seconds, timing.low, timing.high, timing.rounds};
}

}  // namespace

Offers collect_offers_for_all_threads(const tessera_graph& view,
                                      std::span<const std::shared_ptr<const Plugin>> plugins,
                                      const LayoutTable& layouts, ThreadPool& pool,
                                      OfferOptions options) {
  options.threads = pool.threads();
  Offers offers;
  pool.execute([&] { offers = collect_offers(view, plugins, layouts, options); });
  return offers;
}

Offers collect_offers_for_one_thread(const tessera_graph& view,
                                     std::span<const std::shared_ptr<const Plugin>> plugins,
                                     const LayoutTable& layouts, const OfferOptions& options) {
  ThreadPool one(1);
  Offers offers = collect_offers_for_all_threads(view, plugins, layouts, one, options);
  for (Candidate& candidate : offers.candidates) {
    const bool is_view = (candidate.flags & TESSERA_CANDIDATE_VIEW) != 0;
    if (!is_view) candidate.threads = 1;
  }
  return offers;
}

Offers collect_offers_by_threads(const tessera_graph& view,
                                 std::span<const std::shared_ptr<const Plugin>> plugins,
                                 const LayoutTable& layouts, ThreadPool& pool,
                                 const OfferOptions& options) {
  Offers offers = collect_offers_for_all_threads(view, plugins, layouts, pool, options);
  if (pool.threads() == 1) return offers;
  Offers alone = collect_offers_for_one_thread(view, plugins, layouts, options);
  // Refusals and views are the same as for all threads, so they are not added again.
  for (Candidate& candidate : alone.candidates) {
    if (candidate.threads == 1) offers.candidates.push_back(std::move(candidate));
  }
  return offers;
}

PricedOffers::PricedOffers(const tuning::TuningTask& task, const tuning::CostTable& table,
                           int64_t runs_per_build, const ChooseTuning& tuning)
    : task_(task),
      table_(table),
      tuning_(tuning),
      groups_(tuning::collect_groups(task)),
      keys_(tuning::cost_keys(task, groups_)),
      basis_(tuning::make_price_basis(task, groups_)) {
  set_runs_per_build(runs_per_build);
  std::map<tuning::CostKey, int> counts;
  for (const auto& key : keys_) {
    if (key) ++counts[*key];
  }
  for (const auto& key : keys_) candidates_with_key_.push_back(key ? counts[*key] : 1);
}

void PricedOffers::set_runs_per_build(int64_t runs) {
  build_weight_ = runs == 0 ? 0 : 1 / static_cast<double>(runs);
}

void PricedOffers::look_up_bounds(const std::vector<bool>& is_given_up) {
  has_bounds_ = true;
  is_given_up_ = is_given_up;
  look_up({.unmeasured = tuning::Unmeasured::Bounded, .is_guessed = is_given_up});
}

void PricedOffers::look_up_guesses() {
  has_bounds_ = false;
  look_up({});
}

void PricedOffers::look_up(tuning::PriceOptions options) {
  options.conversion_seconds = [this](int64_t bytes) {
    return assumed_conversion_seconds(bytes, tuning_);
  };
  prices_ = tuning::look_up_prices(task_, groups_, basis_, keys_, table_, options);
  look_up_builds();
}

void PricedOffers::look_up_builds() {
  std::map<std::string, std::pair<double, int>> known;  // by backend: sum and count
  for (size_t index = 0; index < prices_.candidates.size(); ++index) {
    const tuning::Cost* cost = prices_.candidates[index].cost;
    if (cost == nullptr || !cost->refusal.empty()) continue;
    auto& [sum, count] = known[task_.offers.candidates[index].backend()];
    sum += cost->build_seconds;
    ++count;
  }
  build_seconds_.assign(prices_.candidates.size(), 0);
  for (size_t index = 0; index < build_seconds_.size(); ++index) {
    const Candidate& candidate = task_.offers.candidates[index];
    if (!candidate.has_kernel()) continue;
    if (candidate.is_compiled()) {
      build_seconds_[index] = tuning_.compiled_load_seconds;
      continue;
    }
    const tuning::Cost* cost = prices_.candidates[index].cost;
    const auto others = known.find(candidate.backend());
    if (cost != nullptr) {
      build_seconds_[index] = cost->build_seconds / candidates_with_key_[index];
    } else if (others != known.end()) {
      const auto& [sum, count] = others->second;
      build_seconds_[index] = sum / count / candidates_with_key_[index];
    }
    if (candidate.is_measured_only()) {
      build_seconds_[index] += tuning_.region_load_seconds;
    } else {
      // A library may build something once in a process. It shows in the measured time of one
      // kernel only, so the estimate of the plug-in is a minimum.
      build_seconds_[index] = std::max(build_seconds_[index], candidate.build_seconds);
    }
  }
}

ChoicePrices PricedOffers::choice_prices() const {
  ChoicePrices prices{.conversions = prices_.conversions, .build_seconds = build_seconds_};
  for (size_t index = 0; index < prices_.candidates.size(); ++index) {
    const auto candidate = static_cast<int>(index);
    const double amortized = amortized_build_seconds(candidate);
    prices.seconds.push_back(prices_.candidates[index].seconds + amortized);
    prices.amortized_build_seconds.push_back(amortized);
    const bool may_be_unknown = has_bounds_ && !is_given_up_[index];
    const bool needs_measurement = task_.offers.candidates[index].is_measured_only() &&
                                   !may_be_unknown && !is_measured(candidate);
    prices.is_refused.push_back(prices_.candidates[index].is_refused() || needs_measurement);
  }
  for (const auto* results : {&task_.graph.outputs, &task_.graph.kept}) {
    for (const ValueId value : *results) prices.results.push_back(value.index);
  }
  return prices;
}

std::vector<Refusal> PricedOffers::refusals() const {
  std::vector<Refusal> refusals;
  for (size_t index = 0; index < prices_.candidates.size(); ++index) {
    if (!prices_.candidates[index].is_refused() || !is_worth_reporting(index)) continue;
    const Candidate& candidate = task_.offers.candidates[index];
    const std::string name = candidate.algorithm.empty()
                                 ? "its candidate"
                                 : "its candidate '" + candidate.algorithm + "'";
    for (const NodeId node : candidate.nodes) {
      refusals.push_back(
          {candidate.preference, candidate.backend(), node,
           name + " was measured and refused: " + prices_.candidates[index].cost->refusal});
    }
  }
  return refusals;
}

bool PricedOffers::is_worth_reporting(size_t index) const {
  const tuning::CandidatePrice& price = prices_.candidates[index];
  return price.cost == nullptr ||
         !tuning::is_unsupported_layout(task_, static_cast<int>(index), *price.cost);
}

CandidateDescription PricedOffers::describe(size_t index) const {
  const Candidate& candidate = task_.offers.candidates[index];
  const tuning::CandidatePrice& price = prices_.candidates[index];
  CandidateDescription described{
      .backend = candidate.backend(),
      .algorithm = candidate.algorithm,
      .threads = candidate.threads == 0 ? task_.threads : candidate.threads,
      .price_seconds = price.seconds,
      .workspace_bytes = candidate.workspace_bytes,
      .library_bytes = candidate.library_bytes};
  for (const NodeId node : candidate.nodes) {
    described.nodes.push_back(task_.graph[node].name);
    described.op += (described.op.empty() ? "" : "+") + task_.graph[node].op;
  }
  for (const CandidateInput& port : candidate.inputs) {
    described.inputs.push_back(describe_port(task_, port.value, port.layout, port.pack));
    if (port.pack != nullptr) described.pack_bytes += port.pack->bytes;
  }
  for (const CandidateOutput& port : candidate.outputs) {
    described.outputs.push_back(describe_port(task_, port.value, port.layout, nullptr));
  }
  if (price.cost == nullptr) return described;
  described.verdict = Verdict::Fine;
  if (price.is_refused()) {
    const bool was_built = price.cost->build_seconds > 0;
    described.verdict = was_built ? Verdict::Refused : Verdict::NotBuilt;
  }
  described.refusal = price.cost->refusal;
  described.error = price.cost->error;
  described.tolerance = price.cost->tolerance;
  described.build_seconds = price.cost->build_seconds;
  if (price.timing != nullptr) {
    described.time = describe_time(*price.timing);
    described.has_cold_weights = price.cost->cold.has_value() && price.timing == &*price.cost->cold;
  }
  return described;
}

std::vector<CandidateDescription> PricedOffers::describe(
    const Placement& placement, const std::vector<CandidateMargin>& margins) const {
  std::vector<CandidateDescription> all;
  for (size_t index = 0; index < prices_.candidates.size(); ++index) {
    all.push_back(describe(index));
  }
  for (const int index : placement.chosen) all[static_cast<size_t>(index)].is_chosen = true;
  for (size_t index = 0; index < margins.size(); ++index) {
    all[index].behind_seconds = margins[index].behind_seconds;
    all[index].ahead_seconds = margins[index].ahead_seconds;
  }
  std::vector<CandidateDescription> reported;
  for (size_t index = 0; index < all.size(); ++index) {
    if (is_worth_reporting(index)) reported.push_back(std::move(all[index]));
  }
  return reported;
}

std::vector<double> PricedOffers::step_seconds(const ExecutionPlan& plan) const {
  std::vector<double> seconds;
  for (const ExecutionStep& step : plan.steps) {
    double& price = seconds.emplace_back(0);
    if (step.kind == ExecutionStep::Kind::View) continue;
    if (step.candidate >= 0) {
      price = prices_.candidates[static_cast<size_t>(step.candidate)].seconds;
      continue;
    }
    const PlanBuffer& from = plan.buffers[static_cast<size_t>(step.inputs[0])];
    if (step.kind == ExecutionStep::Kind::Copy && from.type) {
      const PlanBuffer& to = plan.buffers[static_cast<size_t>(step.outputs[0].buffer)];
      price = assumed_copy_seconds(*from.type, from.bytes,
                                   from.strides.empty() ? to.strides : from.strides, tuning_);
      continue;
    }
    price = assumed_conversion_seconds(from.bytes, tuning_);
    const std::vector<double>& row = prices_.conversions[static_cast<size_t>(from.value.index)];
    if (step.kind != ExecutionStep::Kind::Convert || row.empty()) continue;
    const size_t hop = static_cast<size_t>(step.conversion.from.index) * task_.layouts.size() +
                       static_cast<size_t>(step.conversion.to.index);
    if (std::isfinite(row[hop])) price = row[hop];
  }
  return seconds;
}

std::vector<std::optional<double>> PricedOffers::step_unfused_seconds(
    const ExecutionPlan& plan) const {
  std::vector<std::optional<double>> seconds(plan.steps.size());
  const auto is_group = [&](const ExecutionStep& step) {
    return step.kind == ExecutionStep::Kind::Kernel &&
           task_.offers.candidates[static_cast<size_t>(step.candidate)].nodes.size() > 1;
  };
  if (std::ranges::none_of(plan.steps, is_group)) return seconds;
  PlacementProblem problem = make_problem(task_.graph, task_.offers, task_.layouts, tuning_);
  std::vector<bool> is_known;
  for (size_t index = 0; index < prices_.candidates.size(); ++index) {
    const tuning::CandidatePrice& price = prices_.candidates[index];
    problem.candidates[index].seconds = price.seconds;
    is_known.push_back(!price.is_refused() &&
                       (price.timing != nullptr || !task_.offers.candidates[index].has_kernel()));
  }
  for (size_t index = 0; index < seconds.size(); ++index) {
    if (!is_group(plan.steps[index])) continue;
    const auto candidate = static_cast<size_t>(plan.steps[index].candidate);
    seconds[index] = cheapest_parts_seconds(problem, problem.candidates[candidate].nodes, is_known);
  }
  return seconds;
}

std::vector<ConversionDescription> PricedOffers::describe_conversions() const {
  std::vector<ConversionDescription> all;
  for (const tuning::NeededConversion& needed : tuning::needed_conversions(task_)) {
    const auto found = table_.conversions.find(needed.cost_key);
    if (found == table_.conversions.end()) continue;
    all.push_back({.backend = needed.key.backend,
                   .from = needed.key.from,
                   .to = needed.key.to,
                   .type = std::string(name(needed.key.element)),
                   .bytes = found->second.bytes,
                   .time = describe_time(found->second.timing),
                   .refusal = found->second.refusal});
  }
  return all;
}

}  // namespace tessera
