#include "cli/reports/run_report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <sstream>

#include "cli/output/quantities.h"

namespace tessera::cli {
namespace {

std::string type_text(const Tensor& tensor) {
  return std::string(name(tensor.type())) + " " + dims_text(tensor.dims());
}

// The difference by which an element exceeds its tolerance; 0 or less if it matches.
WideNumber excess_of(WideNumber actual, WideNumber expected, WideNumber allowed) {
  if (std::isnan(actual) && std::isnan(expected)) return 0;
  if (actual == expected) return 0;  // equal infinities have no difference
  if (!std::isfinite(actual) || !std::isfinite(expected)) {
    return std::numeric_limits<WideNumber>::infinity();
  }
  return std::abs(actual - expected) - allowed;
}

// The first strings that differ, and how many do; "" if all are equal.
std::string difference_of_strings(const Tensor& actual, const Tensor& expected) {
  const std::span<const std::string> left = actual.as<std::string>();
  const std::span<const std::string> right = expected.as<std::string>();
  const auto [first, other] = std::ranges::mismatch(left, right);
  if (first == left.end()) return "";
  const int64_t index = first - left.begin();
  const auto equal = std::inner_product(left.begin(), left.end(), right.begin(), int64_t{0},
                                        std::plus<>(), std::equal_to<>());
  return "element " + indices_text(indices_of(expected.dims(), index)) + ": expected " +
         element_text(expected, index, 0) + ", found " + element_text(actual, index, 0) + "\n" +
         std::to_string(expected.elements() - equal) + " of " +
         std::to_string(expected.elements()) + " elements are off";
}

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
  if (!comparison.other_difference.empty()) {
    // No numbers were compared, so these keys are null.
    json["message"] = comparison.other_difference;
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

Comparison compare(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance) {
  Comparison result;
  result.elements = expected.elements();
  if (actual.type() != expected.type() || actual.dims() != expected.dims()) {
    result.other_difference = "expected " + type_text(expected) + ", found " + type_text(actual);
    return result;
  }
  if (expected.is_strings()) {
    result.other_difference = difference_of_strings(actual, expected);
    return result;
  }
  WideNumber worst_excess = 0;
  for (int64_t index = 0; index < expected.elements(); ++index) {
    const WideNumber left = element_at(actual, index);
    const WideNumber right = element_at(expected, index);
    const WideNumber allowed = tolerance.absolute + tolerance.relative * std::abs(right);
    const WideNumber excess = excess_of(left, right, allowed);
    if (!(excess > 0)) continue;
    ++result.elements_off;
    if (excess <= worst_excess) continue;
    worst_excess = excess;
    result.worst_indices = indices_of(expected.dims(), index);
    result.actual = left;
    result.expected = right;
    result.difference = std::abs(left - right);
    result.allowed = allowed;
  }
  return result;
}

std::string explain(const Comparison& comparison, DataType type) {
  if (comparison.is_match()) return "";
  if (!comparison.other_difference.empty()) return comparison.other_difference;
  const int digits = distinguishing_digits(type);
  std::string text = "worst element " + indices_text(comparison.worst_indices) + ": expected " +
                     number_text(comparison.expected, digits) + ", found " +
                     number_text(comparison.actual, digits);
  if (std::isfinite(comparison.difference)) {
    text += "\noff by " + number_text(comparison.difference, 6) + ", allowed " +
            number_text(comparison.allowed, 6);
  }
  return text + "\n" + std::to_string(comparison.elements_off) + " of " +
         std::to_string(comparison.elements) + " elements are off";
}

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
