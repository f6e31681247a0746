// Whether the parts of a view or of a joint candidate are where it says.
#pragma once

#include "base/parallel.h"
#include "verify/check_candidate.h"

namespace tessera::verification {

// Compares what lies at each part's place in the whole with what the part should be.
void check_view(const CandidateTrial& trial, ThreadPool& pool, Report& report);

}  // namespace tessera::verification
