#include "verify/report.h"

#include <algorithm>

namespace tessera::verification {

CheckCount& Report::count(const std::string& check) {
  const auto found = std::find_if(checks_.begin(), checks_.end(),
                                  [&](const CheckCount& each) { return each.name == check; });
  return found != checks_.end() ? *found : checks_.emplace_back(CheckCount{.name = check});
}

void Report::fail(const std::string& check, const std::string& place, const std::string& message) {
  ++count(check).failed;
  if (failures_.size() < kMostFailures) failures_.push_back({check, place, message});
}

void Report::expect(const std::string& check, const std::string& place,
                    const std::string& failure) {
  if (failure.empty()) {
    pass(check);
  } else {
    fail(check, place, failure);
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
