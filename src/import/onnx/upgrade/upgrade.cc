#include "import/onnx/upgrade/upgrade.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/convert_elements.h"
#include "ops/schema.h"
#include "tessera/error.h"

namespace tessera::onnx_import {
namespace {

// The operator set whose versions the table of ops states first.
constexpr int kFirstStatedOpset = 6;

bool is_in_force(const OldOp& old, const std::string& name, int64_t opset) {
  return old.name == name && old.version <= opset && opset < old.end;
}

// Bounds of what float64 represents exactly.
bool is_whole(double number) { return std::trunc(number) == number && std::abs(number) <= 0x1p53; }

}  // namespace

const OldOp* find_old_op(const ops::Registry& registry, const std::string& domain,
                         const std::string& name, int64_t opset) {
  if (!domain.empty()) return nullptr;
  for (const std::span<const OldOp> table : {first_versions(), experiments()}) {
    const auto found = std::ranges::find_if(
        table, [&](const OldOp& old) { return is_in_force(old, name, opset); });
    if (found == table.end()) continue;
    const ops::Op* stated = registry.find(domain, name);
    const bool is_stated =
        stated != nullptr && ops::version_in(*stated, static_cast<int>(opset)).has_value();
    const bool has_successor = registry.find(domain, std::string(found->successor)) != nullptr;
    return !is_stated && has_successor ? &*found : nullptr;
  }
  return nullptr;
}

ops::Op definition_of(const OldOp& old, const ops::Registry& registry) {
  ops::Op op = old.define(old, *registry.find("", std::string(old.successor)));
  op.name = old.name;
  op.versions = {old.version};
  op.last_version = old.end - 1;
  return op;
}

ops::Op definition_like(const OldOp& old, const ops::Op& op, int version,
                        const std::vector<ops::AttributeSchema>& additional) {
  ops::Op result = {.name = std::string(old.name),
                    .inputs = ops::parameters_of(op.inputs, version),
                    .outputs = ops::parameters_of(op.outputs, version),
                    .attributes = additional};
  for (ops::Parameter& input : result.inputs) input.since = old.version;
  for (ops::Parameter& output : result.outputs) output.since = old.version;
  for (ops::AttributeSchema attribute : op.attributes) {
    if (attribute.since > version || version > attribute.until) continue;
    attribute.since = old.version;
    result.attributes.push_back(std::move(attribute));
  }
  return result;
}

ops::AttributeSchema optional_attribute(const char* name, AttributeKind kind) {
  return {name, kind, std::nullopt};
}

ops::AttributeSchema required_attribute(const char* name, AttributeKind kind) {
  return {name, kind, std::nullopt, 1, ops::kAnyVersion, true};
}

void upgrade(const OldOp& old, Node& node, int64_t opset, Insertions& insertions) {
  Conversion conversion(node, std::max(static_cast<int>(opset), kFirstStatedOpset), insertions);
  node.attributes.erase("consumed_inputs");  // it told which memory a kernel may overwrite
  old.convert(conversion);
  ops::complete(insertions.registry().of(node), node);
}

Conversion::Conversion(Node& node, int opset, Insertions& insertions)
    : node_(node),
      opset_(opset),
      insertions_(insertions),
      location_(location_of(node)),
      definition_(node.op + " version " + std::to_string(node.version)) {}

void Conversion::set_op(Node& node, const std::string& op, int first_opset) const {
  const ops::Op* stated = insertions_.registry().find("", op);
  const auto version =
      stated == nullptr ? std::nullopt : ops::version_in(*stated, std::max(opset_, first_opset));
  if (!version) {
    fail_unsupported("it is stated by " + op + " of ai.onnx, which is not in this build");
  }
  node.op = op;
  node.version = *version;
}

void Conversion::become(const std::string& op, int first_opset) { set_op(node_, op, first_opset); }

ValueId Conversion::add_node(const std::string& suffix, const std::string& op,
                             std::vector<ValueId> inputs, Attributes attributes, int first_opset) {
  Node node;
  node.name = node_.name + "#" + suffix;
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  node.metadata = node_.metadata;
  set_op(node, op, first_opset);
  return insertions_.add_node(std::move(node));
}

ValueId Conversion::add_constant(const std::string& suffix, Tensor elements) {
  return insertions_.add_constant(node_.name + "#" + suffix, std::move(elements));
}

std::vector<int64_t> Conversion::constant_integers(size_t input) {
  const Tensor* tensor = insertions_.constant_of(node_.inputs[input]);
  if (tensor == nullptr || tensor->is_strings() || !tensor->has_elements()) {
    fail_unsupported("input " + std::to_string(input) +
                     " is computed in a run; expected a constant tensor of numbers");
  }
  std::vector<double> numbers(static_cast<size_t>(tensor->elements()));
  ops::convert_elements(tensor->type(), tensor->data(), DataType::Float64, numbers.data(),
                        tensor->elements());
  std::vector<int64_t> result;
  for (const double number : numbers) {
    if (!is_whole(number)) {
      fail("expected whole numbers in input " + std::to_string(input) + ", found " +
           std::to_string(number));
    }
    result.push_back(static_cast<int64_t>(number));
  }
  return result;
}

void Conversion::fail(const std::string& message) const {
  throw Error(ErrorKind::InvalidModel, location_, definition_ + ": " + message);
}

void Conversion::fail_unsupported(const std::string& message) const {
  throw Error(ErrorKind::Unsupported, location_, definition_ + ": " + message);
}

}  // namespace tessera::onnx_import
