#include "cli/reports/operators_report.h"

#include "base/matchers_test.h"

namespace tessera::cli {
namespace {

std::vector<OperatorCoverage> sample_operators() {
  return {
      {.domain = "", .name = "Affine", .versions = {1}, .last_version = 9, .is_experiment = true},
      {.domain = "", .name = "DFT", .versions = {}},
      {.domain = "", .name = "Relu", .versions = {1, 6}, .types = {{"T", ops::kFloatTypes}}},
      {.domain = "ai.onnx.ml", .name = "Relu", .versions = {1}}};
}

const OpsByBackend kBackends = {{"fast", {"Relu", "Affine"}}, {"other", {}}};

TEST(OperatorsReport, TableOfWhatThisBuildHas) {
  const std::string text = operators_text(sample_operators(), kBackends, kPipeStyle);
  EXPECT_THAT(text, testing::ContainsRegex("Relu +1, 6 +floats +fast"));
  EXPECT_THAT(text, testing::ContainsRegex("Affine +1 \\(until 9\\) *\n"));
  EXPECT_THAT(text, testing::ContainsRegex("ai.onnx.ml.Relu +1 *\n"));
  EXPECT_THAT(text, testing::HasSubstr("1 operators that are not in this build: DFT"));
}

TEST(OperatorsReport, Json) {
  const Json list = operators_json(sample_operators(), kBackends)["operators"];
  ASSERT_EQ(list.size(), 4U);
  EXPECT_EQ(list[0]["last_opset_version"], 9);
  EXPECT_EQ(list[0]["is_experiment"], true);
  EXPECT_EQ(list[1]["op_versions"], Json::array());
  EXPECT_EQ(list[2]["last_opset_version"], Json());
  EXPECT_EQ(list[2]["type_variables"][0]["types"],
            Json({"float16", "bfloat16", "float32", "float64"}));
  EXPECT_EQ(list[2]["backends"], Json({"fast"}));
  EXPECT_EQ(list[3]["backends"], Json::array());
}

}  // namespace
}  // namespace tessera::cli
