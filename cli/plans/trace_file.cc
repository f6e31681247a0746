#include "cli/plans/trace_file.h"

#include <map>

#include "cli/output/json_output.h"
#include "cli/plans/plan_summary.h"

namespace tessera::cli {
namespace {

// Lines of the trace: that of the host, then one for each device.
constexpr int kHostLine = 1;

// A "complete" event ("X"), with times in microseconds. Viewers derive the nesting from the times.
Json event(const std::string& name, const std::string& category, const Span& span, Json arguments,
           int line = kHostLine) {
  return {{"name", name},
          {"cat", category},
          {"ph", "X"},
          {"ts", microseconds(span.start)},
          {"dur", microseconds(span.duration)},
          {"pid", 1},
          {"tid", line},
          {"args", std::move(arguments)}};
}

// Names the process or a line.
Json name_event(const std::string& what, const std::string& name, int line) {
  return {{"name", what}, {"cat", "__metadata"},     {"ph", "M"}, {"ts", 0}, {"pid", 1},
          {"tid", line},  {"args", {{"name", name}}}};
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
  if (!record.graph.empty()) {
    arguments["graph"] = record.graph;
    arguments["runs"] = record.runs;
  }
  arguments["flops"] = record.flops;
  arguments["bytes"] = record.bytes;
  const double gflops = gflops_of(record.flops, microseconds(record.duration));
  if (gflops > 0) arguments["GFLOP/s"] = gflops;
  return arguments;
}

// A step of a device: the span on the host, and the span on the device.
void add_device_step(const StepRecord& record, const Span& span, Json arguments, int line,
                     Json& events) {
  const Span enqueue{span.start, record.enqueue};
  const Span rest{span.start + record.enqueue, span.duration - record.enqueue};
  events.push_back(event("enqueue " + record.node, record.op, enqueue, Json::object()));
  events.push_back(event("synchronise", "synchronise", rest, Json::object()));
  events.push_back(event(record.node, record.op, rest, std::move(arguments), line));
}

}  // namespace

std::string trace_text(const Trace& trace) {
  Json events = Json::array();
  add_stages("load", trace.load, trace.load_stages, events);
  add_stages("bind", trace.bind, trace.bind_stages, events);
  events.push_back(event("run", "stage", trace.run, Json::object()));
  const std::vector<std::optional<size_t>> indices = plan_indices(trace.steps, trace.plan);
  std::map<std::string, int> lines;
  for (size_t index = 0; index < trace.steps.size(); ++index) {
    const StepRecord& record = trace.steps[index];
    const Span span{trace.run.start + record.start, record.duration};
    const PlanStep* const step = indices[index] ? &trace.plan.steps[*indices[index]] : nullptr;
    if (record.device == "cpu") {
      events.push_back(event(record.node, record.op, span, step_arguments(record, step)));
      continue;
    }
    const auto [line, is_new] =
        lines.try_emplace(record.device, kHostLine + 1 + static_cast<int>(lines.size()));
    add_device_step(record, span, step_arguments(record, step), line->second, events);
  }
  events.push_back(name_event("process_name", "tessera", kHostLine));
  events.push_back(name_event("thread_name", "host", kHostLine));
  for (const auto& [device, line] : lines) {
    events.push_back(name_event("thread_name", "device " + device, line));
  }
  return json_file_text({{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}});
}

}  // namespace tessera::cli
