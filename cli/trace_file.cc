#include "cli/trace_file.h"

#include "cli/json_output.h"
#include "cli/plan_summary.h"

namespace tessera::cli {
namespace {

// A "complete" event ("X"), with times in microseconds. Viewers derive the nesting from the times.
Json event(const std::string& name, const std::string& category, const Span& span, Json arguments) {
  return {{"name", name},
          {"cat", category},
          {"ph", "X"},
          {"ts", microseconds(span.start)},
          {"dur", microseconds(span.duration)},
          {"pid", 1},
          {"tid", 1},
          {"args", std::move(arguments)}};
}

void add_stages(const std::string& name, const Span& whole, const std::vector<StageRecord>& stages,
                Json& events) {
  events.push_back(event(name, "stage", whole, Json::object()));
  for (const StageRecord& stage : stages) {
    // A stage that covers the whole span would only hide it.
    if (stage.name == name) continue;
    Json arguments = Json::object();
    if (stage.bytes > 0) arguments["bytes"] = stage.bytes;
    events.push_back(event(stage.name, "stage", {whole.start + stage.start, stage.duration},
                           std::move(arguments)));
  }
}

Json ports_json(const std::vector<PlanPort>& ports) {
  Json json = Json::array();
  for (const PlanPort& port : ports) {
    const std::string pack = port.pack.empty() ? "" : ", pack " + port.pack;
    json.push_back(port.value + ": " + port.type + " " + port.layout + pack);
  }
  return json;
}

Json step_arguments(const StepRecord& record, const PlanStep* step) {
  Json arguments = {{"op", record.op}};
  if (!record.backend.empty()) arguments["backend"] = record.backend;
  if (!record.algorithm.empty()) arguments["algorithm"] = record.algorithm;
  if (step != nullptr) {
    arguments["layouts"] = layouts_text(*step);
    arguments["nodes"] = step->nodes;
    arguments["inputs"] = ports_json(step->inputs);
    arguments["outputs"] = ports_json(step->outputs);
  }
  arguments["flops"] = record.flops;
  arguments["bytes"] = record.bytes;
  const double gflops = gflops_of(record.flops, microseconds(record.duration));
  if (gflops > 0) arguments["GFLOP/s"] = gflops;
  return arguments;
}

}  // namespace

std::string trace_text(const Trace& trace) {
  Json events = Json::array();
  add_stages("load", trace.load, trace.load_stages, events);
  add_stages("bind", trace.bind, trace.bind_stages, events);
  events.push_back(event("run", "stage", trace.run, Json::object()));
  const std::vector<std::optional<size_t>> indices = plan_indices(trace.steps, trace.plan);
  for (size_t index = 0; index < trace.steps.size(); ++index) {
    const StepRecord& record = trace.steps[index];
    const Span span{trace.run.start + record.start, record.duration};
    const PlanStep* const step = indices[index] ? &trace.plan.steps[*indices[index]] : nullptr;
    events.push_back(event(record.node, record.op, span, step_arguments(record, step)));
  }
  return json_file_text({{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}});
}

}  // namespace tessera::cli
