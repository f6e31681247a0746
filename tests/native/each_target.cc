#include "each_target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "hwy/targets.h"

namespace tessera {

Totals check_each_target(uint64_t seed, int cases, const MakeCase& make,
                         const Tolerance& tolerance) {
  const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  Totals all;
  const int share = cases / static_cast<int>(targets.size()) + 1;
  for (const int64_t target : targets) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    const Totals totals = check_cases("native", seed++, share, make, tolerance);
    all.answered += totals.answered;
    all.candidates += totals.candidates;
    all.failures += totals.failures;
    all.largest = std::max(all.largest, totals.largest);
    for (const auto& [reason, count] : totals.refusals) all.refusals[reason] += count;
  }
  hwy::SetSupportedTargetsForTest(0);
  return all;
}

}  // namespace tessera
