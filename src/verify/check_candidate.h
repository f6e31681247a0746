// Runs one candidate of a plug-in on one case and looks at everything that it touches.
#pragma once

#include <string>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "verify/compare_tensors.h"
#include "verify/op_case.h"
#include "verify/report.h"

namespace tessera::verification {

struct CandidateTrial {
  const OpCase& op_case;
  const ExpectedValues& expected;
  const LayoutTable& layouts;
  const Candidate& candidate;
  int threads = 1;
  std::string place;  // for failures
};

// Builds its kernel and runs it: into new buffers, twice; in place and adding, where it says that
// it can; from saved bytes, where it offers that. Each run has guard bytes round every input,
// output, pack and workspace, and is compared with what is expected.
void check_candidate(const CandidateTrial& trial, Report& report);

}  // namespace tessera::verification
