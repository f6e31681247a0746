// Cases of each op whose results are rounded, for any length: what measure_accuracy runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

struct AccuracyCase {
  std::string text;       // of verify/op_case.h
  bool is_group = false;  // several nodes
};

// All cases whose tensors have about `length` elements. If an op works along axes, one axis has
// them.
std::vector<AccuracyCase> accuracy_cases(int64_t length);

}  // namespace tessera
