// Runs one candidate of a plug-in on one case and looks at everything that it touches.
#pragma once

#include <functional>
#include <string>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "verify/compare_tensors.h"
#include "verify/guarded_memory.h"
#include "verify/op_case.h"
#include "verify/report.h"
#include "verify/special_values.h"

namespace tessera::verification {

struct CandidateTrial {
  const ExpectedValues& expected;
  const LayoutTable& layouts;
  const Candidate& candidate;
  ThreadPool& pool;
  std::string place;  // for failures
  int precision = TESSERA_PRECISION_FLOAT32;
  // The same values of a run on inputs with special values (special_values.h), by value id; null:
  // what the kernel does with those is not judged.
  const std::vector<Tensor>* special = nullptr;
  SpecialValues special_kinds = SpecialValues::NaN;  // which those are
  // With Guard::Pages, writing to an input ends the process too. The expected values then lie in
  // pages that nobody may write to, between fences, and are not copied.
  Guard guard = Guard::Bytes;
  // Told true before each run of the kernel, and false after it.
  std::function<void(bool is_running)> run_watcher = {};
  // Told before the plug-in is called, for which check that is.
  std::function<void(const std::string& check)> step_watcher = {};
};

// What a trial found of the numbers, over all outputs and runs.
struct NumberCheck {
  double error = 0;      // the largest one, as measure_difference() tells it
  double tolerance = 0;  // of the output where it was found
};

// Builds its kernel and runs it: into new buffers, twice; in place and adding, where it says that
// it can; from saved bytes, where it offers that. Each run has guard bytes round every input,
// output, pack and workspace, and is compared with what is expected. Constants are not copied for
// each run: that they are left alone is told by a digest. What is right so far then runs once on
// special values, unless the size of an output is unknown or a port is sparse: what is not stored
// meets none of them.
NumberCheck check_candidate(const CandidateTrial& trial, Report& report);

// The same with a kernel that has been built, but for saved bytes.
NumberCheck check_kernel(const CandidateTrial& trial, const Kernel& kernel, Report& report);

}  // namespace tessera::verification
