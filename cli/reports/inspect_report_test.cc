#include "cli/reports/inspect_report.h"

#include <sstream>

#include "base/matchers_test.h"
#include "cli/output/text_table.h"

namespace tessera::cli {
namespace {

ValueDescription value_of(std::string name, std::vector<Dimension> shape, std::string text) {
  ValueDescription value;
  value.name = std::move(name);
  value.type = DataType::Float32;
  value.shape = std::move(shape);
  value.text = std::move(text);
  return value;
}

// A model that is hard to print: long names, invalid UTF-8, unknown dimensions.
ModelDescription awkward_model() {
  const ValueDescription picture =
      value_of("picture", {{.value = std::nullopt, .symbol = "batch"}}, "float32 batch");
  ModelDescription model;
  model.file = std::string(200, 'f') + ".onnx";
  model.ir_version = 8;
  model.opsets = {{"", 17}, {"com.example", 1}};
  model.inputs = {picture, value_of("unused", {}, "float32 scalar")};
  model.inputs[1].is_read = false;
  model.outputs = {value_of(std::string(150, 'o') + "\x1b\xff", {}, "float32 scalar")};
  model.weights = {value_of("w", {{.value = 1024, .symbol = ""}}, "float32 1024")};
  model.weight_bytes = 4096;
  NodeDescription node;
  node.name = std::string(150, 'n') + "_end";
  node.op = "Conv";
  node.version = 11;
  node.inputs = {picture, ValueDescription{}};
  node.outputs = {picture};
  node.flops = 1'500'000;
  model.nodes = {node, node};
  model.passes = {{.name = "fold_constants",
                   .nodes_before = 3,
                   .nodes_after = 2,
                   .seconds = 0.0015,
                   .changes = std::vector<std::string>(60, std::string(120, 'c'))}};
  return model;
}

TEST(InspectReport, FitsTheTerminal) {
  const std::string text =
      inspect_text(awkward_model(), {.has_passes = true, .has_weights = true}, {});
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(character_count(line), kTextColumns) << line;
    EXPECT_EQ(line, printable(line));
  }
  EXPECT_THAT(text, HasSubstr("opsets      ai.onnx 17, com.example 1\n"));
  EXPECT_THAT(text,
              HasSubstr("nodes       2 (3 in the file; --passes says what changed): Conv 2\n"));
  EXPECT_THAT(text, HasSubstr("weights     1, 4.00 KiB\n"));
  EXPECT_THAT(text, HasSubstr("FLOPs       unknown until every shape is known: use --shape\n"));
  EXPECT_THAT(text, HasSubstr("unused, may be left out\n"));
  EXPECT_THAT(text, HasSubstr("_end  Conv     11  float32 batch  1.50 M             ?\n"));
  EXPECT_THAT(text, HasSubstr("fold_constants             3      2       60  1.500 ms\n"));
  EXPECT_THAT(text, HasSubstr("and 10 more"));
}

TEST(InspectReport, ListsWhatIsMissing) {
  std::vector<MissingPart> missing;
  for (int index = 0; index < 60; ++index) {
    missing.push_back({.kind = "operator",
                       .name = "Op" + std::to_string(index),
                       .domain = "com.example",
                       .reason = "Op" + std::to_string(index) + " is not in this build",
                       .count = 3,
                       .places = {"node '" + std::string(150, 'n') + "\x1b'"}});
  }
  const std::string text = missing_text(missing, {});
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(character_count(line), kTextColumns) << line;
    EXPECT_EQ(line, printable(line));
  }
  EXPECT_THAT(text, HasSubstr("Op0 is not in this build"));
  EXPECT_THAT(text, HasSubstr("Op59 is not in this build"));
  EXPECT_EQ(missing_text({}, {}), "");
  EXPECT_THAT(inspect_text(awkward_model(), {.is_loaded = false}, {}),
              Not(HasSubstr("use --shape")))
      << "shapes would not help";
}

TEST(InspectReport, ListsOnlyWhatIsAskedFor) {
  const std::string text = inspect_text(awkward_model(), {}, {});
  EXPECT_THAT(text, Not(HasSubstr("fold_constants")));
  EXPECT_THAT(text, Not(HasSubstr("float32 1024")));
  const Json json = inspect_json(awkward_model(), {});
  EXPECT_FALSE(json.contains("passes"));
  EXPECT_FALSE(json.contains("weights"));
}

TEST(InspectReport, JsonHasEverything) {
  const Json json = Json::parse(
      json_text(inspect_json(awkward_model(), {.has_passes = true, .has_weights = true})));
  EXPECT_EQ(json["opsets"][0]["opset_version"], 17);
  EXPECT_EQ(json["inputs"][0]["shape"][0], "batch");
  EXPECT_EQ(json["inputs"][1]["is_read"], false);
  EXPECT_EQ(json["nodes"][0]["node"], std::string(150, 'n') + "_end");
  EXPECT_EQ(json["nodes"][0]["flop_count"], 1'500'000);
  EXPECT_EQ(json["nodes"][0]["moved_bytes"], nullptr);
  EXPECT_EQ(json["flop_count"], nullptr);
  EXPECT_EQ(json["weights"][0]["shape"][0], 1024);
  EXPECT_EQ(json["passes"][0]["changes"].size(), 60U);
}

TEST(InspectReport, AnEmptyModelHasOnlyAHeader) {
  EXPECT_THAT(inspect_text({}, {}, {}), Not(HasSubstr("\n\n")));
}

}  // namespace
}  // namespace tessera::cli
