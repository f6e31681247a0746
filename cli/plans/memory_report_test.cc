#include "cli/plans/memory_report.h"

#include <sstream>

#include "base/matchers_test.h"
#include "cli/output/text_table.h"

namespace tessera::cli {
namespace {

MemoryReport small_memory() {
  MemoryReport report;
  report.memory = {.arena_bytes = 256,
                   .lower_bound_bytes = 192,
                   .naive_bytes = 320,
                   .padding_bytes = 12,
                   .weight_bytes = 40};
  report.memory.blocks = {
      {.name = "a<b>\x1b", .text = "float32 4x4, nhwc", .upper = 2, .bytes = 64},
      {.name = "conv", .lower = 1, .upper = 2, .bytes = 128, .offset = 128, .is_workspace = true}};
  report.steps = 3;
  report.library_bytes = 77;
  report.plan_ms = 1.25;
  return report;
}

TEST(MemoryReport, TextHasTheFigures) {
  const std::string text = memory_text(small_memory(), {});
  EXPECT_THAT(text, HasSubstr("arena         256 bytes for intermediate values and workspaces\n"));
  EXPECT_THAT(text, HasSubstr("lower bound   192 bytes"));
  EXPECT_THAT(text, HasSubstr("ratio         1.3333, arena to lower bound\n"));
  EXPECT_THAT(text, HasSubstr("padding       12 bytes"));
  EXPECT_THAT(text, HasSubstr("libraries     77 bytes"));
  EXPECT_LT(text.find("conv"), text.find("a<b>")) << "the largest first";
  MemoryReport proven = small_memory();
  proven.memory.is_proven_smallest = true;
  EXPECT_THAT(memory_text(proven, {}), HasSubstr("workspaces, proven the smallest\n"));
}

TEST(MemoryReport, FitsTheTerminal) {
  MemoryReport report = small_memory();
  for (int index = 0; index < 30; ++index) {
    report.memory.blocks.push_back({.name = std::string(200, 'n'), .text = std::string(200, 't')});
  }
  const std::string text = memory_text(report, {});
  EXPECT_THAT(text, HasSubstr("and 12 more"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(character_count(line), kTextColumns) << line;
    EXPECT_EQ(line, printable(line));
  }
}

TEST(MemoryReport, JsonHasFiguresAndBlocks) {
  const Json json = memory_json(small_memory());
  EXPECT_EQ(json["arena_bytes"], 256);
  EXPECT_EQ(json["plan_us"], 1250.0);
  EXPECT_EQ(json["blocks"][0]["first_step"], 0);
  EXPECT_EQ(json["blocks"][0]["last_step"], 1) << "inclusive";
  EXPECT_EQ(json["library_bytes"], 77);
  EXPECT_EQ(json["weight_bytes"], 40);
  EXPECT_EQ(json["is_proven_smallest"], false);
  ASSERT_EQ(json["blocks"].size(), 2);
  EXPECT_EQ(json["blocks"][1]["is_workspace"], true);
  EXPECT_EQ(json["blocks"][1]["offset_bytes"], 128);
}

TEST(MemoryReport, ThePictureHasABlockEachAndNothingFromOutside) {
  const std::string svg = memory_svg(small_memory());
  size_t blocks = 0;
  for (size_t at = svg.find("class=\"block\""); at != std::string::npos;
       at = svg.find("class=\"block\"", at + 1)) {
    ++blocks;
  }
  EXPECT_EQ(blocks, 2);
  EXPECT_THAT(svg, HasSubstr("<title>a&lt;b&gt;\\x1b\nfloat32 4x4, nhwc\n64 bytes"));
  EXPECT_THAT(svg, HasSubstr("<title>lower bound: 192 bytes"));
  EXPECT_THAT(svg, Not(HasSubstr("href")));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_NE(memory_svg({}), "") << "nothing to draw is no division by zero";
}

}  // namespace
}  // namespace tessera::cli
