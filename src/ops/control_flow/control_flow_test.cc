#include "ops/op_test.h"

namespace tessera::ops {
namespace {

TEST(ControlFlow, SaysByNameThatItCannotRun) {
  for (const char* name : {"If", "Loop", "Scan"}) {
    const Op* op = all_ops().find("", name);
    ASSERT_NE(op, nullptr) << name;
    EXPECT_THAT(op->unsupported_reason, HasSubstr("cannot run yet")) << name;
  }
}

TEST(ControlFlow, NamesItsNestedGraphs) {
  EXPECT_THAT(all_ops().find("", "If")->bodies, ElementsAre("then_branch", "else_branch"));
  EXPECT_THAT(all_ops().find("", "Loop")->bodies, ElementsAre("body"));
}

TEST(ControlFlow, ScanIsYoungerThanItsSiblings) {
  EXPECT_EQ(version_in(*all_ops().find("", "Scan"), 7), std::nullopt);
  EXPECT_EQ(version_in(*all_ops().find("", "Loop"), 7), 1);
}

}  // namespace
}  // namespace tessera::ops
