#include "codegen/math/math_functions.h"
#include "codegen/expression/term.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "base/threads/threads_test.h"
#include "codegen/expression/evaluate.h"

namespace tessera::codegen {
namespace {

using enum DataType;

// One function of one argument: its bounds of error in ulp, and the largest number of instructions
// other than constants, operands and bit casts. A bound of 0: it takes no float64.
struct Function {
  const char* name;
  InstructionId (*build)(ExpressionBuilder&, InstructionId);
  double (*exact32)(double);
  long double (*exact64)(long double);
  double bound32;
  double bound64;
  int instructions32;
  int instructions64;
  double lowest, highest;  // where most samples of float64 are
};

// The bounds are those of math_functions.h.
const Function kFunctions[] = {
    {"exp", exp, std::exp, std::exp, 1.04, 1.1, 20, 26, -746, 710},
    {"expm1", expm1, std::expm1, std::expm1, 1.54, 2, 21, 27, -40, 3},
    {"log", log, std::log, std::log, 0.93, 1.4, 27, 31, 0, 4},
    {"log1p", log1p, std::log1p, std::log1p, 1.46, 1.9, 25, 29, -1, 3},
    {"tanh", tanh, std::tanh, std::tanh, 1.86, 2.1, 24, 31, -3, 3},
    {"erf", erf, std::erf, std::erf, 1.81, 1.7, 28, 51, -6, 6},
    {"erfc", erfc, std::erfc, std::erfc, 0.78, 6.5, 34, 76, -6, 28},
    {"sin", sin, std::sin, nullptr, 1.5, 0, 39, 0, 0, 0},
    {"cos", cos, std::cos, nullptr, 1.5, 0, 39, 0, 0, 0},
};
constexpr double kPowerBound32 = 0.8;
constexpr double kPowerBound64 = 1.4;

// A function as an expression.
struct Formula {
  Instructions instructions;
  InstructionId result = -1;
  std::vector<DataType> operands;

  Column operator()(const std::vector<Column>& columns) const {
    const InstructionId results[] = {result};
    return evaluate(instructions, results, columns).front();
  }
};

Formula formula(const Function& function, DataType type) {
  ExpressionBuilder builder;
  const InstructionId result = function.build(builder, builder.operand(0, type));
  return {builder.instructions(), result, {type}};
}

Formula power_formula(DataType type) {
  ExpressionBuilder builder;
  const InstructionId x = builder.operand(0, type);
  const InstructionId result = pow(builder, x, builder.operand(1, type));
  return {builder.instructions(), result, {type, type}};
}

int64_t computing_instructions(const Formula& formula) {
  return std::ranges::count_if(formula.instructions, [](const Instruction& instruction) {
    return instruction.operation != Operation::Operand &&
           instruction.operation != Operation::Constant &&
           instruction.operation != Operation::BitCast;
  });
}

double value_of(DataType type, uint64_t bits) {
  return type == Float32 ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                         : std::bit_cast<double>(bits);
}

uint64_t bits_of(DataType type, double value) {
  return type == Float32 ? std::bit_cast<uint32_t>(static_cast<float>(value))
                         : std::bit_cast<uint64_t>(value);
}

// The distance of `got` from `exact` in units in the last place of `exact` in the type, infinite if
// only one is NaN, or infinite, or if they are zeros of different sign. Overflow counts as the
// power of two behind the largest number.
double error_in_ulp(DataType type, double got, long double exact) {
  const bool is_32 = type == Float32;
  const double rounded = is_32 ? static_cast<float>(exact) : static_cast<double>(exact);
  if (std::isnan(got) || std::isnan(rounded))
    return std::isnan(got) == std::isnan(rounded) ? 0 : kInfinity;
  if (got == rounded && std::signbit(got) != std::signbit(rounded)) return kInfinity;
  if (std::isinf(got) && got == rounded) return 0;
  if (std::isinf(exact)) return kInfinity;
  int exponent = 0;
  std::frexp(exact, &exponent);
  const int last_place = is_32 ? std::max(exponent - 24, -149) : std::max(exponent - 53, -1074);
  const long double reached = std::isinf(got) ? std::copysign(std::ldexp(1.0L, is_32 ? 128 : 1024),
                                                              static_cast<long double>(got))
                                              : static_cast<long double>(got);
  return static_cast<double>(std::ldexp(std::fabs(reached - exact), -last_place));
}

// The largest error, and where it is.
struct Worst {
  double error = 0;
  uint64_t bits = 0;

  void add(double new_error, uint64_t new_bits) {
    if (new_error > error) *this = {new_error, new_bits};
  }
};

Worst worst32(const Function& function, const Formula& formula, const Column& column) {
  const Column got = formula({column});
  Worst worst;
  for (size_t index = 0; index < column.size(); ++index) {
    const double exact = function.exact32(value_of(Float32, column[index]));
    worst.add(error_in_ulp(Float32, value_of(Float32, got[index]), exact), column[index]);
  }
  return worst;
}

// Numbers around which the functions change their way of computing, or their results.
const double kBorders[] = {0,
                           1,
                           2,
                           0.5,
                           0.7071067811865476,
                           1.4142135623730951,
                           0.34657359,
                           1.0397207708,
                           0x1p-24,
                           0x1p-25,
                           0x1p-26,
                           0x1p-55,
                           0x1p-126,
                           0x1p-1022,
                           17.328680,
                           18,
                           38,
                           20,
                           40,
                           9.01,
                           9.02,
                           19.07,
                           0.5493061443,
                           87.336544,
                           88.722839,
                           89,
                           103.97208,
                           103.278929,
                           104,
                           708.3964185,
                           709.782712893384,
                           745.1332191,
                           3.93,
                           5.93,
                           9.194,
                           10.054,
                           10.06,
                           26.54,
                           27.226,
                           27.25,
                           0.7853981634,
                           1.5707963268,
                           3.1415926536,
                           6.2831853072,
                           0x1p50,
                           0x1p76,
                           0x1p102,
                           0x1.fffffep127,
                           0x1.fffffffffffffp1023,
                           kInfinity,
                           kNan};

Column near_borders(DataType type) {
  Column column;
  const uint64_t sign = bits_of(type, -0.0);
  for (const double border : kBorders) {
    const uint64_t bits = bits_of(type, border);
    for (uint64_t distance = 0; distance <= 40; ++distance) {
      for (const uint64_t near : {bits + distance, bits - std::min(bits, distance)}) {
        column.push_back(near & ~sign);
        column.push_back(near | sign);
      }
    }
  }
  return column;
}

TEST(MathFunctions, KeepTheRulesOfExpressions) {
  for (const Function& function : kFunctions) {
    for (const DataType type : {Float32, Float64}) {
      if (type == Float64 && function.bound64 == 0) continue;
      const Formula built = formula(function, type);
      EXPECT_EQ(explain_violation(built.instructions, built.operands), "") << function.name;
      EXPECT_EQ(built.instructions[static_cast<size_t>(built.result)].type, type);
    }
  }
  for (const DataType type : {Float32, Float64}) {
    const Formula built = power_formula(type);
    EXPECT_EQ(explain_violation(built.instructions, built.operands), "");
  }
}

TEST(MathFunctions, NeedFewInstructions) {
  for (const Function& function : kFunctions) {
    EXPECT_LE(computing_instructions(formula(function, Float32)), function.instructions32)
        << function.name;
    if (function.bound64 == 0) continue;
    EXPECT_LE(computing_instructions(formula(function, Float64)), function.instructions64)
        << function.name;
  }
  EXPECT_LE(computing_instructions(power_formula(Float32)), 64);
  EXPECT_LE(computing_instructions(power_formula(Float64)), 116);
}

TEST(MathFunctions, Float32IsWithinItsBound) {
  Column column = near_borders(Float32);
  // A prime, so that mantissas differ in all bits.
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 65521) column.push_back(bits);
  for (const Function& function : kFunctions) {
    const Worst worst = worst32(function, formula(function, Float32), column);
    EXPECT_LE(worst.error, function.bound32)
        << function.name << " of " << value_of(Float32, worst.bits) << ", bits " << worst.bits;
  }
}

Column samples64(const Function& function) {
  std::mt19937_64 random(20260);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * std::ldexp(static_cast<double>(random() >> 11), -53);
  };
  Column column = near_borders(Float64);
  for (int index = 0; index < 6000; ++index) {
    column.push_back(random());
    column.push_back(
        bits_of(Float64, std::ldexp(uniform(-1, 1), -static_cast<int>(random() % 60))));
    column.push_back(bits_of(Float64, uniform(0.5, 1.5)));
    for (int repeat = 0; repeat < 5; ++repeat) {
      column.push_back(bits_of(Float64, uniform(function.lowest, function.highest)));
    }
  }
  return column;
}

TEST(MathFunctions, Float64IsWithinItsBound) {
  if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "no more exact type";
  for (const Function& function : kFunctions) {
    if (function.bound64 == 0) continue;
    const Column column = samples64(function);
    const Column got = formula(function, Float64)({column});
    Worst worst;
    for (size_t index = 0; index < column.size(); ++index) {
      const long double exact = function.exact64(value_of(Float64, column[index]));
      worst.add(error_in_ulp(Float64, value_of(Float64, got[index]), exact), column[index]);
    }
    EXPECT_LE(worst.error, function.bound64)
        << function.name << " of " << value_of(Float64, worst.bits) << ", bits " << worst.bits;
  }
}

// --- Special values ------------------------------------------------------------------------------

// NaN equals NaN, and 0 does not equal -0.
bool is_same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

struct SpecialValue {
  const char* function;
  double x;
  double result;
};

const SpecialValue kSpecialValues[] = {
    {"exp", 0.0, 1},
    {"exp", -0.0, 1},
    {"exp", kInfinity, kInfinity},
    {"exp", -kInfinity, 0.0},
    {"exp", 1e30, kInfinity},
    {"exp", -1e30, 0.0},
    {"expm1", 0.0, 0.0},
    {"expm1", -0.0, -0.0},
    {"expm1", kInfinity, kInfinity},
    {"expm1", -kInfinity, -1},
    {"expm1", -1e30, -1},
    {"expm1", 1e30, kInfinity},
    {"log", 0.0, -kInfinity},
    {"log", -0.0, -kInfinity},
    {"log", 1, 0.0},
    {"log", kInfinity, kInfinity},
    {"log", -1, kNan},
    {"log", -kInfinity, kNan},
    {"log", -1e-40, kNan},
    {"log1p", 0.0, 0.0},
    {"log1p", -0.0, -0.0},
    {"log1p", -1, -kInfinity},
    {"log1p", -1.5, kNan},
    {"log1p", kInfinity, kInfinity},
    {"log1p", -kInfinity, kNan},
    {"tanh", 0.0, 0.0},
    {"tanh", -0.0, -0.0},
    {"tanh", kInfinity, 1},
    {"tanh", -kInfinity, -1},
    {"tanh", 1e30, 1},
    {"erf", 0.0, 0.0},
    {"erf", -0.0, -0.0},
    {"erf", kInfinity, 1},
    {"erf", -kInfinity, -1},
    {"erf", 1e30, 1},
    {"erfc", 0.0, 1},
    {"erfc", -0.0, 1},
    {"erfc", kInfinity, 0.0},
    {"erfc", -kInfinity, 2},
    {"erfc", 1e30, 0.0},
    {"erfc", -1e30, 2},
    {"sin", 0.0, 0.0},
    {"sin", -0.0, -0.0},
    {"sin", kInfinity, kNan},
    {"sin", -kInfinity, kNan},
    {"cos", 0.0, 1},
    {"cos", -0.0, 1},
    {"cos", kInfinity, kNan},
    {"cos", -kInfinity, kNan},
    {"tanh", 0x1p-149, 0x1p-149},
    {"log1p", -0x1p-149, -0x1p-149},
    {"expm1", 0x1p-149, 0x1p-149},
    {"sin", -0x1p-149, -0x1p-149},
};

TEST(MathFunctions, SpecialValuesAreThoseOfC) {
  for (const Function& function : kFunctions) {
    for (const DataType type : {Float32, Float64}) {
      if (type == Float64 && function.bound64 == 0) continue;
      const Formula built = formula(function, type);
      EXPECT_TRUE(std::isnan(value_of(type, built({{bits_of(type, kNan)}})[0]))) << function.name;
      EXPECT_TRUE(std::isnan(value_of(type, built({{bits_of(type, -kNan)}})[0]))) << function.name;
      for (const SpecialValue& row : kSpecialValues) {
        if (std::string(row.function) != function.name) continue;
        const double got = value_of(type, built({{bits_of(type, row.x)}})[0]);
        EXPECT_TRUE(is_same(got, row.result)) << row.function << " of " << row.x << ": " << got;
      }
    }
  }
}

// --- pow -----------------------------------------------------------------------------------------

struct PowerRow {
  double x;
  double y;
  double result;
};

const PowerRow kPowerRows[] = {
    {1, kNan, 1},
    {1, kInfinity, 1},
    {1, -3.5, 1},
    {kNan, 0.0, 1},
    {kNan, -0.0, 1},
    {0.0, 0.0, 1},
    {-0.0, 0.0, 1},
    {kInfinity, 0.0, 1},
    {-kInfinity, -0.0, 1},
    {kNan, 1, kNan},
    {2, kNan, kNan},
    {-1, kNan, kNan},
    {0.0, kNan, kNan},
    {kInfinity, kNan, kNan},
    {-kInfinity, kNan, kNan},
    {-2, 3, -8},
    {-2, 2, 4},
    {-2, -1, -0.5},
    {-2, 0.5, kNan},
    {-2, -0.5, kNan},
    {-1e-40, 1.5, kNan},
    {-1, kInfinity, 1},
    {-1, -kInfinity, 1},
    {-1, 3, -1},
    {0.0, 3, 0.0},
    {-0.0, 3, -0.0},
    {-0.0, 2, 0.0},
    {-0.0, 0.5, 0.0},
    {0.0, -3, kInfinity},
    {-0.0, -3, -kInfinity},
    {-0.0, -2, kInfinity},
    {-0.0, -0.5, kInfinity},
    {0.0, kInfinity, 0.0},
    {-0.0, kInfinity, 0.0},
    {0.0, -kInfinity, kInfinity},
    {-0.0, -kInfinity, kInfinity},
    {0.0, 1e-30, 0.0},
    {0.0, -1e-30, kInfinity},
    {0.5, kInfinity, 0.0},
    {-0.5, kInfinity, 0.0},
    {0.5, -kInfinity, kInfinity},
    {2, kInfinity, kInfinity},
    {-2, kInfinity, kInfinity},
    {2, -kInfinity, 0.0},
    {-2, -kInfinity, 0.0},
    {kInfinity, 2, kInfinity},
    {kInfinity, 1e-30, kInfinity},
    {kInfinity, -2, 0.0},
    {kInfinity, kInfinity, kInfinity},
    {kInfinity, -kInfinity, 0.0},
    {-kInfinity, 3, -kInfinity},
    {-kInfinity, 2, kInfinity},
    {-kInfinity, 0.5, kInfinity},
    {-kInfinity, -3, -0.0},
    {-kInfinity, -2, 0.0},
    {-kInfinity, -0.5, 0.0},
    {-kInfinity, kInfinity, kInfinity},
    {-kInfinity, -kInfinity, 0.0},
    {-2, 0x1p24, kInfinity},
    {-2, 16777215, -kInfinity},
    {-2, -1e30, 0.0},
    {3, 1e30, kInfinity},
    {3, 2, 9},
    {2, -149, 0x1p-149},
    {10, 5, 100000},
};

TEST(MathFunctions, PowerHasTheSpecialValuesOfC) {
  for (const DataType type : {Float32, Float64}) {
    const Formula built = power_formula(type);
    for (const PowerRow& row : kPowerRows) {
      const double got = value_of(type, built({{bits_of(type, row.x)}, {bits_of(type, row.y)}})[0]);
      EXPECT_TRUE(is_same(got, value_of(type, bits_of(type, row.result))))
          << "pow(" << row.x << ", " << row.y << ") = " << got;
    }
  }
}

// Arguments whose power is a finite number for the most part.
std::vector<Column> power_samples(DataType type) {
  std::mt19937_64 random(47);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * std::ldexp(static_cast<double>(random() >> 11), -53);
  };
  std::vector<Column> columns(2);
  const auto add = [&](double x, double y) {
    columns[0].push_back(bits_of(type, x));
    columns[1].push_back(bits_of(type, y));
  };
  const bool is_32 = type == Float32;
  for (int index = 0; index < 8000; ++index) {
    const double base = std::exp2(uniform(-30, 30));
    add(base, uniform(is_32 ? -150 : -1075, is_32 ? 128 : 1024) / std::log2(base));
    add(1 + std::ldexp(uniform(-1, 1), -static_cast<int>(random() % (is_32 ? 24 : 52))),
        std::ldexp(uniform(-1, 1), static_cast<int>(random() % 30)));
    add(uniform(-20, 20), std::floor(uniform(-40, 40)));
    add(uniform(0, 4), uniform(-3, 3));
    columns[0].push_back(is_32 ? random() >> 32 : random());
    columns[1].push_back(is_32 ? random() >> 32 : random());
  }
  return columns;
}

TEST(MathFunctions, PowerIsWithinItsBound) {
  if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "no more exact type";
  for (const DataType type : {Float32, Float64}) {
    const std::vector<Column> columns = power_samples(type);
    const Column got = power_formula(type)(columns);
    for (size_t index = 0; index < got.size(); ++index) {
      const double x = value_of(type, columns[0][index]);
      const double y = value_of(type, columns[1][index]);
      const long double exact = std::pow(static_cast<long double>(x), static_cast<long double>(y));
      ASSERT_LE(error_in_ulp(type, value_of(type, got[index]), exact),
                type == Float32 ? kPowerBound32 : kPowerBound64)
          << "pow(" << x << ", " << y << ")";
    }
  }
}

// --- All values ----------------------------------------------------------------------------------

class MathFunction : public testing::TestWithParam<Function> {};

// Takes several minutes for each function, so it runs only if it is asked for.
TEST_P(MathFunction, DISABLED_ExhaustiveFloat32) {
  const Function& function = GetParam();
  const Formula built = formula(function, Float32);
  constexpr uint64_t kBlock = 256;
  const uint64_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::mutex mutex;
  Worst worst;
  run_at_once(threads, [&](uint64_t worker) {
    Worst own;
    Column column(kBlock);
    for (uint64_t first = worker * kBlock; first < uint64_t{1} << 32; first += threads * kBlock) {
      for (uint64_t index = 0; index < kBlock; ++index) column[index] = first + index;
      const Worst block = worst32(function, built, column);
      own.add(block.error, block.bits);
    }
    const std::lock_guard lock(mutex);
    worst.add(own.error, own.bits);
  });
  EXPECT_LE(worst.error, function.bound32) << "of " << value_of(Float32, worst.bits);
  RecordProperty("largest_error", std::to_string(worst.error));
}

INSTANTIATE_TEST_SUITE_P(MathFunctions, MathFunction, testing::ValuesIn(kFunctions),
                         [](const testing::TestParamInfo<Function>& row) {
                           return std::string(row.param.name);
                         });

}  // namespace
}  // namespace tessera::codegen
