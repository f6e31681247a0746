// The JSON output that explain_report.h declares; explain_report.cc has the text output.
#include <numeric>

#include "cli/costs_report.h"
#include "cli/explain_report.h"
#include "cli/plan_json.h"
#include "cli/plan_summary.h"

namespace tessera::cli {
namespace {

double share_of(double part, double total) { return total > 0 ? part / total : 0; }

Json step_json(const PlanStep& step, size_t index, double time_us, double total_us) {
  return fields_json(step, {{"index", index},
                            {"kind", kind_of(step)},
                            {"median_us", time_us},
                            {"share", share_of(time_us, total_us)},
                            {"gflop_per_second", gflops_of(step.flops, time_us)}});
}

}  // namespace

Json explain_json(const ExplainReport& report, const std::vector<size_t>& steps) {
  const PlanDescription& plan = report.plan;
  const PlanCounts counts = count_steps(plan);
  const double total_us = std::accumulate(report.step_us.begin(), report.step_us.end(), 0.0);
  Json json = {{"model", report.model},
               {"thread_count", report.threads},
               {"run_count", report.runs},
               {"median_us", report.run_us},
               {"step_count", counts.steps},
               {"conversion_count", counts.conversions},
               {"arena_bytes", plan.arena_bytes},
               {"pack_bytes", plan.pack_bytes},
               {"library_bytes", plan.library_bytes},
               {"placement", placement_json(plan.placement, report.run_us)},
               {"tuning", plan.placement ? to_json(plan.tuning) : Json(nullptr)},
               {"steps", Json::array()},
               {"totals", Json::array()},
               {"refusals", Json::array()},
               {"candidates", to_json(candidates_of(plan.candidates, nodes_of(plan, steps)))},
               {"conversions", to_json(plan.conversions)}};
  for (const size_t index : steps) {
    json["steps"].push_back(step_json(plan.steps[index], index, report.step_us[index], total_us));
  }
  for (const StepTotal& total : step_totals(plan, report.step_us)) {
    json["totals"].push_back({{"kind", total.kind},
                              {"backend", total.backend},
                              {"step_count", total.steps},
                              {"flop_count", total.flops},
                              {"median_us", total.time_us},
                              {"share", share_of(total.time_us, total_us)}});
  }
  for (const RefusalGroup& group : group_refusals(plan)) {
    json["refusals"].push_back(
        {{"backend", group.backend}, {"reason", group.reason}, {"nodes", group.nodes}});
  }
  return json;
}

}  // namespace tessera::cli
