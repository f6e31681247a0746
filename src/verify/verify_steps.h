// Announces each step of a verification before the plug-in is called, so that a process that
// watches this one knows which step crashed it.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "verify/report.h"

namespace tessera::verification {

struct VerifyStep {
  std::string check = {};    // its name in the report: "runs"
  std::string subject = {};  // "op Conv", "layout 'mylib:tiled'"; "the plug-in"
  int case_number = 0;       // within the subject, from 1
  int case_count = 0;        // 0 if the subject has no cases
  std::string detail = {};   // "Conv(1x3x9x7, #4x3x3x3), candidate 'direct', 2 threads"
  // The index of the unit of work that this step belongs to, from 0 and equal in every process; -1
  // while opening and closing.
  int unit = -1;
};

// Announces the steps of one verification. Units are skipped as a whole.
class VerifySteps {
 public:
  using Watcher = std::function<void(const VerifyStep& step)>;
  VerifySteps(int first_unit, std::set<std::string> passed_over, Watcher watcher)
      : first_unit_(first_unit),
        passed_over_(std::move(passed_over)),
        watcher_(std::move(watcher)) {}

  // Begins the next unit, whose steps are all about `subject`. False if the unit is skipped: it
  // precedes the first unit, or its subject has crashed too often (which `report` counts as
  // skipped).
  bool begin_unit(const std::string& subject, int case_number, int case_count, Report& report);
  // Returns to steps about the plug-in as a whole.
  void end_units();
  void report(const std::string& check, const std::string& detail);
  const VerifyStep& newest() const { return step_; }

  // Later processes do not count results before their first unit.
  bool is_first_process() const { return first_unit_ == 0; }

 private:
  int first_unit_;
  std::set<std::string> passed_over_;
  Watcher watcher_;
  VerifyStep step_ = {.subject = "the plug-in"};
  int units_ = 0;
};

}  // namespace tessera::verification
