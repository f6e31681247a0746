#include "cli/trace_file.h"

#include "cli/json_output.h"

namespace tessera::cli {
namespace {

double microseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// A "complete" event ("X"), in microseconds. Nesting follows from the times.
Json event(const std::string& name, const char* category, const Span& span, Json arguments) {
  return {{"name", name},
          {"cat", category},
          {"ph", "X"},
          {"ts", microseconds(span.start)},
          {"dur", microseconds(span.duration)},
          {"pid", 1},
          {"tid", 1},
          {"args", std::move(arguments)}};
}

Json step_arguments(const StepRecord& step) {
  Json arguments = {{"op", step.op}, {"flops", step.flops}, {"bytes", step.bytes}};
  const auto nanoseconds = static_cast<double>(step.duration.count());
  if (nanoseconds > 0) arguments["GFLOP/s"] = static_cast<double>(step.flops) / nanoseconds;
  return arguments;
}

}  // namespace

std::string trace_text(const RunTimes& times, const std::vector<StepRecord>& steps) {
  Json events = Json::array();
  events.push_back(event("load", "stage", times.load, Json::object()));
  events.push_back(event("bind", "stage", times.bind, Json::object()));
  events.push_back(event("run", "stage", times.run, Json::object()));
  for (const StepRecord& step : steps) {
    const Span span{times.run.start + step.start, step.duration};
    events.push_back(event(step.node, step.op.c_str(), span, step_arguments(step)));
  }
  return json_text({{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}});
}

}  // namespace tessera::cli
