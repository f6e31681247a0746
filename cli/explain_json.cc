// The JSON of explain_report.h, whose text is in explain_report.cc.
#include <numeric>

#include "cli/costs_report.h"
#include "cli/explain_report.h"
#include "cli/placement_report.h"
#include "cli/plan_summary.h"

namespace tessera::cli {
namespace {

Json ports_json(const std::vector<PlanPort>& ports) {
  Json json = Json::array();
  for (const PlanPort& port : ports) {
    json.push_back({{"value", port.value},
                    {"type", port.type},
                    {"layout", port.layout},
                    {"device", port.device},
                    {"is_constant", port.is_constant},
                    {"pack", port.pack},
                    {"capacity", port.capacity ? Json(*port.capacity) : Json()},
                    {"density", port.density ? Json(*port.density) : Json()}});
  }
  return json;
}

double share_of(double part, double total) { return total > 0 ? part / total : 0; }

Json step_json(const PlanStep& step, size_t index, double time_us, double total_us) {
  Json refusals = Json::array();
  for (const BackendRefusal& refusal : step.refusals) {
    refusals.push_back(
        {{"backend", refusal.backend}, {"node", refusal.node}, {"reason", refusal.reason}});
  }
  return {{"index", index},
          {"name", step.name},
          {"op", step.op},
          {"backend", step.backend},
          {"algorithm", step.algorithm},
          {"threads", step.threads},
          {"nodes", step.nodes},
          {"inputs", ports_json(step.inputs)},
          {"outputs", ports_json(step.outputs)},
          {"flops", step.flops},
          {"bytes", step.bytes},
          {"workspace_bytes", step.workspace_bytes},
          {"is_in_place", step.is_in_place},
          {"median_us", time_us},
          {"predicted_us", step.predicted_seconds ? Json(*step.predicted_seconds * 1e6) : Json()},
          {"share", share_of(time_us, total_us)},
          {"gflops", gflops_of(step.flops, time_us)},
          {"refusals", std::move(refusals)}};
}

}  // namespace

Json explain_json(const ExplainReport& report, const std::vector<size_t>& steps) {
  const PlanDescription& plan = report.plan;
  const PlanCounts counts = count_steps(plan);
  const double total_us = std::accumulate(report.step_us.begin(), report.step_us.end(), 0.0);
  Json json = {{"model", report.model},
               {"threads", report.threads},
               {"runs", report.runs},
               {"median_us", report.run_us},
               {"step_count", counts.steps},
               {"conversions", counts.conversions},
               {"arena_bytes", plan.arena_bytes},
               {"pack_bytes", plan.pack_bytes},
               {"library_bytes", plan.library_bytes},
               {"placement", placement_json(plan.placement, report.run_us / 1000)},
               {"steps", Json::array()},
               {"totals", Json::array()},
               {"refusals", Json::array()}};
  if (plan.placement) {
    json["tuning"] = to_json(plan.tuning);
    json["candidates"] = Json::array();
    json["conversion_costs"] = Json::array();
    for (const CandidateDescription& each : candidates_of(plan.candidates, nodes_of(plan, steps))) {
      json["candidates"].push_back(to_json(each));
    }
    for (const ConversionDescription& each : plan.conversions) {
      json["conversion_costs"].push_back(to_json(each));
    }
  }
  for (const size_t index : steps) {
    json["steps"].push_back(step_json(plan.steps[index], index, report.step_us[index], total_us));
  }
  for (const TimeShare& share : time_shares(plan, report.step_us)) {
    json["totals"].push_back({{"name", share.name},
                              {"steps", share.steps},
                              {"flops", share.flops},
                              {"median_us", share.time_us},
                              {"share", share_of(share.time_us, total_us)}});
  }
  for (const RefusalGroup& group : group_refusals(plan)) {
    json["refusals"].push_back(
        {{"backend", group.backend}, {"reason", group.reason}, {"nodes", group.nodes}});
  }
  return json;
}

}  // namespace tessera::cli
