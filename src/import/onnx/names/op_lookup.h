// Finds the op of a node by its operator set in the registry.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors/log.h"
#include "graph/graph.h"
#include "import/onnx/upgrade/upgrade.h"
#include "onnx.pb.h"
#include "ops/registry.h"

namespace tessera::onnx_import {

// An operator that ONNX has, whether this build has it or not.
struct OnnxOperator {
  std::string_view domain;  // "" is ONNX's own
  std::string_view name;
  int first_version = 0;  // of the domain's operator set
  int end_version = 0;    // the first version that no longer has it; 0: none
};

// nullptr if ONNX has no such operator, in no version.
const OnnxOperator* find_onnx_operator(std::string_view domain, std::string_view name);

std::vector<std::string> onnx_domains();
// Whether ONNX defines the operators of `domain`, and their names.
bool is_onnx_domain(std::string_view domain);
std::vector<std::string> onnx_operator_names(std::string_view domain);

// The version of a domain that a model means if it uses the domain without importing it: as in
// onnxruntime, the newest version of the domains that onnxruntime and ONNX define. nullopt for
// other domains.
std::optional<int64_t> implied_version(std::string_view domain);

// Versions of operator sets by domain; "" is ONNX's own.
using Opsets = std::map<std::string, int64_t>;

// Maps both spellings of ONNX's own domain to "".
std::string normalized_domain(const std::string& domain);

// Before IR version 3, models name no operator set and mean the first one.
inline constexpr int64_t kFirstIrVersionWithOpsets = 3;
void add_implied_opset(int64_t ir_version, Opsets& opsets);

// Throws InvalidModel at `where` if a domain has two versions, Unsupported if the version of ONNX's
// own domain is outside of [ops::kOldestOpset, ops::kNewestOpset].
Opsets read_opsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports,
                   const std::string& where);

struct Operator {
  std::string domain;  // normalised
  std::string name;
};

// "ai.onnx" for ONNX's own domain.
std::string domain_text(const std::string& domain);
// "DequantizeLinear of ai.onnx".
std::string text(const Operator& wanted);

// The version of a domain for a model that imports `opsets`; of a well-known domain that it does
// not import, as some exporters forget, the version that it means. nullopt for other domains.
std::optional<int64_t> version_of_domain(const Opsets& opsets, const std::string& domain);

// Why this build cannot run an operator of a model that imports `opsets`; "" if it can. Another
// name is suggested only if ONNX has no operator of this one.
std::string explain_missing(const ops::Registry& registry, const Operator& wanted,
                            const Opsets& opsets);

// The version of the node's domain, with a warning if the model does not import it. Throws
// InvalidModel if it is unknown.
int64_t imported_version(const Opsets& opsets, const Node& node, const Log& log);

// The definition of a node's op: one of the table of ops, or an old one (upgrade/upgrade.h).
struct FoundOp {
  const ops::Op* stated = nullptr;
  const OldOp* old = nullptr;  // if `stated` is null
  int64_t opset = 0;           // of the node's domain
};

// Sets node.version and returns its op. Throws as imported_version(); Unsupported, naming node, op,
// domain and version, if the operator set does not contain the op or this build does not have it.
FoundOp find_op(const ops::Registry& registry, const Opsets& opsets, Node& node, const Log& log);

}  // namespace tessera::onnx_import
