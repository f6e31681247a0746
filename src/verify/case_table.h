// The test cases for plug-ins.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ops/op.h"

namespace tessera::verification {

// In the notation of op_case.h: ONNX's ops with odd shapes and attributes, and groups that are
// often fused.
std::span<const char* const> case_table();

// Cases for an op that is not in the table: all inputs have the same shape, for several shapes.
// Whether the op's type rule accepts a case shows when it is read.
std::vector<std::string> cases_for(const ops::Op& op);

}  // namespace tessera::verification
