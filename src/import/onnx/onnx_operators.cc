#include "import/onnx/onnx_operators.h"

#include <algorithm>
#include <array>
#include <utility>

#include "ops/registry.h"

namespace tessera::onnx_import {
namespace {

// Sorted by domain and name.
constexpr OnnxOperator kOperators[] = {
#define ONNX_OPERATOR(domain, name, first_version, end_version) \
  {domain, name, first_version, end_version},
#include "import/onnx/onnx_operators.inc"
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

}  // namespace tessera::onnx_import
