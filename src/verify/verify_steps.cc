#include "verify/verify_steps.h"

namespace tessera::verification {

bool VerifySteps::begin_unit(const std::string& subject, int case_number, int case_count,
                             Report& report) {
  step_ = {
      .subject = subject, .case_number = case_number, .case_count = case_count, .unit = units_++};
  if (step_.unit < first_unit_) return false;
  if (!passed_over_.contains(subject)) return true;
  report.skip("not tried: crashed before");
  return false;
}

void VerifySteps::end_units() { step_ = {.subject = "the plug-in"}; }

void VerifySteps::report(const std::string& check, const std::string& detail) {
  if (!watcher_) return;
  step_.check = check;
  step_.detail = detail;
  watcher_(step_);
}

}  // namespace tessera::verification
