#include "api/options/environment.h"

#include "base/matchers_test.h"

namespace tessera {
namespace {

TEST(Environment, TellsWhatIsSetSortedByName) {
  const std::vector<EnvironmentVariable> found = describe_environment(
      {"PATH=/bin", "XDG_CACHE_HOME=/caches", "TESSERA_OPTIMIZE=0", "TESSERA_CACHE_DIR=/a=b"});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].name, "TESSERA_CACHE_DIR");
  EXPECT_EQ(found[0].value, "/a=b");
  EXPECT_THAT(found[0].meaning, HasSubstr("folder of caches"));
  EXPECT_EQ(found[1].name, "TESSERA_OPTIMIZE");
  EXPECT_EQ(found[2].name, "XDG_CACHE_HOME");
}

TEST(Environment, WhatIsEmptyCountsAsNotSet) {
  EXPECT_TRUE(describe_environment({"TESSERA_CACHE_DIR=", "TESSERA_BACKENDS"}).empty());
}

TEST(Environment, AMistypedNameHasNoMeaningButAHint) {
  const std::vector<EnvironmentVariable> found =
      describe_environment({"TESSERA_BACKEND=reference", "TESSERA_QQQQQQQQQ=1"});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].meaning, "");
  EXPECT_THAT(found[0].hint, HasSubstr("did you mean 'TESSERA_BACKENDS'?"));
  EXPECT_EQ(found[1].hint, "");
}

TEST(Environment, VariablesOfPlugInsBelongToThem) {
  const std::vector<EnvironmentVariable> found = describe_environment({"TESSERA_NATIVE_LEVEL=2"});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].meaning, HasSubstr("'native'"));
}

}  // namespace
}  // namespace tessera
