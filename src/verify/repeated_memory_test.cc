#include "verify/repeated_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace tessera::verification {
namespace {

constexpr int64_t kPiece = RepeatedMemory::kPieceBytes;

std::vector<char> pattern() {
  std::vector<char> bytes(static_cast<size_t>(kPiece));
  for (size_t index = 0; index < bytes.size(); ++index) bytes[index] = static_cast<char>(index * 3);
  return bytes;
}

TEST(RepeatedMemory, RepeatsThePatternUpToItsEnd) {
  const std::vector<char> expected = pattern();
  for (const int64_t bytes :
       {int64_t{0}, int64_t{1}, kPiece - 1, kPiece, kPiece + 1, 3 * kPiece, 5 * kPiece + 4097}) {
    const RepeatedMemory memory(bytes, expected);
    for (int64_t at = 0; at < bytes; at += 1023) {
      ASSERT_EQ(memory.data()[at], expected[static_cast<size_t>(at % kPiece)]) << bytes;
    }
    if (bytes > 0) {
      EXPECT_EQ(memory.data()[bytes - 1], expected[static_cast<size_t>((bytes - 1) % kPiece)]);
    }
    EXPECT_EQ(memory.explain_damage(), "");
  }
}

TEST(RepeatedMemory, DetectsEachByteThatIsWrittenBeside) {
  const std::vector<char> contents = pattern();
  for (const int64_t bytes : {int64_t{0}, int64_t{2}, kPiece, 2 * kPiece + 3}) {
    for (const int64_t at : {int64_t{-4096}, int64_t{-1}, bytes, bytes + 13, bytes + 4095}) {
      const RepeatedMemory memory(bytes, contents);
      memory.data()[at] = static_cast<char>(memory.data()[at] + 1);
      EXPECT_NE(memory.explain_damage(), "") << bytes << ", " << at;
    }
  }
}

TEST(RepeatedMemory, TakesPagesOfOnePieceOnly) {
  constexpr int64_t kBytes = int64_t{8} << 30;
  const RepeatedMemory memory(kBytes, pattern());
  memory.data()[kBytes - 1] = 5;
  EXPECT_EQ(memory.data()[kPiece - 1], 5);
  EXPECT_EQ(memory.explain_damage(), "");
}

}  // namespace
}  // namespace tessera::verification
