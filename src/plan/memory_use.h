// All memory that a plan takes, by what it is for.
#pragma once

#include <cstdint>

#include "plan/execution_plan.h"

namespace tessera {

// What counts against a budget, as BindOptions::memory_budget_bytes declares it.
struct MemoryUse {
  int64_t arena_bytes = 0;
  int64_t output_bytes = 0;   // of results that are new in each run; 0 for unknown sizes
  int64_t weight_bytes = 0;   // of constants as steps read them, packed or not
  int64_t library_bytes = 0;  // that libraries keep for the kernels

  // At most what 64 bits hold.
  int64_t total_bytes() const;
};

MemoryUse memory_use(const ExecutionPlan& plan, const Offers& offers);

}  // namespace tessera
