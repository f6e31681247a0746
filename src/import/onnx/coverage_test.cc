#include "import/onnx/coverage.h"

#include "base/matchers_test.h"
#include "ops/all_ops_test.h"

namespace tessera {
namespace {

OperatorCoverage coverage_named(const std::string& domain, const std::string& name) {
  for (OperatorCoverage& each : operator_coverage(all_ops())) {
    if (each.domain == domain && each.name == name) return std::move(each);
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(Coverage, HasVersionsOfTheTableAndThoseThatImportConverts) {
  EXPECT_THAT(coverage_named("", "Relu").versions, ElementsAre(1, 6, 13, 14));
  EXPECT_THAT(coverage_named("", "GRU").versions, ElementsAre(1, 3, 7, 14, 22));
  EXPECT_THAT(coverage_named("", "Softmax").versions, ElementsAre(1, 11, 13));
  EXPECT_EQ(coverage_named("", "Relu").last_version, 0);
  EXPECT_EQ(coverage_named("", "Upsample").last_version, 9);
  const OperatorCoverage affine = coverage_named("", "Affine");
  EXPECT_TRUE(affine.is_experiment);
  EXPECT_THAT(affine.versions, ElementsAre(1));
  EXPECT_EQ(affine.last_version, 9);
  EXPECT_FALSE(coverage_named("", "ThresholdedRelu").is_experiment);
}

TEST(Coverage, ListsWhatIsMissing) {
  ops::Registry registry;
  registry.add({.name = "Relu", .versions = {6, 13}});
  registry.add({.name = "Own", .domain = "com.example", .versions = {1}});
  std::vector<std::string> here;
  size_t missing = 0;
  for (const OperatorCoverage& each : operator_coverage(registry)) {
    if (each.versions.empty()) {
      ++missing;
    } else {
      here.push_back(each.domain + " " + each.name);
    }
  }
  EXPECT_THAT(here, ElementsAre(" Relu", "com.example Own"));
  EXPECT_GT(missing, 200U);
}

TEST(Coverage, NamesGroupsOfTypes) {
  EXPECT_EQ(type_set_text(ops::kAllTypesAndStrings), "all");
  EXPECT_EQ(type_set_text(ops::kAllTypes), "numbers, bool");
  EXPECT_EQ(type_set_text(ops::kFloatTypes | ops::kSignedIntegerTypes), "signed integers, floats");
  EXPECT_EQ(type_set_text(ops::kIndexTypes), "int32, int64");
  EXPECT_EQ(
      element_types_text(
          {{"T", ops::kFloatTypes}, {"tensor(int64)", ops::kInt64Type}, {"T1", ops::kBoolType}}),
      "floats; T1: bool");
}

}  // namespace
}  // namespace tessera
