#include "cli/run_report.h"

#include <algorithm>
#include <sstream>

#include "cli/quantities.h"

namespace tessera::cli {
namespace {

std::string span_text(const Span& span) { return time_text(milliseconds(span.duration) / 1000); }

std::string file_name(const std::string& kind, size_t index) {
  return kind + "_" + std::to_string(index) + ".npy";
}

std::string comparison_text(const NamedComparison& named, const TextStyle& style) {
  const std::string location = "output '" + named.name + "'";
  if (named.comparison.is_match()) return wrapped(location + " is as expected", style);
  std::string text = wrapped(location + " is not as expected:", style);
  std::istringstream lines(explain(named.comparison, named.type));
  for (std::string line; std::getline(lines, line);) text += wrapped(line, style, "  ");
  return text;
}

Json mismatch_json(const NamedComparison& named) {
  const Comparison& comparison = named.comparison;
  Json json = {{"value", named.name}};
  if (!comparison.difference_in_type.empty()) {
    // There are no elements to compare, so these keys are null.
    json["message"] = comparison.difference_in_type;
    for (const char* key : {"worst_indices", "expected", "actual", "difference", "tolerance",
                            "off_count", "element_count"}) {
      json[key] = nullptr;
    }
    return json;
  }
  json["message"] = explain(comparison, named.type);
  json["worst_indices"] = comparison.worst_indices;
  json["expected"] = number_json(comparison.expected);
  json["actual"] = number_json(comparison.actual);
  json["difference"] = number_json(comparison.difference);
  json["tolerance"] = number_json(comparison.allowed);
  json["off_count"] = comparison.elements_off;
  json["element_count"] = comparison.elements;
  return json;
}

}  // namespace

bool RunReport::is_match() const {
  return std::all_of(comparisons.begin(), comparisons.end(),
                     [](const NamedComparison& named) { return named.comparison.is_match(); });
}

std::string report_text(const RunReport& report, const TextStyle& style) {
  TextTable table({{"output", Align::Left, true},
                   {"type"},
                   {"shape", Align::Left, true},
                   {"elements", Align::Left, true}});
  for (const NamedTensor& output : report.outputs) {
    table.add_row({output.name, std::string(name(output.tensor.type())),
                   dims_text(output.tensor.dims()), summarise(output.tensor)});
  }
  std::string text = table.text(style);
  for (const NamedComparison& comparison : report.comparisons) {
    text += comparison_text(comparison, style);
  }
  text += wrapped("load " + span_text(report.times.load) + ", bind " +
                      span_text(report.times.bind) + ", first run " + span_text(report.times.run) +
                      ", " + count_text(report.threads, "thread"),
                  style);
  if (report.new_cache.empty()) return text;
  return text +
         wrapped("binding measured the time of each library, once: the next start finds it in " +
                     report.new_cache,
                 style);
}

Json report_json(const RunReport& report) {
  Json json = {{"model", report.model},
               {"outputs", Json::array()},
               {"load_us", microseconds(report.times.load.duration)},
               {"bind_us", microseconds(report.times.bind.duration)},
               {"run_us", microseconds(report.times.run.duration)},
               {"thread_count", report.threads},
               {"is_match", report.comparisons.empty() ? Json(nullptr) : Json(report.is_match())},
               {"mismatches", Json::array()}};
  for (size_t index = 0; index < report.outputs.size(); ++index) {
    Json output = to_json(report.outputs[index].name, report.outputs[index].tensor);
    output["file"] = report.has_output_files ? file_name("output", index) : "";
    json["outputs"].push_back(std::move(output));
  }
  for (const NamedComparison& comparison : report.comparisons) {
    if (!comparison.comparison.is_match()) json["mismatches"].push_back(mismatch_json(comparison));
  }
  return json;
}

void write_tensors(const std::filesystem::path& folder, const std::string& kind,
                   const std::vector<NamedTensor>& tensors, bool with_nodes, StagedFiles& files) {
  Json entries = Json::array();
  for (size_t index = 0; index < tensors.size(); ++index) {
    const NamedTensor& named = tensors[index];
    const std::string file = file_name(kind, index);
    files.write_tensor(folder / file, named.tensor);
    Json entry = {{"name", named.name},
                  {"type", name(named.tensor.type())},
                  {"shape", named.tensor.dims()},
                  {"file", file}};
    if (with_nodes) entry["node"] = named.node;
    if (with_nodes && !named.backend.empty()) entry["backend"] = named.backend;
    entries.push_back(std::move(entry));
  }
  files.write_text(folder / (kind + "s.json"), json_file_text(entries));
}

}  // namespace tessera::cli
