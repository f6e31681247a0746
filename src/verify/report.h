// The result of verifying a plug-in: counts by check, and failures with their context.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::verification {

// One row of the table.
struct CheckCount {
  std::string name;  // "numbers", "guard bytes"
  int64_t passed = 0;
  int64_t failed = 0;
  int64_t skipped = 0;
};

struct Failure {
  std::string check;
  std::string location;  // "Conv(1x3x9x7, #4x3x3x3), candidate 'direct', 2 threads"
  std::string message;
  std::string detail = {};  // additional context; "": none
};

template <class Archive>
void transfer(Archive& archive, CheckCount& count) {
  archive(count.name, count.passed, count.failed, count.skipped);
}

template <class Archive>
void transfer(Archive& archive, Failure& failure) {
  archive(failure.check, failure.location, failure.message, failure.detail);
}

// How many cases of an op the plug-in accepted.
struct OpCount {
  std::string op;
  int64_t cases = 0;
  int64_t accepted = 0;    // cases with a candidate
  int64_t candidates = 0;  // sum over all cases
  std::string refusal;     // the first reason of a refusal
};

template <class Archive>
void transfer(Archive& archive, OpCount& op) {
  archive(op.op, op.cases, op.accepted, op.candidates, op.refusal);
}

// Serialisable for another process (base/files/byte_archive.h).
class Report {
 public:
  // The number of failures that are described; further ones are only counted.
  static constexpr size_t kMaxFailures = 50;

  void pass(const std::string& check) { ++count(check).passed; }
  void skip(const std::string& check) { ++count(check).skipped; }
  void fail(const std::string& check, const std::string& location, const std::string& message,
            const std::string& detail = {});
  // Passes if `failure` is "".
  void expect(const std::string& check, const std::string& location, const std::string& failure);
  // The reference is valid until the next call.
  OpCount& op(const std::string& name);
  // Adds the results of another report.
  void add(const Report& other);

  // In the order of their first occurrence.
  const std::vector<CheckCount>& checks() const { return checks_; }
  const std::vector<Failure>& failures() const { return failures_; }
  const std::vector<OpCount>& ops() const { return ops_; }
  CheckCount total() const;

 private:
  template <class Archive>
  friend void transfer(Archive& archive, Report& report) {
    archive(report.checks_, report.failures_, report.ops_);
  }
  CheckCount& count(const std::string& check);

  std::vector<CheckCount> checks_;
  std::vector<Failure> failures_;
  std::vector<OpCount> ops_;
};

}  // namespace tessera::verification
