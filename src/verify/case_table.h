// What plug-ins are tried on.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ops/op.h"

namespace tessera::verification {

// In the language of op_case.h: ONNX's ops with odd shapes and attributes, and groups that are
// often fused.
std::span<const char* const> case_table();

// Cases for an op that no table knows: every input of the same shape, for several shapes. Whether
// its type rule takes them shows when they are read.
std::vector<std::string> cases_for(const ops::Op& op);

}  // namespace tessera::verification
