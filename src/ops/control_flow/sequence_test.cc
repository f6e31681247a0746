#include "ops/op_test.h"

namespace tessera::ops {
namespace {

TEST(Sequence, SaysByNameThatItCannotRun) {
  for (const char* name : {"SequenceAt", "SequenceMap", "SplitToSequence", "OptionalGetElement"}) {
    const Op* op = all_ops().find("", name);
    ASSERT_NE(op, nullptr) << name;
    EXPECT_THAT(op->unsupported_reason, HasSubstr("yet")) << name;
  }
}

TEST(Sequence, IsYoungerThanOperatorSet10) {
  EXPECT_EQ(version_in(*all_ops().find("", "SequenceAt"), 10), std::nullopt);
  EXPECT_EQ(version_in(*all_ops().find("", "SequenceAt"), 28), 11);
}

}  // namespace
}  // namespace tessera::ops
