#include "cli/run_report.h"

#include <algorithm>
#include <sstream>

#include "cli/text_table.h"

namespace tessera::cli {
namespace {

std::string milliseconds_text(const Span& span) {
  return decimal_text(milliseconds(span.duration), 2) + " ms";
}

std::string file_name(const std::string& kind, size_t index) {
  return kind + "_" + std::to_string(index) + ".npy";
}

std::string comparison_text(const NamedComparison& named) {
  const std::string place = "output '" + printable(named.name) + "'";
  if (named.comparison.is_match()) return place + " is as expected\n";
  std::string text = place + " is not as expected:\n";
  std::istringstream lines(explain(named.comparison, named.type));
  for (std::string line; std::getline(lines, line);) text += "  " + line + "\n";
  return text;
}

Json mismatch_json(const NamedComparison& named) {
  const Comparison& comparison = named.comparison;
  Json json = {{"name", named.name}};
  if (!comparison.difference_in_type.empty()) {
    json["message"] = comparison.difference_in_type;
    return json;
  }
  json["message"] = explain(comparison, named.type);
  json["worst_indices"] = comparison.worst_indices;
  json["expected"] = number_json(comparison.expected);
  json["actual"] = number_json(comparison.actual);
  json["difference"] = number_json(comparison.difference);
  json["allowed"] = number_json(comparison.allowed);
  json["elements_off"] = comparison.elements_off;
  json["elements"] = comparison.elements;
  return json;
}

}  // namespace

bool RunReport::is_match() const {
  return std::all_of(comparisons.begin(), comparisons.end(),
                     [](const NamedComparison& named) { return named.comparison.is_match(); });
}

std::string report_text(const RunReport& report) {
  TextTable table({{"output", Align::Left, true},
                   {"type"},
                   {"shape", Align::Left, true},
                   {"elements", Align::Left, true}});
  for (const NamedTensor& output : report.outputs) {
    table.add_row({output.name, std::string(name(output.tensor.type())),
                   dims_text(output.tensor.dims()), summarise(output.tensor)});
  }
  std::string text = table.text();
  for (const NamedComparison& comparison : report.comparisons) text += comparison_text(comparison);
  return text + "load " + milliseconds_text(report.times.load) + ", bind " +
         milliseconds_text(report.times.bind) + ", run " + milliseconds_text(report.times.run) +
         ", " + std::to_string(report.threads) + (report.threads == 1 ? " thread\n" : " threads\n");
}

Json report_json(const RunReport& report) {
  Json json = {{"model", report.model}, {"outputs", Json::array()}};
  for (size_t index = 0; index < report.outputs.size(); ++index) {
    Json output = to_json(report.outputs[index].name, report.outputs[index].tensor);
    if (report.has_output_files) output["file"] = file_name("output", index);
    json["outputs"].push_back(std::move(output));
  }
  json["milliseconds"] = milliseconds(report.times.run.duration);
  json["load_milliseconds"] = milliseconds(report.times.load.duration);
  json["bind_milliseconds"] = milliseconds(report.times.bind.duration);
  json["threads"] = report.threads;
  if (report.comparisons.empty()) return json;
  json["matches"] = report.is_match();
  json["mismatches"] = Json::array();
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
    Json entry = to_json(named.name, named.tensor);
    entry["file"] = file;
    if (with_nodes) entry["node"] = named.node;
    if (with_nodes && !named.backend.empty()) entry["backend"] = named.backend;
    entries.push_back(std::move(entry));
  }
  files.write_text(folder / (kind + "s.json"), json_text(entries));
}

}  // namespace tessera::cli
