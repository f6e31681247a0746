#include "cli/reports/run_report.h"

#include <fstream>
#include <limits>

#include "base/files/temporary_folder_test.h"
#include "base/matchers_test.h"
#include "base/tensor/tensors_test.h"
#include "tessera/tensor_file.h"

namespace tessera::cli {
namespace {

RunReport report_of(const Tensor& output) {
  RunReport report;
  report.model = "model.onnx";
  report.outputs = {{"scope/y", output, ""}};
  report.times.run.duration = std::chrono::microseconds(1500);
  report.threads = 2;
  return report;
}

TEST(RunReport, NamesOutputsAndTimes) {
  const RunReport report = report_of(floats({1, 2.5F}));
  const std::string text = report_text(report, {});
  EXPECT_THAT(text, HasSubstr("scope/y  float32  2      1 2.5\n"));
  EXPECT_THAT(text, HasSubstr("run 1.500 ms, 2 threads\n"));
  const Json json = report_json(report);
  EXPECT_EQ(json["outputs"][0].dump(),
            R"({"value":"scope/y","type":"float32","shape":[2],"file":""})");
  EXPECT_EQ(json["run_us"], 1500.0);
  EXPECT_EQ(json["thread_count"], 2);
  EXPECT_EQ(json["is_match"], nullptr);
}

TEST(RunReport, SaysWhetherOutputsAreAsExpected) {
  const Tensor actual = floats({1, 2, 3});
  RunReport report = report_of(actual);
  report.comparisons = {{"scope/y", DataType::Float32, compare(actual, actual, {})}};
  EXPECT_TRUE(report.is_match());
  EXPECT_THAT(report_text(report, {}), HasSubstr("output 'scope/y' is as expected\n"));
  EXPECT_EQ(report_json(report)["is_match"], true);

  report.comparisons.push_back(
      {"scope/y", DataType::Float32, compare(actual, floats({1, 2, 5}), {})});
  EXPECT_FALSE(report.is_match());
  EXPECT_THAT(report_text(report, {}), HasSubstr("output 'scope/y' is not as expected:\n"
                                                 "  worst element (2): expected 5, found 3\n"));
  const Json json = report_json(report);
  EXPECT_EQ(json["is_match"], false);
  ASSERT_EQ(json["mismatches"].size(), 1U);
  EXPECT_EQ(json["mismatches"][0]["worst_indices"][0], 2);
  EXPECT_EQ(json["mismatches"][0]["difference"], 2);
  EXPECT_EQ(json["mismatches"][0]["off_count"], 1);
}

TEST(RunReport, WritesTensorsUnderNumbers) {
  const TemporaryFolder folder;
  {
    StagedFiles files;
    write_tensors(folder / "new", "value",
                  {{"a/b\xff", floats({1}), "node"}, {"c", floats({2, 3}), ""}}, true, files);
    EXPECT_FALSE(std::filesystem::exists(folder / "new" / "values.json"));
    files.commit();
  }
  std::ifstream stream(folder / "new" / "values.json");
  const Json entries = Json::parse(stream);
  EXPECT_EQ(entries[0]["name"], "a/b\xef\xbf\xbd");
  EXPECT_EQ(entries[0]["node"], "node");
  EXPECT_EQ(entries[1]["file"], "value_1.npy");
  EXPECT_EQ(entries[1]["shape"], Json({2}));
  EXPECT_THAT(read_tensor(folder / "new" / "value_1.npy").as<float>(), ElementsAre(2, 3));
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class T>
Tensor tensor_of(DataType type, std::vector<int64_t> dims, const std::vector<T>& values) {
  return Tensor::from<T>(type, std::move(dims), values);
}

TEST(Compare, JudgesLikeAllclose) {
  struct Case {
    float actual;
    float expected;
    bool is_match;
  };
  const Case cases[] = {
      {1.0F, 1.0F, true},
      {1.0625F, 1.0F, true},
      {1.126F, 1.0F, false},
      {0.874F, 1.0F, false},
      {kNan, kNan, true},
      {kNan, 1.0F, false},
      {1.0F, kNan, false},
      {kInfinity, kInfinity, true},
      {kInfinity, -kInfinity, false},
      {1.0F, kInfinity, false},
      {kInfinity, 1.0F, false},
      {-1.0F, 1.0F, false},
      {0.0F, -0.0F, true},
      {0.0625F, 0.0F, true},
      {0.063F, 0.0F, false},
      // The tolerance is relative to the expected value, not to the actual one.
      {16.0F, 15.0F, true},
      {100.0F, 93.9F, false},
      {93.9F, 100.0F, true},
  };
  const Tolerance tolerance{.relative = 0.0625, .absolute = 0.0625};
  for (const Case& row : cases) {
    SCOPED_TRACE(std::to_string(row.actual) + " for " + std::to_string(row.expected));
    EXPECT_EQ(compare(floats({row.actual}), floats({row.expected}), tolerance).is_match(),
              row.is_match);
  }
}

TEST(Compare, FindsTheWorstElement) {
  const Tensor expected = tensor_of<float>(DataType::Float32, {2, 3}, {0, 10, 20, 30, 40, 50});
  const Tensor actual = tensor_of<float>(DataType::Float32, {2, 3}, {0, 10, 21, 30, 42.5F, 50});
  const Comparison comparison = compare(actual, expected, {});
  EXPECT_FALSE(comparison.is_match());
  EXPECT_EQ(comparison.elements_off, 2);
  EXPECT_THAT(comparison.worst_indices, ElementsAre(1, 1));
  EXPECT_EQ(explain(comparison, DataType::Float32),
            "worst element (1, 1): expected 40, found 42.5\n"
            "off by 2.5, allowed 0.04001\n"
            "2 of 6 elements are off");
}

TEST(Compare, NothingIsWorseThanNan) {
  const Comparison comparison = compare(floats({100, kNan, 7}), floats({1, 2, 7}), {});
  EXPECT_EQ(explain(comparison, DataType::Float32),
            "worst element (1): expected 2, found nan\n2 of 3 elements are off");
}

TEST(Compare, TypesAndShapesMustAgree) {
  const Tensor row = tensor_of<float>(DataType::Float32, {1, 2}, {1, 2});
  EXPECT_EQ(explain(compare(row, floats({1, 2}), {}), DataType::Float32),
            "expected float32 2, found float32 1x2");
  EXPECT_FALSE(compare(tensor_of<int32_t>(DataType::Int32, {1}, {1}), floats({1}), {}).is_match());
}

TEST(Compare, LargeIntegersAreNotRounded) {
  if (std::numeric_limits<WideNumber>::digits < 64) GTEST_SKIP() << "long double is a double here";
  const auto large = std::numeric_limits<int64_t>::max();
  const Tensor expected = tensor_of<int64_t>(DataType::Int64, {1}, {large});
  const Tensor actual = tensor_of<int64_t>(DataType::Int64, {1}, {large - 1});
  const Comparison comparison = compare(actual, expected, {.relative = 0, .absolute = 0});
  EXPECT_THAT(explain(comparison, DataType::Int64),
              HasSubstr("expected 9223372036854775807, found 9223372036854775806"));
}

TEST(Compare, ScalarsAndEmptyTensors) {
  const Tensor one = tensor_of<float>(DataType::Float32, {}, {1});
  const Tensor two = tensor_of<float>(DataType::Float32, {}, {2});
  EXPECT_TRUE(compare(one, one, {}).is_match());
  EXPECT_THAT(explain(compare(two, one, {}), DataType::Float32), HasSubstr("element ():"));
  const Tensor none(DataType::Float32, {0});
  EXPECT_TRUE(compare(none, none, {}).is_match());
}

TEST(Element, SummariesFitTheNumberOfElements) {
  EXPECT_EQ(summarise(Tensor(DataType::Float32, {0})), "no elements");
  EXPECT_EQ(summarise(floats({1, 2.5F})), "1 2.5");
  EXPECT_EQ(summarise(floats({0, 1, 2, 3, 4, kNan})), "0 to 4, mean 2, 1 not finite");
  EXPECT_EQ(summarise(floats(std::vector<float>(6, kNan))), "no finite element");
  EXPECT_EQ(summarise(tensor_of<uint8_t>(DataType::Bool, {2}, {0, 1})), "false true");
}

}  // namespace

}  // namespace tessera::cli
