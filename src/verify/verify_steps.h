// What verifying is about to do, said before the plug-in is called: whoever watches another process
// knows then what that died of.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "verify/report.h"

namespace tessera::verification {

struct VerifyStep {
  std::string check = {};    // as the report has it: "runs"
  std::string subject = {};  // "op Conv", "layout 'mylib:tiled'"; "the plug-in"
  int case_number = 0;       // of the subject's, from 1
  int case_count = 0;        // 0: the subject has no cases
  std::string detail = {};   // "Conv(1x3x9x7, #4x3x3x3), candidate 'direct', 2 threads"
  // Of the part of the work that this belongs to, from 0, the same in every process; -1 while
  // opening and closing.
  int unit = -1;
};

// Tells of each step of one verification. A unit is what is passed over as a whole.
class VerifySteps {
 public:
  using Watcher = std::function<void(const VerifyStep& step)>;
  VerifySteps(int first_unit, std::set<std::string> passed_over, Watcher watcher)
      : first_unit_(first_unit),
        passed_over_(std::move(passed_over)),
        watcher_(std::move(watcher)) {}

  // The next unit, all of whose steps are about `subject`. False where it is passed over: it comes
  // before the first, or its subject has crashed too often, which `report` counts as skipped.
  bool begin_unit(const std::string& subject, int case_number, int case_count, Report& report);
  // Back to what is about the plug-in as a whole.
  void end_units();
  void tell(const std::string& check, const std::string& detail);
  const VerifyStep& newest() const { return step_; }

  // A later process than the first counts nothing of what comes before its first unit.
  bool is_first_process() const { return first_unit_ == 0; }

 private:
  int first_unit_;
  std::set<std::string> passed_over_;
  Watcher watcher_;
  VerifyStep step_ = {.subject = "the plug-in"};
  int units_ = 0;
};

}  // namespace tessera::verification
