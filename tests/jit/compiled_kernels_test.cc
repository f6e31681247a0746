// Compiled kernels give the same elements as the evaluator of expressions.
#include <gtest/gtest.h>

#include <cstring>

#include "group_runner.h"
#include "lane_forms.h"

namespace tessera::jit {
namespace {

const std::vector<std::string> kLevels = {"x86-64-v4", "x86-64-v3", "x86-64-v2"};

// One store for each level that this processor has.
class CompiledKernels : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string highest = this_processor().level;
    bool has_level = false;
    for (const std::string& level : kLevels) {
      has_level = has_level || level == highest;
      if (has_level) {
        stores_.push_back(
            std::make_shared<KernelStore>(target_of_level(level), plugin::Blobs(), "test"));
      }
    }
    missing_ = stores_.front()->explain_missing_compiler();
  }
  static void TearDownTestSuite() { stores_.clear(); }
  void SetUp() override {
    if (!missing_.empty()) GTEST_SKIP() << missing_;
  }

  // Runs one case, and returns whether this level computes it.
  static bool check(const RandomCase& given, const std::shared_ptr<KernelStore>& store) {
    const auto group = std::make_shared<const plugin::FusedGroup>(given.group);
    std::unique_ptr<plugin::Kernel> kernel;
    try {
      kernel = build_fused_kernel(group, given.settings.layout, store);
    } catch (const plugin::Failure& failure) {
      EXPECT_EQ(failure.kind(), TESSERA_UNSUPPORTED) << failure.what();
      return false;
    }
    try {
      const Tensors found = run_kernel(*kernel, *group, given.inputs, given.settings);
      EXPECT_EQ(explain_difference(*group, evaluate(*group, given.inputs), found), "");
    } catch (const std::runtime_error& error) {
      ADD_FAILURE() << error.what();
    }
    return true;
  }

  template <class MakeCase>
  static void check_cases(const MakeCase& make_case, uint32_t count) {
    uint32_t computed = 0;
    for (uint32_t seed = 0; seed < count && !HasFailure(); ++seed) {
      const RandomCase given = make_case(seed);
      const std::shared_ptr<KernelStore>& store = stores_[seed % stores_.size()];
      SCOPED_TRACE("seed " + std::to_string(seed) + " on " + store->target().level);
      computed += check(given, store) ? 1 : 0;
    }
    EXPECT_GT(computed, count / 2);
  }

  static inline std::vector<std::shared_ptr<KernelStore>> stores_;
  static inline std::string missing_;
};

TEST_F(CompiledKernels, ComputeRandomElementwiseGroups) {
  check_cases(random_elementwise_case, 300);
}

TEST_F(CompiledKernels, ComputeRandomReductions) { check_cases(random_reduction_case, 200); }

TEST_F(CompiledKernels, DISABLED_ComputeManyRandomElementwiseGroups) {
  check_cases(random_elementwise_case, 5'000);
}

TEST_F(CompiledKernels, DISABLED_ComputeManyRandomReductions) {
  check_cases(random_reduction_case, 5'000);
}

std::string floats(size_t count) {
  std::mt19937 random(7);
  std::string bytes(count * sizeof(float), '\0');
  for (size_t index = 0; index < count; ++index) {
    const float value = static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
    std::memcpy(bytes.data() + index * sizeof(float), &value, sizeof(value));
  }
  return bytes;
}

// Large enough that two threads share a single axis, or rows.
TEST_F(CompiledKernels, ShareLongAxesAndManyRowsBetweenThreads) {
  const std::vector<std::vector<int64_t>> shapes = {{500'003}, {3, 100'001}, {20'001, 17}};
  for (const std::vector<int64_t>& dims : shapes) {
    GroupBuilder builder(dims);
    const int32_t x = builder.operand(TESSERA_FLOAT32);
    std::vector<int64_t> last(dims.size(), 0);
    last.back() = 1;
    const int32_t bias = builder.operand(TESSERA_FLOAT32, last);
    builder.result(builder.append(TESSERA_EXPRESSION_ADD, TESSERA_FLOAT32, {x, bias}));
    RandomCase given = {builder.group, {}, {.threads = 2}};
    given.inputs = {floats(static_cast<size_t>(given.group.points())),
                    floats(static_cast<size_t>(dims.back()))};
    EXPECT_TRUE(check(given, stores_.front()));
  }
}

TEST_F(CompiledKernels, StreamResultsThatExceedTheCache) {
  Target target = stores_.front()->target();
  target.cached_bytes = 1000;
  const auto store = std::make_shared<KernelStore>(target, plugin::Blobs(), "test");
  // Rows of the first are aligned, those of the second are not.
  for (const int64_t columns : {1'024, 1'027}) {
    GroupBuilder builder({5, columns});
    const int32_t x = builder.operand(TESSERA_FLOAT32);
    const int32_t bias = builder.operand(TESSERA_FLOAT32, {0, 1}, 1);
    builder.result(builder.append(TESSERA_EXPRESSION_ADD, TESSERA_FLOAT32, {x, bias}));
    builder.result(builder.append(TESSERA_EXPRESSION_LESS, TESSERA_BOOL, {x, bias}));
    RandomCase given = {builder.group, {}, {.threads = 2}};
    given.inputs = {floats(static_cast<size_t>(5 * columns)),
                    floats(static_cast<size_t>(columns + 1))};
    EXPECT_NE(kernel_parts(given.group, "", target).at(0).print().find(kStreamName),
              std::string::npos);
    EXPECT_TRUE(check(given, store));
  }
}

// Many conditions that are needed later, so that masks of rows' ends do not stay in registers, and
// results of all types, of which the narrow ones have fewer bytes than the smallest register.
RandomCase case_with_narrow_results(std::vector<int64_t> dims, int32_t type, int32_t narrow) {
  GroupBuilder builder(std::move(dims));
  const int32_t x = builder.operand(type);
  std::vector<int32_t> conditions;
  for (int number = 0; number < 12; ++number) {
    conditions.push_back(builder.append(TESSERA_EXPRESSION_LESS, TESSERA_BOOL,
                                        {x, builder.number(type, number - 6)}));
  }
  int32_t value = x;
  for (const int32_t condition : conditions) {
    const int32_t next = builder.append(TESSERA_EXPRESSION_SUBTRACT, type, {x, value});
    value = builder.append(TESSERA_EXPRESSION_SELECT, type, {condition, next, value});
  }
  const int32_t last =
      builder.append(TESSERA_EXPRESSION_LESS, TESSERA_BOOL, {value, builder.number(type, 0.5)});
  builder.result(last);
  const int32_t chosen =
      builder.append(TESSERA_EXPRESSION_SELECT, narrow,
                     {builder.append(TESSERA_EXPRESSION_AND, TESSERA_BOOL, {last, conditions[3]}),
                      builder.number(narrow, 3), builder.number(narrow, 5)});
  builder.result(narrow == TESSERA_BOOL ? conditions[7] : chosen);
  builder.result(value);
  RandomCase made = {builder.group, {}, {}};
  std::mt19937 random(11);
  made.inputs = {random_elements(random, type, port_bytes(made.group, made.group.operands, 0))};
  return made;
}

TEST_F(CompiledKernels, WriteNothingBehindRowsOfNarrowResults) {
  const std::vector<std::vector<int64_t>> shapes = {
      {1}, {2}, {8}, {9}, {15}, {17}, {33}, {3, 7}, {5, 2}, {11, 3}, {2, 65}, {4, 1, 9}};
  for (const int32_t type : {TESSERA_FLOAT64, TESSERA_FLOAT32, TESSERA_INT64}) {
    for (const int32_t narrow :
         {TESSERA_BOOL, TESSERA_INT8, TESSERA_UINT8, TESSERA_INT16, TESSERA_INT32}) {
      for (const std::vector<int64_t>& dims : shapes) {
        RandomCase given = case_with_narrow_results(dims, type, narrow);
        for (const std::shared_ptr<KernelStore>& store : stores_) {
          SCOPED_TRACE(store->target().level);
          check(given, store);
        }
      }
    }
  }
}

// A vector of fewer bytes would be widened by the code generator.
TEST_F(CompiledKernels, MaskWholeRegistersOfBytes) {
  for (const int32_t type : {TESSERA_FLOAT64, TESSERA_FLOAT32, TESSERA_INT64}) {
    const RandomCase given = case_with_narrow_results({3, 7}, type, TESSERA_INT8);
    for (const KernelPart& part : kernel_parts(given.group, "", target_of_level("x86-64-v4"))) {
      const std::string text = part.print();
      EXPECT_NE(text.find("llvm.masked.store.v16i8"), std::string::npos);
      for (const char* lanes : {"2", "4", "8"}) {
        for (const char* name : {"llvm.masked.store.v", "llvm.masked.load.v"}) {
          EXPECT_EQ(text.find(std::string(name) + lanes + "i8"), std::string::npos);
        }
      }
    }
  }
}

std::string small_numbers(size_t count) {
  std::mt19937 random(9);
  std::string bytes(count * sizeof(float), '\0');
  for (size_t index = 0; index < count; ++index) {
    const auto value = static_cast<float>(random() % 3);
    std::memcpy(bytes.data() + index * sizeof(float), &value, sizeof(value));
  }
  return bytes;
}

// The form of softmax, with whole numbers: a value that costs much is summed and written.
plugin::FusedGroup group_with_kept_value(std::vector<int64_t> dims) {
  GroupBuilder builder(std::move(dims));
  builder.group.reduced_axes = uint64_t{1} << (builder.group.dims.size() - 1);
  const int32_t x = builder.operand(TESSERA_FLOAT32);
  const int32_t largest = builder.append(TESSERA_EXPRESSION_REDUCE_MAX, TESSERA_FLOAT32, {x});
  int32_t value = builder.append(TESSERA_EXPRESSION_MULTIPLY, TESSERA_FLOAT32, {x, largest});
  for (int step = 0; step < 8; ++step) {
    const int32_t number = builder.number(TESSERA_FLOAT32, step % 2 == 0 ? 3 : -1);
    value = builder.append(TESSERA_EXPRESSION_ADD, TESSERA_FLOAT32, {value, number});
  }
  const int32_t sum = builder.append(TESSERA_EXPRESSION_REDUCE_SUM, TESSERA_FLOAT32, {value});
  builder.result(builder.append(TESSERA_EXPRESSION_ADD, TESSERA_FLOAT32, {value, sum}));
  return builder.group;
}

TEST_F(CompiledKernels, AcceptAnyAddressThatElementsCanHave) {
  Target target = stores_.front()->target();
  target.cached_bytes = 1000;
  const auto store = std::make_shared<KernelStore>(target, plugin::Blobs(), "test");
  RandomCase given = {group_with_kept_value({7, 5'000}), {}, {.threads = 2}};
  given.inputs = {small_numbers(7 * 5'000)};
  for (const size_t offset : {0, 4, 16, 60}) {
    given.settings.address_offset = offset;
    EXPECT_TRUE(check(given, store));
  }
  for (uint32_t seed = 0; seed < 30; ++seed) {
    RandomCase any = random_elementwise_case(seed);
    any.settings.address_offset = 8;
    check(any, stores_[seed % stores_.size()]);
  }
}

// Short rows are kept in memory of the kernel, long ones in the row of the result.
TEST_F(CompiledKernels, KeepValuesOfRowsForTheLastPass) {
  for (const int64_t columns : {1, 17, 130, 4'096, 4'097, 20'000}) {
    for (const int64_t cached_bytes : {int64_t{1} << 30, int64_t{1000}}) {
      RandomCase given = {group_with_kept_value({7, columns}), {}, {.threads = 2}};
      given.inputs = {small_numbers(static_cast<size_t>(7 * columns))};
      for (const std::shared_ptr<KernelStore>& each : stores_) {
        Target target = each->target();
        target.cached_bytes = cached_bytes;
        EXPECT_TRUE(check(given, std::make_shared<KernelStore>(target, plugin::Blobs(), "test")));
      }
    }
  }
}

TEST_F(CompiledKernels, ComputeKeptValuesOnce) {
  const plugin::FusedGroup group = group_with_kept_value({7, 130});
  const std::vector<KernelPart> parts = kernel_parts(group, "", stores_.front()->target());
  const std::string text = parts.at(0).print();
  size_t products = 0;
  for (size_t at = text.find("fmul <16"); at != std::string::npos;
       at = text.find("fmul <16", at + 1)) {
    ++products;
  }
  if (stores_.front()->target().vector_bytes != 64) GTEST_SKIP() << "has other vectors";
  // The products of one pass: one for each vector of its two forms of loops.
  const std::vector<LaneForm> forms = lane_forms({9, 9, 1}, false, stores_.front()->target());
  EXPECT_EQ(products, static_cast<size_t>(forms[0].vectors + forms[1].vectors));
}

TEST(LaneForms, HaveManyVectorsIfFewWaitForEachOther) {
  const Target wide = target_of_level("x86-64-v4");
  const LoopBody short_chain = {.instructions = 40, .critical_path = 35, .live_values = 3};
  EXPECT_EQ(lane_forms(short_chain, false, wide).front().vectors, 8);
  EXPECT_EQ(lane_forms(short_chain, true, wide).front().vectors, 4);
  // Registers are few.
  EXPECT_EQ(lane_forms({40, 35, 20}, false, wide).front().vectors, 2);
  EXPECT_EQ(lane_forms(short_chain, false, target_of_level("x86-64-v3")).front().vectors, 4);
  // The amount of compiled code is bounded.
  const LoopBody chain = {.instructions = 1'100, .critical_path = 1'100, .live_values = 1};
  EXPECT_EQ(lane_forms(chain, false, wide).front().vectors, 4);
  EXPECT_EQ(lane_forms({6'000, 6'000, 1}, false, wide).front().vectors, 1);
  EXPECT_EQ(lane_forms({1'100, 200, 1}, false, wide).front().vectors, 1);
  for (const LoopBody& body : {short_chain, chain}) {
    EXPECT_TRUE(lane_forms(body, false, wide).back().is_masked);
  }
}

TEST_F(CompiledKernels, ComputeLongChainsAsOneKernel) {
  for (const int64_t points : {1, 31, 100, 1'024}) {
    GroupBuilder builder({points});
    int32_t value = builder.operand(TESSERA_FLOAT32);
    for (int index = 0; index < 1'100; ++index) {
      const int32_t number = builder.number(TESSERA_FLOAT32, 1.0 / (index + 2));
      value = builder.append(index % 2 == 0 ? TESSERA_EXPRESSION_ADD : TESSERA_EXPRESSION_MULTIPLY,
                             TESSERA_FLOAT32, {value, number});
    }
    builder.result(value);
    const RandomCase given = {builder.group, {floats(static_cast<size_t>(points))}, {}};
    EXPECT_TRUE(check(given, stores_.front()));
  }
}

TEST_F(CompiledKernels, SumLongRowsAccurately) {
  constexpr int64_t kColumns = 1'000'003;
  GroupBuilder builder({kColumns});
  builder.group.reduced_axes = 1;
  const int32_t x = builder.operand(TESSERA_FLOAT32);
  builder.result(builder.append(TESSERA_EXPRESSION_REDUCE_SUM, TESSERA_FLOAT32, {x}), {0});
  const std::string input = floats(kColumns);
  double exact = 0;
  for (int64_t index = 0; index < kColumns; ++index) {
    float value = 0;
    std::memcpy(&value, input.data() + index * 4, sizeof(value));
    exact += static_cast<double>(value);
  }
  const auto group = std::make_shared<const plugin::FusedGroup>(builder.group);
  for (const std::shared_ptr<KernelStore>& store : stores_) {
    const auto kernel = build_fused_kernel(group, "", store);
    const Tensors found = run_kernel(*kernel, *group, {input}, {});
    float sum = 0;
    std::memcpy(&sum, found.at(0).data(), sizeof(sum));
    // A few units in the last place of the largest partial sums, by the root of their number.
    constexpr double kPartialSum = 50;
    EXPECT_NEAR(sum, exact, 6e-8 * kPartialSum * 1000);
  }
}

// Around the middle between two neighbours, of any size and sign.
TEST_F(CompiledKernels, RoundConversionsToSixteenBitsToEven) {
  std::string input;
  std::mt19937 random(11);
  for (int index = 0; index < 3'000; ++index) {
    const uint32_t dropped_bits = index % 2 == 0 ? 16 : 13;
    const uint32_t middle = 1U << (dropped_bits - 1);
    const uint32_t kept = static_cast<uint32_t>(random()) >> dropped_bits << dropped_bits;
    const uint32_t bits = kept + middle + static_cast<uint32_t>(index / 2 % 3) - 1;
    input.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
  }
  GroupBuilder builder({3'000});
  const int32_t x = builder.operand(TESSERA_FLOAT32);
  // float16 has few exponents; these values reach all of them.
  const int32_t small = builder.append(TESSERA_EXPRESSION_BIT_CAST, TESSERA_UINT32, {x});
  const int32_t mantissa = builder.append(TESSERA_EXPRESSION_AND, TESSERA_UINT32,
                                          {small, builder.constant(TESSERA_UINT32, 0x87ffffff)});
  const int32_t shifted = builder.append(TESSERA_EXPRESSION_ADD, TESSERA_UINT32,
                                         {mantissa, builder.constant(TESSERA_UINT32, 0x38000000)});
  const int32_t near = builder.append(TESSERA_EXPRESSION_BIT_CAST, TESSERA_FLOAT32, {shifted});
  builder.result(builder.append(TESSERA_EXPRESSION_CONVERT, TESSERA_BFLOAT16, {x}));
  builder.result(builder.append(TESSERA_EXPRESSION_CONVERT, TESSERA_FLOAT16, {near}));
  const RandomCase given = {builder.group, {input}, {}};
  for (const std::shared_ptr<KernelStore>& store : stores_) {
    EXPECT_EQ(check(given, store), store->target().has_float16_conversions());
  }
}

struct Refused {
  const char* why;
  std::vector<int64_t> dims;
  uint64_t reduced_axes;
};

TEST_F(CompiledKernels, RefuseReductionsOverManySeparateAxes) {
  const Refused cases[] = {
      {"three axes around a kept one", {2, 3, 2, 3, 2, 3}, 0b010101},
      {"two axes and the innermost one", {2, 3, 2, 3, 2}, 0b10101},
  };
  for (const Refused& given : cases) {
    SCOPED_TRACE(given.why);
    GroupBuilder builder(given.dims);
    builder.group.reduced_axes = given.reduced_axes;
    const int32_t x = builder.operand(TESSERA_FLOAT32);
    const int32_t sum = builder.append(TESSERA_EXPRESSION_REDUCE_SUM, TESSERA_FLOAT32, {x});
    builder.result(builder.append(TESSERA_EXPRESSION_SUBTRACT, TESSERA_FLOAT32, {x, sum}));
    const auto group = std::make_shared<const plugin::FusedGroup>(builder.group);
    EXPECT_THROW(build_fused_kernel(group, "", stores_.front()), plugin::Failure);
  }
}

TEST_F(CompiledKernels, AreLoadedInAnotherProcessWithoutACompiler) {
  const RandomCase given = random_elementwise_case(3);
  const auto group = std::make_shared<const plugin::FusedGroup>(given.group);
  const auto built = build_fused_kernel(group, given.settings.layout, stores_.front());
  const std::string bytes = built->save().value();
  const auto other =
      std::make_shared<KernelStore>(stores_.front()->target(), plugin::Blobs(), "test");
  const auto loaded = load_fused_kernel(group, bytes, other);
  EXPECT_EQ(other->counts().compiled, 0);
  EXPECT_EQ(run_kernel(*loaded, *group, given.inputs, given.settings),
            run_kernel(*built, *group, given.inputs, given.settings));
  const auto another = std::make_shared<const plugin::FusedGroup>(random_elementwise_case(4).group);
  EXPECT_THROW(load_fused_kernel(another, bytes, other), plugin::Failure);
}

}  // namespace
}  // namespace tessera::jit
