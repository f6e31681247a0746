// The JSON output that explain_report.h declares, and how it is read again; explain_report.cc has
// the text output.
#include <numeric>
#include <utility>

#include "cli/plans/costs_report.h"
#include "cli/plans/explain_report.h"
#include "cli/plans/plan_json.h"
#include "cli/plans/plan_summary.h"

namespace tessera::cli {
namespace {

double share_of(double part, double total) { return total > 0 ? part / total : 0; }

Json step_json(const PlanStep& step, size_t index, double time_us, double total_us) {
  return fields_json(step, {{"index", index},
                            {"kind", kind_of(step)},
                            {"median_us", time_us},
                            {"run_count", 1},
                            {"share", share_of(time_us, total_us)},
                            {"gflop_per_second", gflops_of(step.flops, time_us)}});
}

Json nested_step_json(const PlanStep& step, size_t index, const ExplainReport::NestedTime& time,
                      double total_us) {
  Json json = fields_json(step, {{"index", index},
                                 {"kind", kind_of(step)},
                                 {"median_us", nullptr},
                                 {"run_count", time.runs},
                                 {"share", nullptr},
                                 {"gflop_per_second", nullptr}});
  if (time.runs == 0) return json;
  json["median_us"] = time.time_us;
  json["share"] = share_of(time.time_us, total_us);
  json["gflop_per_second"] = gflops_of(step.flops * time.runs, time.time_us);
  return json;
}

Json libraries_json(const ExplainReport& report) {
  Json json = Json::array();
  for (const auto& [backend, version] : report.libraries) {
    json.push_back({{"backend", backend}, {"version", version}});
  }
  return json;
}

// A value of the text that is read, and where it is: "steps[3].outputs[0]".
struct Found {
  const Json& json;
  std::string place;
};

// A number, or the kind of anything else, which may be long.
std::string found_text(const Json& json) {
  return json.is_number() ? json.dump() : json.type_name();
}

// Reads the members that explain_json() writes. Every member must have the right kind.
class JsonReader {
 public:
  explicit JsonReader(const std::string& file) : file_(file) {}

  [[noreturn]] void refuse(const std::string& place, const std::string& expected,
                           const std::string& found) const {
    throw Error(ErrorKind::InvalidArgument,
                "file '" + file_ + "'" + (place.empty() ? "" : ", ") + place,
                "expected " + expected + ", as 'tessera explain --json' prints it, found " + found);
  }

  Found member(const Found& object, const std::string& key) const {
    if (!object.json.is_object()) refuse(object.place, "an object", object.json.type_name());
    const std::string place = object.place + (object.place.empty() ? "" : ".") + key;
    const auto at = object.json.find(key);
    if (at == object.json.end()) refuse(place, "a value", "none");
    return {*at, place};
  }
  std::string text(const Found& object, const std::string& key) const {
    const Found found = member(object, key);
    if (!found.json.is_string()) refuse(found.place, "a text", found.json.type_name());
    return found.json.get<std::string>();
  }
  double time(const Found& object, const std::string& key) const {
    // Thirty years; sums of such times are exact enough and finite.
    constexpr double kMaxMicroseconds = 1e15;
    const Found found = member(object, key);
    const bool is_time = found.json.is_number() && found.json.get<double>() >= 0 &&
                         found.json.get<double>() <= kMaxMicroseconds;
    if (!is_time) refuse(found.place, "a time of 0 to 1e15", found_text(found.json));
    return found.json.get<double>();
  }
  int64_t count(const Found& object, const std::string& key) const {
    constexpr int64_t kMaxCount = 1'000'000'000;
    const Found found = member(object, key);
    const bool is_count =
        found.json.is_number_unsigned() && found.json.get<uint64_t>() <= kMaxCount;
    if (!is_count) refuse(found.place, "a count", found_text(found.json));
    return found.json.get<int64_t>();
  }
  // Calls `read` for each element of a list.
  template <class Read>
  void each(const Found& object, const std::string& key, const Read& read) const {
    const Found list = member(object, key);
    if (!list.json.is_array()) refuse(list.place, "a list", list.json.type_name());
    for (size_t index = 0; index < list.json.size(); ++index) {
      read(Found{list.json[index], list.place + "[" + std::to_string(index) + "]"});
    }
  }

 private:
  const std::string& file_;
};

std::vector<PlanPort> read_ports(const JsonReader& reader, const Found& step,
                                 const std::string& key) {
  std::vector<PlanPort> ports;
  reader.each(step, key, [&](const Found& port) {
    const Found is_constant = reader.member(port, "is_constant");
    if (!is_constant.json.is_boolean()) {
      reader.refuse(is_constant.place, "true or false", is_constant.json.type_name());
    }
    ports.push_back({.value = reader.text(port, "value"),
                     .type = reader.text(port, "tensor"),
                     .layout = reader.text(port, "layout"),
                     .device = reader.text(port, "device"),
                     .pack = reader.text(port, "pack"),
                     .is_constant = is_constant.json.get<bool>()});
  });
  return ports;
}

PlanStep read_step(const JsonReader& reader, const Found& found) {
  PlanStep step;
  step.name = reader.text(found, "name");
  step.op = reader.text(found, "op");
  step.backend = reader.text(found, "backend");
  step.algorithm = reader.text(found, "algorithm");
  step.threads = static_cast<int>(reader.count(found, "thread_count"));
  reader.each(found, "nodes", [&](const Found& node) {
    if (!node.json.is_string()) reader.refuse(node.place, "a text", node.json.type_name());
    step.nodes.push_back(node.json.get<std::string>());
  });
  step.inputs = read_ports(reader, found, "inputs");
  step.outputs = read_ports(reader, found, "outputs");
  return step;
}

}  // namespace

ExplainReport read_explain_json(const std::string& text, const std::string& file) {
  const JsonReader reader(file);
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) reader.refuse("", "JSON", "something else");
  const Found whole{json, ""};
  ExplainReport report;
  report.model = reader.text(whole, "model");
  if (json.contains("processor")) {
    report.version = reader.text(whole, "version");
    report.processor = reader.text(whole, "processor");
    reader.each(whole, "libraries", [&](const Found& library) {
      report.libraries[reader.text(library, "backend")] = reader.text(library, "version");
    });
  }
  report.threads = static_cast<int>(reader.count(whole, "thread_count"));
  report.runs = reader.count(whole, "run_count");
  report.run_us = reader.time(whole, "median_us");
  reader.each(whole, "steps", [&](const Found& step) {
    report.plan.steps.push_back(read_step(reader, step));
    report.step_us.push_back(reader.time(step, "median_us"));
  });
  const auto steps = static_cast<int64_t>(report.plan.steps.size());
  if (steps != reader.count(whole, "step_count")) {
    reader.refuse("steps", "all " + std::to_string(reader.count(whole, "step_count")) + " steps",
                  std::to_string(steps) + "; it was printed with --node");
  }
  return report;
}

Json explain_json(const ExplainReport& report, const std::vector<size_t>& steps) {
  const PlanDescription& plan = report.plan;
  const PlanCounts counts = count_steps(plan);
  const double total_us = std::accumulate(report.step_us.begin(), report.step_us.end(), 0.0);
  Json json = {{"model", report.model},
               {"version", report.version},
               {"processor", report.processor},
               {"libraries", libraries_json(report)},
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
               {"nested_steps", Json::array()},
               {"totals", Json::array()},
               {"refusals", Json::array()},
               {"candidates", to_json(candidates_of(plan.candidates, nodes_of(plan, steps)))},
               {"conversions", to_json(plan.conversions)}};
  for (const size_t index : steps) {
    json["steps"].push_back(step_json(plan.steps[index], index, report.step_us[index], total_us));
  }
  for (size_t index = 0; index < plan.nested_steps.size(); ++index) {
    json["nested_steps"].push_back(
        nested_step_json(plan.nested_steps[index], index, nested_time(report, index), total_us));
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
