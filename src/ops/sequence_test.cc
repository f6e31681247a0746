#include "ops/op_test.h"

namespace tessera::ops {
namespace {

TEST(Sequence, SaysByNameThatItCannotRun) {
  const Registry registry = make_registry();
  for (const char* name : {"SequenceAt", "SequenceMap", "SplitToSequence", "OptionalGetElement"}) {
    const Op* op = registry.find("", name);
    ASSERT_NE(op, nullptr) << name;
    EXPECT_THAT(op->unsupported_reason, HasSubstr("yet")) << name;
  }
}

TEST(Sequence, IsYoungerThanOperatorSet10) {
  const Registry registry = make_registry();
  EXPECT_EQ(version_in(*registry.find("", "SequenceAt"), 10), std::nullopt);
  EXPECT_EQ(version_in(*registry.find("", "SequenceAt"), 28), 11);
}

}  // namespace
}  // namespace tessera::ops
