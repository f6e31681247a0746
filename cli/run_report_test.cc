#include "cli/run_report.h"

#include <fstream>

#include "base/matchers_test.h"
#include "base/temporary_folder_test.h"
#include "base/tensors_test.h"
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

}  // namespace
}  // namespace tessera::cli
