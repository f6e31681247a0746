#include "ops/op_test.h"

namespace tessera::ops {
namespace {

TEST(ControlFlow, SaysByNameThatItCannotRun) {
  const Registry registry = make_registry();
  for (const char* name : {"If", "Loop", "Scan"}) {
    const Op* op = registry.find("", name);
    ASSERT_NE(op, nullptr) << name;
    EXPECT_THAT(op->unsupported_reason, HasSubstr("cannot run yet")) << name;
  }
}

TEST(ControlFlow, NamesItsNestedGraphs) {
  const Registry registry = make_registry();
  EXPECT_THAT(registry.find("", "If")->bodies, ElementsAre("then_branch", "else_branch"));
  EXPECT_THAT(registry.find("", "Loop")->bodies, ElementsAre("body"));
}

TEST(ControlFlow, ScanIsYoungerThanItsSiblings) {
  const Registry registry = make_registry();
  EXPECT_EQ(version_in(*registry.find("", "Scan"), 7), std::nullopt);
  EXPECT_EQ(version_in(*registry.find("", "Loop"), 7), 1);
}

}  // namespace
}  // namespace tessera::ops
