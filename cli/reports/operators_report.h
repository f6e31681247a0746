// The report of `tessera inspect --ops`: which operators this build loads, and which backends have
// kernels for them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/output/json_output.h"
#include "cli/output/text_table.h"
#include "import/onnx/coverage.h"

namespace tessera::cli {

// The ops of ONNX's own domain for which a backend has kernels, by backend.
using OpsByBackend = std::map<std::string, std::set<std::string>>;

// A table of the operators that this build has, and the names of those that it lacks.
std::string operators_text(const std::vector<OperatorCoverage>& operators,
                           const OpsByBackend& backends, const TextStyle& style);

Json operators_json(const std::vector<OperatorCoverage>& operators, const OpsByBackend& backends);

}  // namespace tessera::cli
