#include "import/onnx/names/op_lookup.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "base/errors/likely_name.h"
#include "ops/schema.h"
#include "tessera/error.h"

namespace tessera::onnx_import {
namespace {

// Sorted by domain and name.
constexpr OnnxOperator kOperators[] = {
#define ONNX_OPERATOR(domain, name, first_version, end_version) \
  {domain, name, first_version, end_version},
#include "import/onnx/names/onnx_operators.inc"
#undef ONNX_OPERATOR
};

constexpr std::array<std::pair<std::string_view, int64_t>, 9> kImpliedVersions = {
    {{"", ops::kNewestOpset},
     {"ai.onnx.ml", 5},
     {"ai.onnx.preview", 1},
     {"ai.onnx.preview.training", 1},
     {"com.microsoft", 1},
     {"com.microsoft.experimental", 1},
     {"com.microsoft.nchwc", 1},
     {"com.ms.internal.nhwc", 1},
     {"org.pytorch.aten", 1}}};

std::string opset_text(const std::string& domain, int64_t version) {
  return "version " + std::to_string(version) + " of domain '" + domain_text(domain) + "'";
}

// ONNX's experiments of 2017 and 2018 besides those of upgrade/experiments.cc.
constexpr std::string_view kOtherExperiments[] = {"ATen", "GRUUnit", "GivenTensorFill"};

// Why this build does not have an experiment; "" if `wanted` is none.
std::string explain_experiment(const Operator& wanted, int64_t opset, const std::string& imports) {
  if (!wanted.domain.empty()) return "";
  const std::string is_missing = text(wanted) + " is not in this build";
  const auto known = std::ranges::find(experiments(), wanted.name, &OldOp::name);
  const bool is_known =
      known != experiments().end() && find_onnx_operator("", wanted.name) == nullptr;
  if (is_known && opset >= known->end) {
    return is_missing + "; ONNX had it as an experiment until version " +
           std::to_string(known->end - 1) + ", but " + imports;
  }
  const bool is_other =
      std::ranges::find(kOtherExperiments, wanted.name) != std::end(kOtherExperiments);
  if (!is_known && !is_other) return "";
  return is_missing + "; ONNX had it as an experiment, in no operator set";
}

// "; domain 'ai.onnx.ml' has one", if a domain of ONNX other than that of `wanted` has its name.
std::string other_domain_text(const Operator& wanted) {
  for (const std::string domain : {"", "ai.onnx.ml", "ai.onnx.preview.training"}) {
    if (domain == wanted.domain || find_onnx_operator(domain, wanted.name) == nullptr) continue;
    return "; domain '" + domain_text(domain) + "' has one";
  }
  return "";
}

// For an operator that this build has in no version. `imports`: "the model imports ...".
std::string explain_unknown(const ops::Registry& registry, const Operator& wanted, int64_t opset,
                            const std::string& imports) {
  const std::string experiment = explain_experiment(wanted, opset, imports);
  if (!experiment.empty()) return experiment;
  const OnnxOperator* known = find_onnx_operator(wanted.domain, wanted.name);
  if (known == nullptr && is_onnx_domain(wanted.domain)) {
    const std::string other = other_domain_text(wanted);
    return "no version of domain '" + domain_text(wanted.domain) + "' has an operator '" +
           wanted.name + "' (" + imports + ")" +
           (other.empty() ? did_you_mean(wanted.name, onnx_operator_names(wanted.domain)) : other);
  }
  std::string is_missing = text(wanted) + " is not in this build";
  if (known == nullptr) {
    const std::vector<std::string> similar = registry.similar(wanted.domain, wanted.name);
    return is_missing + " (" + imports + ")" + did_you_mean(wanted.name, similar);
  }
  const std::string but = ", but " + imports;
  if (opset < known->first_version) {
    return is_missing + "; ONNX has it since version " + std::to_string(known->first_version) + but;
  }
  if (known->end_version > 0 && opset >= known->end_version) {
    return is_missing + "; ONNX retired it in version " + std::to_string(known->end_version) + but;
  }
  return is_missing;
}

// For an op that the operator set does not contain.
std::string explain_version(const ops::Op& op, int64_t opset, const std::string& imports) {
  if (opset > ops::kAnyVersion) {
    return text(Operator{op.domain, op.name}) + " is not in this build in " +
           opset_text(op.domain, opset);
  }
  const bool is_retired = opset > op.last_version;
  return text(Operator{op.domain, op.name}) +
         (is_retired ? " was retired after version " + std::to_string(op.last_version)
                     : " exists since version " + std::to_string(op.versions.front())) +
         ", but " + imports;
}

std::optional<int> version_of(const ops::Op& op, int64_t opset) {
  const bool is_number = opset >= 1 && opset <= ops::kAnyVersion;
  return is_number ? ops::version_in(op, static_cast<int>(opset)) : std::nullopt;
}

}  // namespace

const OnnxOperator* find_onnx_operator(std::string_view domain, std::string_view name) {
  const auto key = std::pair(domain, name);
  const auto found = std::ranges::lower_bound(kOperators, key, {}, [](const OnnxOperator& entry) {
    return std::pair(entry.domain, entry.name);
  });
  const bool is_found =
      found != std::end(kOperators) && found->domain == domain && found->name == name;
  return is_found ? found : nullptr;
}

bool is_onnx_domain(std::string_view domain) {
  return std::ranges::any_of(kOperators,
                             [&](const OnnxOperator& entry) { return entry.domain == domain; });
}

std::vector<std::string> onnx_domains() {
  std::vector<std::string> domains;
  for (const OnnxOperator& entry : kOperators) {
    if (domains.empty() || domains.back() != entry.domain) domains.emplace_back(entry.domain);
  }
  return domains;
}

std::vector<std::string> onnx_operator_names(std::string_view domain) {
  std::vector<std::string> names;
  for (const OnnxOperator& entry : kOperators) {
    if (entry.domain == domain) names.emplace_back(entry.name);
  }
  return names;
}

std::optional<int64_t> implied_version(std::string_view domain) {
  const auto found =
      std::ranges::find(kImpliedVersions, domain, &std::pair<std::string_view, int64_t>::first);
  return found == kImpliedVersions.end() ? std::nullopt : std::optional(found->second);
}

void add_implied_opset(int64_t ir_version, Opsets& opsets) {
  if (ir_version < kFirstIrVersionWithOpsets) opsets.emplace("", 1);
}

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
                  "domain '" + domain_text(domain) + "' is imported in version " +
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

std::string domain_text(const std::string& domain) { return domain.empty() ? "ai.onnx" : domain; }

std::string text(const Operator& wanted) {
  return wanted.name + " of " + domain_text(wanted.domain);
}

std::optional<int64_t> version_of_domain(const Opsets& opsets, const std::string& domain) {
  const auto imported = opsets.find(domain);
  return imported != opsets.end() ? std::optional(imported->second) : implied_version(domain);
}

std::string explain_missing(const ops::Registry& registry, const Operator& wanted,
                            const Opsets& opsets) {
  const std::optional<int64_t> opset = version_of_domain(opsets, wanted.domain);
  const std::string imports = opsets.contains(wanted.domain)
                                  ? "the model imports " + opset_text(wanted.domain, *opset)
                                  : "the model does not import its domain";
  if (!opset) return text(wanted) + " is not in this build (" + imports + ")";
  if (find_old_op(registry, wanted.domain, wanted.name, *opset) != nullptr) return "";
  const ops::Op* op = registry.find(wanted.domain, wanted.name);
  if (op == nullptr) return explain_unknown(registry, wanted, *opset, imports);
  return version_of(*op, *opset) ? "" : explain_version(*op, *opset, imports);
}

int64_t imported_version(const Opsets& opsets, const Node& node, const Log& log) {
  const std::optional<int64_t> version = version_of_domain(opsets, node.domain);
  if (opsets.contains(node.domain)) return *version;
  const std::string domain = "'" + domain_text(node.domain) + "'";
  if (!version) {
    std::string imported;
    for (const auto& [known, number] : opsets) {
      imported +=
          (imported.empty() ? "" : ", ") + domain_text(known) + " " + std::to_string(number);
    }
    throw Error(ErrorKind::InvalidModel, location_of(node),
                "its domain " + domain + " is not among the imported operator sets (" +
                    (imported.empty() ? "none" : imported) +
                    "), and nothing tells its version: add it to the opset_import of the model");
  }
  log.warn("the model uses domain " + domain + " and does not import it; version " +
           std::to_string(*version) + " is assumed");
  return *version;
}

FoundOp find_op(const ops::Registry& registry, const Opsets& opsets, Node& node, const Log& log) {
  FoundOp found = {.opset = imported_version(opsets, node, log)};
  const ops::Op* op = registry.find(node.domain, node.op);
  const std::optional<int> version = op == nullptr ? std::nullopt : version_of(*op, found.opset);
  if (version) {
    found.stated = op;
    node.version = *version;
    return found;
  }
  found.old = find_old_op(registry, node.domain, node.op, found.opset);
  if (found.old == nullptr) {
    throw Error(ErrorKind::Unsupported, location_of(node),
                explain_missing(registry, {node.domain, node.op}, opsets));
  }
  node.version = found.old->version;
  return found;
}

}  // namespace tessera::onnx_import
