#include "price/cost_table.h"

#include <random>

#include "base/errors/error_test.h"
#include "base/matchers_test.h"

namespace tessera::tuning {
namespace {

CostTable sample() {
  CostTable table;
  table.machine = "some processor, 2 cores";
  const CostKey key{.work = "i0 float32 1x8: v0=Relu.14(i0) -> v0",
                    .candidate = {.nodes = {},
                                  .backend = "mylib",
                                  .algorithm = "tiled \"quoted\"\n",
                                  .ports = "i0=nhwc -> v0=nhwc",
                                  .threads = 2},
                    .ingredients = "version=1.2"};
  table.kernels[key] = {.cold = Timing{1.25e-5, 1e-5, 1.5e-5, 12},
                        .build_seconds = 0.003,
                        .error = 1e-7,
                        .tolerance = 1e-4};
  CostKey other = key;
  other.candidate.threads = 1;
  other.accuracy = 1;
  table.kernels[other] = {.error = 0.5, .tolerance = 1e-4, .refusal = "numbers: element 0"};
  table.conversions[{.backend = "mylib",
                     .ingredients = "version=1.2",
                     .from = "row_major",
                     .to = "nhwc",
                     .element = DataType::Float32,
                     .size_class = 10,
                     .threads = 2}] = {1500, Timing{1e-6, 0.5e-6, 2e-6, 9}, ""};
  const CandidateId step{.nodes = {0, 2},
                         .backend = "mylib",
                         .algorithm = "tiled",
                         .ports = "nhwc -> nhwc",
                         .threads = 2};
  table.plans[{.graph = "0123abc", .backends = "mylib version=1.2", .threads = 2}] = {
      .steps = {step},
      .timing = Timing{1e-3, 0.9e-3, 1.1e-3, 20},
      .conversions = {{.value = 4, .from = "row_major", .to = "nhwc"}},
      .layout_backends = {"other"}};
  return table;
}

TEST(CostTable, ComesBackAsItWas) {
  const CostTable table = sample();
  const std::string text = write_cost_table(table);
  EXPECT_EQ(read_cost_table(text, "file"), table);
  EXPECT_EQ(write_cost_table(read_cost_table(text, "file")), text);
}

TEST(CostTable, MergesWhatIsNewAndKeepsWhatWasNotMeasured) {
  CostTable table = sample();
  CostTable newer;
  const CostKey key = table.kernels.begin()->first;
  newer.kernels[key] = {.warm = Timing{2, 1, 3, 5}, .error = 1e-6, .tolerance = 1e-4};
  CostKey another = key;
  another.candidate.backend = "other";
  newer.kernels[another] = {.refusal = "no"};
  table.kernels[key].cold = Timing{4, 3, 5, 5};
  merge(table, newer);
  EXPECT_EQ(table.kernels.size(), 3U);
  EXPECT_EQ(table.kernels.at(key).warm->seconds, 2);
  EXPECT_EQ(table.kernels.at(key).cold->seconds, 4);
  EXPECT_EQ(table.kernels.at(key).error, 1e-6);
  EXPECT_EQ(table.machine, "some processor, 2 cores");
}

TEST(CostTable, SaysWhereItIsDamaged) {
  const std::string text = write_cost_table(sample());
  const struct {
    std::string from;
    std::string to;
    std::string wrong;
  } cases[] = {
      {R"("format": "tessera costs")", R"("format": "other")", "/format"},
      {"\"threads\": 2", "\"threads\": 0", "/threads"},
      {"\"threads\": 2", R"("threads": "2")", "whole number"},
      {"\"precision\": 0", "\"precision\": 3", "/precision"},
      {"\"accuracy\": 0", "\"accuracy\": 2", "/accuracy"},
      {R"("density": "")", R"("density": "", "more": 1)", "fields"},
      {R"("backend": "mylib")", "\"backend\": 7", "/backend"},
      {"\"machine\"", "\"mashine\"", "'machine'"},
      {"\"kernels\": [", R"("kernels": 5, "x": [)", "/kernels"},
      {R"("element": "float32")", R"("element": "float33")", "float33"},
      {"\"bytes\": 1500", "\"bytes\": 99", "size class"},
      {"\"low\": 1e-05", "\"low\": 1", "/kernels/1/cold/low"},
      {"\"low\": 1e-05", "\"low\": -1", "/kernels/1/cold/low"},
      {R"("refusal": "numbers: element 0")", R"("refusal": "")", "neither"},
      {"\"version\": 6,", "\"version\": 6", "JSON"},
      {R"("judged_here": true)", R"("judged_here": 1)", "truth value"},
      {"\"low\": 1e-05", "\"low\": 1e+999", "too large"},
      {"\"steps\": [", R"("steps": 3, "x": [)", "/plans/0/steps"},
      {"\"nodes\": [", "\"nodes\": [-1, ", "/plans/0/steps/0/nodes"},
      {R"("graph": "0123abc")", "\"graph\": null", "/plans/0/graph"},
      {"\"value\": 4", "\"value\": -4", "/plans/0/conversions/0/value"},
      {"\"layout_backends\": [", "\"layout_backends\": [1, ", "/plans/0/layout_backends"},
  };
  for (const auto& [from, to, wrong] : cases) {
    std::string damaged = text;
    const size_t position = damaged.find(from);
    ASSERT_NE(position, std::string::npos) << from;
    damaged.replace(position, from.size(), to);
    const std::string error = error_of([&] { read_cost_table(damaged, "costs 'x.json'"); });
    EXPECT_THAT(error, HasSubstr("Corrupt: costs 'x.json'")) << from;
    EXPECT_THAT(error, HasSubstr(wrong)) << from;
  }
}

TEST(CostTable, TellsAnotherVersionFromDamage) {
  for (const char* other : {"0", "2", "5", "7"}) {
    std::string text = write_cost_table(sample());
    const std::string version = "\"version\": ";
    text.replace(text.find(version) + version.size(), 1, other);
    EXPECT_THAT(error_of([&] { read_cost_table(text, "file"); }), HasSubstr("Unsupported"));
  }
}

TEST(CostTable, UntrustedCostsReplaceOnlyWithRefusals) {
  const CostKey key{.work = "w", .candidate = {.nodes = {}, .backend = "mylib"}};
  const Timing ours{1e-3, 1e-3, 1e-3, 10};
  const Timing his{1e-6, 1e-6, 1e-6, 10};
  CostTable table{.kernels = {{key, {.warm = ours, .error = 0.1}}}};
  const CostTable untrusted{.kernels = {{key, {.warm = his, .is_verified_here = false}}}};
  merge(table, untrusted);
  EXPECT_TRUE(table.kernels[key].is_verified_here);
  EXPECT_EQ(table.kernels[key].error, 0.1);
  merge(table, {.kernels = {{key, {.refusal = "no", .is_verified_here = false}}}});
  EXPECT_EQ(table.kernels[key].refusal, "no");
  CostTable hint = untrusted;
  merge(hint, {.kernels = {{key, {.warm = ours}}}});
  EXPECT_TRUE(hint.kernels[key].is_verified_here);
}

TEST(CostTable, RefusesOneKeyTwice) {
  const std::string text = write_cost_table(sample());
  const size_t begin = text.find("  {\n   \"work\"");
  const size_t end = text.find("  },\n", begin) + 5;
  std::string twice = text;
  twice.insert(begin, text.substr(begin, end - begin));
  EXPECT_THAT(error_of([&] { read_cost_table(twice, "file"); }), HasSubstr("once"));
}

// Reading changed bytes returns a table or throws an Error, for every change.
TEST(CostTable, SurvivesAnyDamage) {
  const std::string text = write_cost_table(sample());
  const auto try_to_read = [](const std::string& damaged) {
    const auto kind = kind_of_error([&] { read_cost_table(damaged, "file"); });
    EXPECT_TRUE(!kind || kind == ErrorKind::Corrupt || kind == ErrorKind::Unsupported);
    return !kind;
  };
  for (size_t length = 0; length + 1 < text.size(); ++length) {
    EXPECT_FALSE(try_to_read(text.substr(0, length))) << length;
  }
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    std::string damaged = text;
    for (unsigned flips = 1 + random() % 3; flips > 0; --flips) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    try_to_read(damaged);
  }
  try_to_read(std::string(100'000, '['));
  try_to_read("{\"format\":" + std::string(100'000, '{'));
}

TEST(SizeClass, IsThePowerOfTwoBelow) {
  EXPECT_EQ(size_class_of(0), 0);
  EXPECT_EQ(size_class_of(1), 0);
  EXPECT_EQ(size_class_of(1023), 9);
  EXPECT_EQ(size_class_of(1024), 10);
}

}  // namespace
}  // namespace tessera::tuning
