// Runs one candidate of a plug-in on one case and checks everything that it touches.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "base/threads/parallel.h"
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
  std::string location;  // prefix of failure messages
  int precision = TESSERA_PRECISION_FLOAT32;
  // Limits for outputs whose limits are not known means Wide.
  Judge judge = Judge::Limits;
  double ulps = 0;  // of Judge::Ulps
  // For `special`, see SpecialExpectation.
  std::optional<double> special_ulps = std::nullopt;
  // The values of a run on inputs with special values (special_values.h), by value id; null: the
  // handling of special values is not judged.
  const std::vector<Tensor>* special = nullptr;
  SpecialValues special_kinds = SpecialValues::NaN;  // the kind of `special`
  // The values of runs on inputs from other ranges, such as tails, with their limits.
  std::vector<const ExpectedValues*> others = {};
  // If given, all memory comes from this pool, so a kernel that touches memory beside a buffer, or
  // writes to an input, ends the process. The expected values must then be in read-only pages
  // between guard pages; they are not copied. If null, there are guard bytes around copies.
  GuardPagePool* pages = nullptr;
  // If given, receives the packs that were made, in the order of the candidate's inputs (null where
  // there is none), for others who want to read them.
  std::vector<std::shared_ptr<GuardedMemory>>* packs = nullptr;
  // Called with true before each run of the kernel and with false after it.
  std::function<void(bool is_running)> run_watcher = {};
  // Called with the name of the check before the plug-in is called.
  std::function<void(const std::string& check)> step_watcher = {};
};

// Accuracy over all outputs and runs of a trial.
struct NumberCheck {
  double error = 0;      // the largest error, as in measure_difference()
  double tolerance = 0;  // of the output with that error
};

// Builds the candidate's kernel and runs it: into new buffers, twice; in place and accumulating, if
// it supports that; and restored from saved bytes, if it supports that. Each run has guard bytes
// around every input, output, pack and workspace, and its results are compared with the expected
// ones. Constants are not copied for each run; a digest shows whether they were changed. A kernel
// that is correct so far also runs once on special values and once on each of `others`, unless the
// size of an output is unknown or a port is sparse (elements that are not stored cannot be
// special).
NumberCheck check_candidate(const CandidateTrial& trial, Report& report);

// Same as check_candidate(), with a kernel that is already built, without the check of saved bytes.
NumberCheck check_kernel(const CandidateTrial& trial, const Kernel& kernel, Report& report);

// For a view or a joint candidate (check_view.cc): compares the bytes at each part's position in
// the whole with the expected value of the part.
void check_view(const CandidateTrial& trial, ThreadPool& pool, Report& report);

}  // namespace tessera::verification
