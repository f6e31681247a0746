#include "verify/report.h"

#include <gtest/gtest.h>

#include "base/files/byte_archive.h"

namespace tessera::verification {
namespace {

Report some() {
  Report report;
  report.pass("runs");
  report.skip("strides");
  report.fail("numbers", "Relu(7)", "found nan", "1 thread");
  OpCount& op = report.op("Relu");
  op = {"Relu", 3, 2, 4, "not this one"};
  return report;
}

TEST(Reports, AddUp) {
  Report sum = some();
  sum.pass("closes");
  sum.add(some());
  ASSERT_EQ(sum.checks().size(), 4U);
  EXPECT_EQ(sum.checks()[0].passed, 2);
  EXPECT_EQ(sum.total().failed, 2);
  EXPECT_EQ(sum.total().skipped, 2);
  EXPECT_EQ(sum.failures().size(), 2U);
  ASSERT_EQ(sum.ops().size(), 1U);
  EXPECT_EQ(sum.ops()[0].cases, 6);
  EXPECT_EQ(sum.ops()[0].candidates, 8);
}

TEST(Reports, KeepCountingWhereTheyTellNoMore) {
  Report sum;
  for (size_t index = 0; index < Report::kMaxFailures + 5; ++index) sum.add(some());
  EXPECT_EQ(sum.failures().size(), Report::kMaxFailures);
  EXPECT_EQ(sum.total().failed, static_cast<int64_t>(Report::kMaxFailures) + 5);
}

TEST(Reports, CrossToAnotherProcess) {
  ByteWriter writer;
  writer(some());
  const std::string bytes = writer.take_bytes();
  ByteReader reader(bytes);
  Report read;
  reader(read);
  reader.expect_end();
  EXPECT_EQ(read.total().passed, 1);
  ASSERT_EQ(read.failures().size(), 1U);
  EXPECT_EQ(read.failures()[0].message, "found nan");
  EXPECT_EQ(read.failures()[0].detail, "1 thread");
  EXPECT_EQ(read.ops()[0].refusal, "not this one");
}

}  // namespace
}  // namespace tessera::verification
