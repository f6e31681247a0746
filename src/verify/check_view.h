// Checks where the parts of a view or of a joint candidate are.
#pragma once

#include "base/parallel.h"
#include "verify/check_candidate.h"

namespace tessera::verification {

// Compares the bytes at each part's position in the whole with the expected value of the part.
void check_view(const CandidateTrial& trial, ThreadPool& pool, Report& report);

}  // namespace tessera::verification
