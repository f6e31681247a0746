// Prints docs/operators.md, the page of all operators that this version loads. tools/write_pages
// writes the file.
#include <cstdio>
#include <string>
#include <vector>

#include "import/onnx/coverage.h"

namespace tessera {
namespace {

constexpr const char* kHead = R"(# Operators

Made by `print_operators` from the table of ops (`src/ops/op_list.inc`) and the conversions in
`src/import/onnx/upgrade`; a test compares them. `tessera inspect --ops` prints the same with the
backends of the machine that have kernels besides the reference; `tessera inspect MODEL` says what a
model needs and this version lacks.

"Versions" are those of the operator's definition, by the operator set that introduced them; a model
means the newest one in its operator set. Nodes of versions before operator set 6 are converted when
a model is loaded. "Elements" are the types of the first type variable of the definition, then those
of the others. "numbers" are integers and floats, "floats" are float16, bfloat16, float32 and
float64, "integers" are signed and unsigned ones of 8 to 64 bits, "all" are numbers, bool and
strings. Older versions take these types, too.
)";

constexpr const char* kExperiments = R"(
## Experiments

Operators of operator sets 1 to 9 that ONNX has removed from its history. They become other
operators when a model is loaded.

)";

constexpr const char* kMissing = R"(
## Missing

Operators that ONNX has, and this version lacks.

)";

std::string cell(const std::string& text) { return text.empty() ? "|" : " " + text + " |"; }

std::string versions_text(const OperatorCoverage& coverage) {
  std::string text;
  for (const int version : coverage.versions) {
    text += (text.empty() ? "" : ", ") + std::to_string(version);
  }
  if (coverage.last_version == 0) return text;
  return text + " (until " + std::to_string(coverage.last_version) + ")";
}

// "## ai.onnx" and its table.
std::string domain_section(const std::vector<OperatorCoverage>& operators,
                           const std::string& domain) {
  std::string rows;
  for (const OperatorCoverage& each : operators) {
    if (each.domain != domain || each.is_experiment || each.versions.empty()) continue;
    rows += "|" + cell("`" + each.name + "`") + cell(versions_text(each)) +
            cell(element_types_text(each.types)) + "\n";
  }
  if (rows.empty()) return "";
  return "\n## " + (domain.empty() ? "ai.onnx" : domain) +
         "\n\n| Operator | Versions | Elements |\n|---|---|---|\n" + rows;
}

std::string list_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "`" : ", `") + name + "`";
  return text + "\n";
}

std::string operators_page() {
  const auto operators = operator_coverage(ops::make_registry());
  std::string page = kHead;
  std::string domain = "none";
  std::vector<std::string> experiments;
  std::vector<std::string> missing;
  for (const OperatorCoverage& each : operators) {
    if (each.domain != domain) page += domain_section(operators, domain = each.domain);
    const std::string prefix = each.domain.empty() ? "" : each.domain + ".";
    const bool is_retired = each.last_version > 0;
    if (each.is_experiment) experiments.push_back(each.name);
    if (each.versions.empty() && !is_retired) missing.push_back(prefix + each.name);
  }
  page += kExperiments + list_text(experiments);
  if (!missing.empty()) page += kMissing + list_text(missing);
  return page;
}

}  // namespace
}  // namespace tessera

int main() {
  std::fputs(tessera::operators_page().c_str(), stdout);
  return 0;
}
