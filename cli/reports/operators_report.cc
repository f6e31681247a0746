#include "cli/reports/operators_report.h"

namespace tessera::cli {
namespace {

std::string operator_text(const OperatorCoverage& coverage) {
  return coverage.domain.empty() ? coverage.name : coverage.domain + "." + coverage.name;
}

std::string versions_text(const OperatorCoverage& coverage) {
  std::vector<std::string> parts;
  for (const int version : coverage.versions) parts.push_back(std::to_string(version));
  const std::string end =
      coverage.last_version > 0 ? " (until " + std::to_string(coverage.last_version) + ")" : "";
  return joined(parts) + end;
}

std::vector<std::string> backends_of(const OperatorCoverage& coverage,
                                     const OpsByBackend& backends) {
  std::vector<std::string> names;
  if (!coverage.domain.empty() || coverage.is_experiment) return names;
  for (const auto& [backend, ops] : backends) {
    if (ops.contains(coverage.name)) names.push_back(backend);
  }
  return names;
}

}  // namespace

std::string operators_text(const std::vector<OperatorCoverage>& operators,
                           const OpsByBackend& backends, const TextStyle& style) {
  TextTable table({{"operator", Align::Left, true},
                   {"versions", Align::Left, true},
                   {"elements", Align::Left, true},
                   {"kernels besides the reference", Align::Left, true}});
  std::vector<std::string> missing;
  for (const OperatorCoverage& coverage : operators) {
    if (coverage.versions.empty()) {
      missing.push_back(operator_text(coverage));
      continue;
    }
    table.add_row({operator_text(coverage), versions_text(coverage),
                   element_types_text(coverage.types), joined(backends_of(coverage, backends))});
  }
  std::string text = table.text(style);
  if (!missing.empty()) {
    text += "\n" + wrapped("ONNX also has " + std::to_string(missing.size()) +
                               " operators that are not in this build: " + joined(missing),
                           style);
  }
  return text;
}

Json operators_json(const std::vector<OperatorCoverage>& operators, const OpsByBackend& backends) {
  Json list = Json::array();
  for (const OperatorCoverage& coverage : operators) {
    Json variables = Json::array();
    for (const ops::TypeVariable& variable : coverage.types) {
      Json types = Json::array();
      for (const DataType type : members(variable.types)) types.push_back(name(type));
      variables.push_back({{"name", variable.name}, {"types", std::move(types)}});
    }
    Json last = coverage.last_version > 0 ? Json(coverage.last_version) : Json();
    list.push_back({{"op", coverage.name},
                    {"domain", coverage.domain},
                    {"op_versions", coverage.versions},
                    {"last_opset_version", std::move(last)},
                    {"is_experiment", coverage.is_experiment},
                    {"type_variables", std::move(variables)},
                    {"backends", backends_of(coverage, backends)}});
  }
  return {{"operators", std::move(list)}};
}

}  // namespace tessera::cli
