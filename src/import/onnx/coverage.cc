#include "import/onnx/coverage.h"

#include <algorithm>
#include <map>
#include <utility>

#include "import/onnx/names/op_lookup.h"
#include "import/onnx/upgrade/upgrade.h"

namespace tessera {
namespace {

using onnx_import::OldOp;
using OperatorKey = std::pair<std::string, std::string>;  // domain and name

struct TypeGroup {
  const char* name;
  ops::TypeSet types;
};

// The largest first.
constexpr TypeGroup kTypeGroups[] = {
    {"all", ops::kAllTypesAndStrings},
    {"numbers", ops::kNumericTypes},
    {"integers", ops::kIntegerTypes},
    {"signed integers", ops::kSignedIntegerTypes},
    {"unsigned integers", ops::kUnsignedIntegerTypes},
    {"floats", ops::kFloatTypes},
};

OperatorCoverage coverage_of(const ops::Op& op, const ops::Registry& registry) {
  OperatorCoverage coverage = {
      .domain = op.domain, .name = op.name, .versions = op.versions, .types = op.type_variables};
  for (const OldOp& old : onnx_import::first_versions()) {
    const bool is_converted =
        onnx_import::find_old_op(registry, op.domain, op.name, old.version) == &old;
    if (is_converted) coverage.versions.push_back(old.version);
  }
  std::ranges::sort(coverage.versions);
  if (op.last_version < ops::kAnyVersion) coverage.last_version = op.last_version;
  return coverage;
}

}  // namespace

std::vector<OperatorCoverage> operator_coverage(const ops::Registry& registry) {
  std::map<OperatorKey, OperatorCoverage> all;
  for (const ops::Op* op : registry.all()) {
    all.emplace(OperatorKey(op->domain, op->name), coverage_of(*op, registry));
  }
  for (const OldOp& old : onnx_import::experiments()) {
    const std::string name(old.name);
    if (onnx_import::find_old_op(registry, "", name, old.version) != &old) continue;
    const OperatorCoverage experiment = {.domain = "",
                                         .name = name,
                                         .versions = {old.version},
                                         .last_version = old.end - 1,
                                         .is_experiment = true,
                                         .types = {{"T", ops::kFloatTypes}}};
    all.emplace(OperatorKey("", name), experiment);
  }
  for (const std::string& domain : onnx_import::onnx_domains()) {
    for (const std::string& name : onnx_import::onnx_operator_names(domain)) {
      const int end = onnx_import::find_onnx_operator(domain, name)->end_version;
      const OperatorCoverage missing = {
          .domain = domain, .name = name, .versions = {}, .last_version = end > 0 ? end - 1 : 0};
      all.emplace(OperatorKey(domain, name), missing);
    }
  }
  std::vector<OperatorCoverage> list;
  for (auto& [key, coverage] : all) list.push_back(std::move(coverage));
  return list;
}

std::vector<DataType> members(const ops::TypeSet& types) {
  std::vector<DataType> list;
  for (int index = 0; index <= static_cast<int>(DataType::Map); ++index) {
    const auto type = static_cast<DataType>(index);
    if (types.contains(type)) list.push_back(type);
  }
  return list;
}

std::string type_set_text(const ops::TypeSet& types) {
  std::vector<DataType> left = members(types);
  std::string text;
  const auto append = [&](std::string_view word) {
    text += (text.empty() ? "" : ", ") + std::string(word);
  };
  for (const TypeGroup& group : kTypeGroups) {
    const std::vector<DataType> whole = members(group.types);
    if (!std::ranges::includes(left, whole)) continue;
    append(group.name);
    std::erase_if(left, [&](DataType type) { return group.types.contains(type); });
  }
  for (const DataType type : left) append(name(type));
  return text;
}

std::string element_types_text(const std::vector<ops::TypeVariable>& types) {
  std::string text;
  for (const ops::TypeVariable& variable : types) {
    const bool is_fixed = variable.name.starts_with("tensor(");
    if (is_fixed) continue;
    const std::string label = text.empty() ? "" : "; " + variable.name + ": ";
    text += label + type_set_text(variable.types);
  }
  return text;
}

}  // namespace tessera
