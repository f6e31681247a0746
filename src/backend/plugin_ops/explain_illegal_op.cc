// Checks the description of an op of a plug-in.
#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>

#include "backend/plugin_ops/plugin_op.h"
#include "backend/plugin_ops/plugin_ops.h"

namespace tessera {
namespace {

constexpr uint32_t kKnownTypeBits = (2U << TESSERA_STRING) - 2;  // without TESSERA_UNDEFINED
constexpr int32_t kMaxParameters = 1000;
constexpr size_t kMinBytes = offsetof(tessera_op, self) + sizeof(tessera_op::self);

bool is_blank(const char* text) { return text == nullptr || *text == '\0'; }

std::string explain_table(const char* what, const void* first, int32_t count) {
  if (count < 0 || count > kMaxParameters) {
    return "expected from 0 to " + std::to_string(kMaxParameters) + " " + what + ", found " +
           std::to_string(count);
  }
  if (count > 0 && first == nullptr) {
    return "it says that it has " + std::to_string(count) + " " + what +
           ", but the pointer to them is null";
  }
  return "";
}

// `variables` collects the types of each type variable.
std::string explain_parameters(const char* what, std::span<const tessera_parameter> parameters,
                               std::map<std::string, uint32_t>& variables) {
  std::set<std::string> names;
  for (size_t index = 0; index < parameters.size(); ++index) {
    const tessera_parameter& parameter = parameters[index];
    if (is_blank(parameter.name)) {
      return std::string(what) + " " + std::to_string(index) + " has no name";
    }
    const std::string location = std::string(what) + " '" + parameter.name + "'";
    if (!names.insert(parameter.name).second) return location + " is listed twice";
    if (is_blank(parameter.type_variable)) return location + " has no type variable";
    if (parameter.data_types == 0 || (parameter.data_types & ~kKnownTypeBits) != 0) {
      return location + ": expected a set of data types, found the bits " +
             std::to_string(parameter.data_types);
    }
    if (parameter.arity < TESSERA_ARITY_REQUIRED || parameter.arity > TESSERA_ARITY_VARIADIC) {
      return location + ": expected an arity of TESSERA_ARITY_, found " +
             std::to_string(parameter.arity);
    }
    if (parameter.arity == TESSERA_ARITY_VARIADIC && index + 1 < parameters.size()) {
      return location + " is variadic, but not the last one";
    }
    const auto [entry, is_new] = variables.emplace(parameter.type_variable, parameter.data_types);
    if (!is_new && entry->second != parameter.data_types) {
      return location + " has type variable '" + parameter.type_variable +
             "', which stands for other data types elsewhere in the op";
    }
  }
  return "";
}

std::string explain_default(const tessera_attribute_schema& schema) {
  const tessera_attribute* value = schema.default_value;
  if (value == nullptr) return "";
  if (schema.is_required != 0) return "is required, but has a default";
  if (value->kind != schema.kind) return "has a default of another kind";
  if (value->count < 0) return "has a default with a negative count";
  const bool has_elements = value->count > 0;
  switch (value->kind) {
    case TESSERA_ATTRIBUTE_STRING:
      return value->string_value == nullptr ? "has a default without its text" : "";
    case TESSERA_ATTRIBUTE_INTS:
      return has_elements && value->ints == nullptr ? "has a default without its elements" : "";
    case TESSERA_ATTRIBUTE_FLOATS:
      return has_elements && value->floats == nullptr ? "has a default without its elements" : "";
    case TESSERA_ATTRIBUTE_STRINGS: {
      if (has_elements && value->strings == nullptr) return "has a default without its elements";
      const auto texts = table_of(value->strings, value->count);
      const bool is_whole = std::ranges::none_of(texts, [](auto* text) { return text == nullptr; });
      return is_whole ? "" : "has a default without its texts";
    }
    case TESSERA_ATTRIBUTE_TENSOR:
      return "has a tensor as its default, which is not supported";
    default:
      return "";
  }
}

std::string explain_attributes(std::span<const tessera_attribute_schema> attributes) {
  std::set<std::string> names;
  for (size_t index = 0; index < attributes.size(); ++index) {
    const tessera_attribute_schema& schema = attributes[index];
    if (is_blank(schema.name)) return "attribute " + std::to_string(index) + " has no name";
    const std::string location = std::string("attribute '") + schema.name + "' ";
    if (!names.insert(schema.name).second) return location + "is listed twice";
    if (schema.kind < TESSERA_ATTRIBUTE_INT || schema.kind > TESSERA_ATTRIBUTE_TENSOR) {
      return location + "has no kind of TESSERA_ATTRIBUTE_, but " + std::to_string(schema.kind);
    }
    const std::string reason = explain_default(schema);
    if (!reason.empty()) return location + reason;
  }
  return "";
}

std::string explain_name(const tessera_op& op) {
  if (op.struct_size < kMinBytes) {
    return "its struct_size is " + std::to_string(op.struct_size) + ", less than the " +
           std::to_string(kMinBytes) + " bytes that this contract version has";
  }
  if (is_blank(op.name)) return "it has no name";
  if (is_blank(op.domain)) return "it has no domain: ops of ONNX's own cannot be added";
  const std::string domain = op.domain;
  if (domain == "ai.onnx" || domain.starts_with("ai.onnx.")) {
    return "its domain '" + domain + "' is ONNX's own";
  }
  if (op.version < 1 || op.version > ops::kAnyVersion) {
    return "expected a version from 1 to " + std::to_string(ops::kAnyVersion) + ", found " +
           std::to_string(op.version);
  }
  return "";
}

std::string explain(const tessera_op& op) {
  std::string reason = explain_name(op);
  if (reason.empty()) reason = explain_table("inputs", op.inputs, op.input_count);
  if (reason.empty()) reason = explain_table("outputs", op.outputs, op.output_count);
  if (reason.empty()) reason = explain_table("attributes", op.attributes, op.attribute_count);
  if (!reason.empty()) return reason;
  if (op.output_count == 0) return "it has no outputs";
  std::map<std::string, uint32_t> variables;
  reason = explain_parameters("input", table_of(op.inputs, op.input_count), variables);
  if (reason.empty()) {
    reason = explain_parameters("output", table_of(op.outputs, op.output_count), variables);
  }
  if (reason.empty()) reason = explain_attributes(table_of(op.attributes, op.attribute_count));
  if (reason.empty() && op.infer == nullptr) reason = "it has no type rule (infer is null)";
  return reason;
}

}  // namespace

std::string explain_illegal_op(const tessera_op& op) {
  const std::string reason = explain(op);
  if (reason.empty()) return "";
  const bool has_name = op.struct_size >= kMinBytes && !is_blank(op.name);
  return (has_name ? "op '" + std::string(op.name) + "': " : std::string("an op: ")) + reason;
}

}  // namespace tessera
