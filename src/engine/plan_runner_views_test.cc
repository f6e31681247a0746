// Plans in which values are parts of others: tests which values are copied, and that none is lost.
#include "base/matchers_test.h"
#include "engine/shared_views_test.h"

namespace tessera {
namespace {

using testing_plugins::kEasy;
using testing_plugins::kInPlace;
using testing_plugins::kOdd;
using testing_plugins::SharedViews;

TEST_F(SharedViews, CostNothingWhereEverybodyTakesThem) {
  input("x", {4, 6});
  relu("x", "y");
  split("y", {"left", "right"}, {1, 3});
  split("right", {"up", "down"}, {5, 1}, 1);
  relu("left", "left1");
  relu("up", "up1");
  relu("down", "down1");
  for (const char* name : {"left1", "up1", "down1"}) builder_.output(name);
  run(kEasy);
  EXPECT_EQ(copies(), 0);
}

TEST_F(SharedViews, AreCopiedForWhoTakesNeitherStridesNorOddAddresses) {
  input("x", {4, 6});
  relu("x", "y");
  split("y", {"left", "right"}, {1, 3});
  relu("left", "left1");
  relu("right", "right1");  // at byte 24
  relu("right", "right2");  // of the same copy
  split("y", {"a", "b"}, {2, 4}, 1);
  relu("a", "a1");
  relu("b", "b1");
  for (const char* name : {"left1", "right1", "right2", "a1", "b1"}) builder_.output(name);
  run({});
  EXPECT_EQ(copies(), 3);
  run(kOdd);
  EXPECT_EQ(copies(), 2);
}

TEST_F(SharedViews, OfInputsConstantsAndOutputsBecomeTheCallersOwn) {
  input("x", {4, 6});
  builder_.constant("c", counted({4, 6}, 1));
  split("x", {"x0", "x1"}, {2, 2});
  split("c", {"c0", "c1"}, {1, 3});
  reshape("x1", "flat", {12});
  relu("c0", "r0");
  relu("x", "y");
  reshape("y", "z", {24});
  split("z", {"z0", "z1"}, {4, 20});
  for (const char* name : {"x0", "flat", "c1", "r0", "y", "z", "z1"}) builder_.output(name);
  run(kOdd);
  std::vector<const void*> begins;
  for (const Tensor& result : results_) {
    for (const Tensor& given : inputs_) {
      const auto* first = static_cast<const char*>(given.data());
      const auto* begin = static_cast<const char*>(result.data());
      EXPECT_FALSE(begin >= first && begin < first + given.bytes());
    }
    begins.push_back(result.data());
  }
  std::sort(begins.begin(), begins.end());
  EXPECT_EQ(std::adjacent_find(begins.begin(), begins.end()), begins.end());
  // y or z uses the memory that the kernel wrote.
  EXPECT_EQ(copies(), 5);
}

TEST_F(SharedViews, OfAnInnerValueAreHandedOutWithoutACopy) {
  input("x", {4, 6});
  relu("x", "y");
  reshape("y", "z", {24});
  builder_.output("z");
  run({});
  EXPECT_EQ(copies(), 0);
  EXPECT_THAT(results_[0].dims(), ElementsAre(24));
}

TEST_F(SharedViews, KeepMemoryFromBeingOverwritten) {
  input("x", {32});
  relu("x", "y");
  split("y", {"low", "high"}, {16, 16});
  relu("y", "first");  // must not be in place: high is read later
  relu("high", "second");
  concat({"first", "second"}, "out");
  relu("out", "last");
  builder_.output("last").output("low");
  run(kInPlace);
}

TEST_F(SharedViews, LetKernelsWriteStraightIntoJointValues) {
  input("x", {2, 16});
  relus({"x", "a", "b", "c"});
  concat({"a", "b", "c"}, "joint");
  relu("joint", "last");
  builder_.output("last");
  run({});
  EXPECT_EQ(copies(), 0);
  run(kInPlace);
  EXPECT_EQ(copies(), 0);
}

TEST_F(SharedViews, CopyWhatCannotBeWrittenWhereItBelongs) {
  input("x", {1, 3});
  input("w", {1, 5});
  builder_.constant("c", counted({1, 2}, 50));
  relu("x", "a");
  relu("w", "b");
  concat({"a", "b", "x", "c"}, "joint", 1);
  relu("joint", "last");
  builder_.output("last");
  run({});
  EXPECT_EQ(copies(), 3);  // b at byte 12, x and c
  run(kOdd);
  EXPECT_EQ(copies(), 2);
}

TEST_F(SharedViews, WriteStridesIntoJointValues) {
  input("x", {3, 4});
  relus({"x", "a", "b"});
  concat({"a", "b"}, "joint", 1);
  relu("joint", "last");
  builder_.output("last");
  run(kEasy);
  EXPECT_EQ(copies(), 0);
  run(kOdd);
  EXPECT_EQ(copies(), 2);
}

TEST_F(SharedViews, PutJointValuesIntoLargerOnes) {
  input("x", {1, 16});
  relus({"x", "a", "b"});
  concat({"a", "b"}, "ab");
  relu("ab", "ab1");
  split("ab1", {"c", "d"}, {1, 1});
  concat({"a", "b", "c"}, "abc");  // c is part of a value that must stay complete
  relu("abc", "abc1");
  relu("c", "e");
  concat({"abc", "e"}, "all");
  relu("all", "last");
  for (const char* name : {"last", "abc1", "d"}) builder_.output(name);
  run({});
  EXPECT_EQ(copies(), 2);  // c, and the result d
}

TEST_F(SharedViews, TakeSumsIntoJointValues) {
  input("x", {1, 16});
  relus({"x", "a", "b"});
  builder_.node("add", "Add", {"a", "b"}, {"sum"});  // adds a to the contents of b
  relu("x", "c");
  concat({"c", "sum"}, "joint");
  relu("joint", "last");
  builder_.output("last");
  run({});
  EXPECT_EQ(copies(), 0);
}

TEST_F(SharedViews, AreHeldInMemoryUntilTheirLastReader) {
  input("x", {64});
  relu("x", "y");
  split("y", {"low", "high"}, {32, 32});
  relu("low", "a");
  // These could use y's memory if `high` were not needed.
  relus({"a", "b", "c", "d"});
  relu("high", "e");
  concat({"d", "e"}, "last");
  builder_.output("last");
  run(kInPlace);
  EXPECT_EQ(copies(), 0);
}

}  // namespace
}  // namespace tessera
