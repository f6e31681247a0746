#include "import/onnx/op_lookup.h"

#include <optional>

#include "ops/schema.h"
#include "tessera/error.h"

namespace tessera::onnx_import {
namespace {

// The name of a domain in messages.
std::string domain_text(const std::string& domain) {
  return "'" + (domain.empty() ? std::string("ai.onnx") : domain) + "'";
}

std::string opset_text(const std::string& domain, int64_t version) {
  return "version " + std::to_string(version) + " of domain " + domain_text(domain);
}

[[noreturn]] void fail_unknown(const ops::Registry& registry, const Node& node, int64_t opset) {
  std::string message =
      "op '" + node.op + "' in " + opset_text(node.domain, opset) + " is not known";
  const std::vector<std::string> similar = registry.similar(node.domain, node.op);
  for (size_t index = 0; index < similar.size() && index < 3; ++index) {
    message += (index == 0 ? "; did you mean '" : "' or '") + similar[index];
  }
  if (!similar.empty()) message += "'?";
  throw Error(ErrorKind::Unsupported, location_of(node), message);
}

[[noreturn]] void fail_version(const ops::Op& op, const Node& node, int64_t opset) {
  const std::string found = ", but the model imports " + opset_text(node.domain, opset);
  const bool is_retired = opset > op.last_version;
  throw Error(ErrorKind::Unsupported, location_of(node),
              "op '" + op.name + "' of domain " + domain_text(op.domain) +
                  (is_retired ? " was retired after version " + std::to_string(op.last_version)
                              : " exists since version " + std::to_string(op.versions.front())) +
                  found);
}

}  // namespace

std::string normalized_domain(const std::string& domain) {
  return domain == "ai.onnx" ? std::string() : domain;
}

Opsets read_opsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports,
                   const std::string& where) {
  Opsets opsets;
  for (const onnx::OperatorSetIdProto& entry : imports) {
    const std::string domain = normalized_domain(entry.domain());
    const auto [known, is_new] = opsets.emplace(domain, entry.version());
    if (!is_new && known->second != entry.version()) {
      throw Error(ErrorKind::InvalidModel, where,
                  "domain " + domain_text(domain) + " is imported in version " +
                      std::to_string(known->second) + " and in version " +
                      std::to_string(entry.version()));
    }
    const bool is_known =
        entry.version() >= ops::kOldestOpset && entry.version() <= ops::kNewestOpset;
    if (domain.empty() && !is_known) {
      throw Error(ErrorKind::Unsupported, where,
                  "expected an operator set from " + std::to_string(ops::kOldestOpset) + " to " +
                      std::to_string(ops::kNewestOpset) + ", found " +
                      std::to_string(entry.version()));
    }
  }
  return opsets;
}

const ops::Op& find_op(const ops::Registry& registry, const Opsets& opsets, Node& node) {
  const auto opset = opsets.find(node.domain);
  if (opset == opsets.end()) {
    throw Error(
        ErrorKind::InvalidModel, location_of(node),
        "its domain " + domain_text(node.domain) + " is not among the imported operator sets");
  }
  const ops::Op* op = registry.find(node.domain, node.op);
  if (op == nullptr) fail_unknown(registry, node, opset->second);
  const bool is_number = opset->second >= 1 && opset->second <= ops::kAnyVersion;
  const std::optional<int> version =
      is_number ? ops::version_in(*op, static_cast<int>(opset->second)) : std::nullopt;
  if (!version) fail_version(*op, node, opset->second);
  node.version = *version;
  return *op;
}

}  // namespace tessera::onnx_import
