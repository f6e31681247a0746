#include "ops/schema.h"

#include <algorithm>
#include <map>

#include "tessera/error.h"

namespace tessera::ops {
namespace {

std::string version_text(const Op& op, const Node& node) {
  return op.name + " version " + std::to_string(node.version);
}

// Checks the number of inputs (outputs) and that the required ones are present.
void check_count(const Op& op, const Node& node, const std::vector<Parameter>& parameters,
                 const std::vector<ValueId>& ids, const std::string& kind) {
  const bool is_variadic = !parameters.empty() && parameters.back().arity == Arity::Variadic;
  if (!is_variadic && ids.size() > parameters.size()) {
    throw Error(ErrorKind::InvalidModel, location_of(node),
                version_text(op, node) + " takes at most " + std::to_string(parameters.size()) +
                    " " + kind + "s, found " + std::to_string(ids.size()));
  }
  for (size_t index = 0; index < parameters.size(); ++index) {
    const Parameter& parameter = parameters[index];
    const bool is_given = index < ids.size() && !ids[index].is_none();
    const bool is_needed =
        parameter.arity == Arity::Required ||
        (parameter.arity == Arity::Variadic && kind == "input" && !parameter.may_be_empty);
    if (is_needed && !is_given) {
      throw Error(ErrorKind::InvalidModel,
                  location_of(node) + ", " + kind + " '" + parameter.name + "'",
                  version_text(op, node) + " requires it, but the node leaves it out");
    }
  }
  for (size_t index = parameters.size(); kind == "input" && index < ids.size(); ++index) {
    if (ids[index].is_none()) {
      throw Error(ErrorKind::InvalidModel, input_location(op, node, index),
                  "one of several equal inputs cannot be left out");
    }
  }
}

bool is_in(int version, int since, int until) { return since <= version && version <= until; }

void check_attributes(const Op& op, const Node& node) {
  for (const auto& [key, value] : node.attributes.all()) {
    const auto schema = std::find_if(
        op.attributes.begin(), op.attributes.end(), [&](const AttributeSchema& candidate) {
          return candidate.name == key && is_in(node.version, candidate.since, candidate.until);
        });
    const std::string where = location_of(node) + ", attribute '" + key + "'";
    if (schema == op.attributes.end()) {
      throw Error(ErrorKind::InvalidModel, where,
                  version_text(op, node) + " has no such attribute");
    }
    if (schema->kind != kind_of(value)) {
      throw Error(ErrorKind::InvalidModel, where,
                  "expected " + std::string(name(schema->kind)) + ", found " +
                      std::string(name(kind_of(value))));
    }
  }
}

}  // namespace

std::optional<int> version_in(const Op& op, int opset) {
  if (opset > op.last_version) return std::nullopt;
  std::optional<int> newest;
  for (const int version : op.versions) {
    if (version <= opset) newest = version;
  }
  return newest;
}

std::vector<Parameter> parameters_of(const std::vector<Parameter>& all, int version) {
  std::vector<Parameter> result;
  for (const Parameter& parameter : all) {
    if (is_in(version, parameter.since, parameter.until)) result.push_back(parameter);
  }
  return result;
}

void complete(const Op& op, Node& node) {
  check_count(op, node, parameters_of(op.inputs, node.version), node.inputs, "input");
  check_count(op, node, parameters_of(op.outputs, node.version), node.outputs, "output");
  check_attributes(op, node);
  for (const AttributeSchema& schema : op.attributes) {
    if (!is_in(node.version, schema.since, schema.until) || node.attributes.has(schema.name)) {
      continue;
    }
    if (schema.is_required) {
      throw Error(ErrorKind::InvalidModel, location_of(node) + ", attribute '" + schema.name + "'",
                  version_text(op, node) + " requires it, but the node leaves it out");
    }
    if (schema.default_value) node.attributes.set(schema.name, *schema.default_value);
  }
}

void check_types(const Op& op, const Node& node, std::span<const InferInput> inputs) {
  const std::vector<Parameter> parameters = parameters_of(op.inputs, node.version);
  std::map<std::string, std::pair<DataType, size_t>> bound;  // variable -> type, first input
  for (size_t index = 0; index < inputs.size(); ++index) {
    const Type& type = inputs[index].type;
    if (!inputs[index].is_present || type.kind == Type::Kind::Unknown) continue;
    const Parameter& parameter = parameters[std::min(index, parameters.size() - 1)];
    const auto where = [&] { return input_location(op, node, index); };
    if (!type.is_tensor()) {
      if (op.value_kernel != nullptr) continue;  // its rule knows which ones it takes
      throw Error(ErrorKind::Unsupported, where(),
                  "kernels exist for tensors only, found " + text(type));
    }
    if (type.element == DataType::Undefined) continue;
    const auto variable = std::find_if(
        op.type_variables.begin(), op.type_variables.end(),
        [&](const TypeVariable& candidate) { return candidate.name == parameter.type_variable; });
    if (variable == op.type_variables.end()) continue;
    const TypeSet types = variable->types_in(node.version);
    if (!types.contains(type.element)) {
      throw Error(
          ErrorKind::InvalidModel, where(),
          "expected elements of " + types.text() + ", found " + std::string(name(type.element)));
    }
    const auto [entry, is_first] = bound.try_emplace(variable->name, type.element, index);
    if (!is_first && entry->second.first != type.element) {
      throw Error(ErrorKind::InvalidModel, where(),
                  "expected " + std::string(name(entry->second.first)) + " as input '" +
                      parameters[std::min(entry->second.second, parameters.size() - 1)].name +
                      "' has, found " + std::string(name(type.element)));
    }
  }
}

std::string input_location(const Op& op, const Node& node, size_t index) {
  const std::vector<Parameter> parameters = parameters_of(op.inputs, node.version);
  std::string input = std::to_string(index);
  if (index < parameters.size() && parameters[index].arity != Arity::Variadic) {
    input = "'" + parameters[index].name + "'";
  }
  return location_of(node) + ", input " + input;
}

}  // namespace tessera::ops
