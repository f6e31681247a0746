// Prints every registered op as JSON, for op_schema_test.py: for each version, also those that
// import converts to newer ones, its inputs, outputs and attributes with their defaults.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "import/onnx/upgrade/upgrade.h"
#include "ops/registry.h"
#include "ops/schema.h"

namespace tessera::ops {
namespace {

using nlohmann::json;

const char* name(Arity arity) {
  switch (arity) {
    case Arity::Required:
      return "required";
    case Arity::Optional:
      return "optional";
    case Arity::Variadic:
      return "variadic";
  }
  return "";
}

// The small types that a parameter has in a version; null if its rule decides, as in ops of lists.
json small_types_json(const Op& op, const Parameter& parameter, int version) {
  const auto variable =
      std::ranges::find(op.type_variables, parameter.type_variable, &TypeVariable::name);
  if (variable == op.type_variables.end()) return nullptr;
  const TypeSet types = variable->types_in(version);
  json names = json::array();
  for (auto type = DataType::Float8E4M3FN; type <= DataType::UInt2;
       type = static_cast<DataType>(static_cast<int>(type) + 1)) {
    if (types.contains(type)) names.push_back(std::string(tessera::name(type)));
  }
  return names;
}

json parameters_json(const Op& op, const std::vector<Parameter>& all, int version) {
  json result = json::array();
  for (const Parameter& parameter : parameters_of(all, version)) {
    result.push_back({{"name", parameter.name},
                      {"arity", name(parameter.arity)},
                      {"small_types", small_types_json(op, parameter, version)}});
  }
  return result;
}

// ONNX's defaults are numbers, strings and lists of these; other attributes are not printed.
json value_json(const Attribute& attribute) {
  if (const auto* number = std::get_if<int64_t>(&attribute)) return *number;
  if (const auto* number = std::get_if<float>(&attribute)) return *number;
  if (const auto* text = std::get_if<std::string>(&attribute)) return *text;
  if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute)) return *list;
  if (const auto* list = std::get_if<std::vector<float>>(&attribute)) return *list;
  if (const auto* list = std::get_if<std::vector<std::string>>(&attribute)) return *list;
  return nullptr;
}

json attributes_json(const Op& op, int version) {
  json result = json::array();
  for (const AttributeSchema& schema : op.attributes) {
    if (version < schema.since || version > schema.until) continue;
    result.push_back(
        {{"name", schema.name},
         {"kind", std::string(tessera::name(schema.kind))},
         {"required", schema.is_required},
         {"default", schema.default_value ? value_json(*schema.default_value) : json(nullptr)}});
  }
  return result;
}

json definition_json(const Op& op, int version) {
  return {{"version", version},
          {"inputs", parameters_json(op, op.inputs, version)},
          {"outputs", parameters_json(op, op.outputs, version)},
          {"attributes", attributes_json(op, version)}};
}

json op_json(const Registry& registry, const Op& op) {
  json definitions = json::array();
  int before = 0;
  for (int opset = kOldestOpset; opset <= kNewestOpset; ++opset) {
    const onnx_import::OldOp* old = onnx_import::find_old_op(registry, op.domain, op.name, opset);
    const bool is_old = old != nullptr && !old->is_experiment;
    const int version = is_old ? old->version : version_in(op, opset).value_or(0);
    if (version == 0 || version == before) continue;
    before = version;
    definitions.push_back(
        definition_json(is_old ? onnx_import::definition_of(*old, registry) : op, version));
  }
  return {{"name", op.name},
          {"domain", op.domain},
          {"versions", op.versions},
          {"last_version", op.last_version},
          {"definitions", definitions}};
}

}  // namespace
}  // namespace tessera::ops

int main() {
  nlohmann::json table = nlohmann::json::array();
  const tessera::ops::Registry registry = tessera::ops::make_registry();
  for (const tessera::ops::Op* op : registry.all()) {
    table.push_back(tessera::ops::op_json(registry, *op));
  }
  std::cout << table.dump(1) << "\n";
}
