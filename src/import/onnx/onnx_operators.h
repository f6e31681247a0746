// The operators that ONNX has, whether this build has them or not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::onnx_import {

struct OnnxOperator {
  std::string_view domain;  // "" is ONNX's own
  std::string_view name;
  int first_version = 0;  // of the domain's operator set
  int end_version = 0;    // the first version that no longer has it; 0: none
};

// nullptr if ONNX has no such operator, in no version.
const OnnxOperator* find_onnx_operator(std::string_view domain, std::string_view name);

// Whether ONNX defines the operators of `domain`, and their names.
bool is_onnx_domain(std::string_view domain);
std::vector<std::string> onnx_operator_names(std::string_view domain);

// The version of a domain that a model means if it uses the domain without importing it: as in
// onnxruntime, the newest version of the domains that onnxruntime and ONNX define. nullopt for
// other domains.
std::optional<int64_t> implied_version(std::string_view domain);

}  // namespace tessera::onnx_import
