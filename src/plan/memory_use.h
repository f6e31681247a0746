// The total memory of a plan, by purpose.
#pragma once

#include <cstdint>

#include "plan/execution_plan.h"

namespace tessera {

// The memory that counts against a budget, as defined by LimitOptions::memory_budget_bytes.
struct MemoryUse {
  int64_t arena_bytes = 0;
  int64_t output_bytes = 0;   // results that are allocated in each run; 0 for unknown sizes
  int64_t weight_bytes = 0;   // constants as steps read them, packed or not
  int64_t library_bytes = 0;  // memory that libraries keep for their kernels

  // Saturates at the maximum of int64_t.
  int64_t total_bytes() const;
};

MemoryUse memory_use(const ExecutionPlan& plan, const Offers& offers);

}  // namespace tessera
