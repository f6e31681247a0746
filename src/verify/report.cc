#include "verify/report.h"

#include <algorithm>

namespace tessera::verification {

CheckCount& Report::count(const std::string& check) {
  const auto found = std::find_if(checks_.begin(), checks_.end(),
                                  [&](const CheckCount& each) { return each.name == check; });
  return found != checks_.end() ? *found : checks_.emplace_back(CheckCount{.name = check});
}

void Report::fail(const std::string& check, const std::string& location, const std::string& message,
                  const std::string& detail) {
  ++count(check).failed;
  if (failures_.size() < kMaxFailures) failures_.push_back({check, location, message, detail});
}

void Report::add(const Report& other) {
  for (const CheckCount& each : other.checks_) {
    CheckCount& sum = count(each.name);
    sum.passed += each.passed;
    sum.failed += each.failed;
    sum.skipped += each.skipped;
  }
  for (const Failure& failure : other.failures_) {
    if (failures_.size() < kMaxFailures) failures_.push_back(failure);
  }
  for (const OpCount& each : other.ops_) {
    OpCount& sum = op(each.op);
    sum.cases += each.cases;
    sum.accepted += each.accepted;
    sum.candidates += each.candidates;
    if (sum.refusal.empty()) sum.refusal = each.refusal;
  }
}

void Report::expect(const std::string& check, const std::string& location,
                    const std::string& failure) {
  if (failure.empty()) {
    pass(check);
  } else {
    fail(check, location, failure);
  }
}

OpCount& Report::op(const std::string& name) {
  const auto found =
      std::find_if(ops_.begin(), ops_.end(), [&](const OpCount& each) { return each.op == name; });
  return found != ops_.end() ? *found : ops_.emplace_back(OpCount{.op = name});
}

CheckCount Report::total() const {
  CheckCount total = {.name = "total"};
  for (const CheckCount& each : checks_) {
    total.passed += each.passed;
    total.failed += each.failed;
    total.skipped += each.skipped;
  }
  return total;
}

}  // namespace tessera::verification
