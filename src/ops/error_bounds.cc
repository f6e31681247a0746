#include "ops/error_bounds.h"

#include <algorithm>
#include <array>

namespace tessera::ops {
namespace {

constexpr ErrorBound kExact = {.source = "no arithmetic, or a choice among inputs"};
constexpr ErrorBound kRounded = {.ulps = 0.5, .source = "IEEE 754: rounded correctly"};
constexpr ErrorBound kTwoRoundings = {.ulps = 1,
                                      .source = "two operations, each rounded correctly"};
constexpr ErrorBound kFunction = {
    .ulps = 4,
    .source = "what Khronos asks of functions in C kernels: at most 4 ulps, with few exceptions"};
constexpr ErrorBound kSteepFunction = {
    .ulps = 5, .source = "what Khronos asks of tan, tanh, atan and atanh in C kernels: 5 ulps"};
constexpr ErrorBound kLine = {
    .ulps = 1, .inputs = 1, .source = "a product and a sum, which may cancel, then a limit"};
constexpr ErrorBound kTail = {
    .ulps = 4,
    .inputs = 2,
    .source = "a function of a number that is rounded first: in its tail, relative errors grow"};
constexpr ErrorBound kSum = {
    .ulps = 1, .terms = 4, .source = "Higham, Accuracy and Stability, 4.2: sums in blocks"};
constexpr ErrorBound kSumOfMagnitudes = {
    .ulps = 5, .source = "as of sums: all terms have one sign, so the sum is that of magnitudes"};
constexpr ErrorBound kProducts = {
    .ulps = 1,
    .terms = 16,
    .source = "Higham, 3.5 and 4.2: sums of products, in blocks of a few hundred terms"};
constexpr ErrorBound kNormalized = {
    .ulps = 4,
    .inputs = 4,
    .source = "statistics in a wider type or in two passes, then a few operations"};
constexpr ErrorBound kRecurrent = {
    .ulps = 4,
    .inputs = 16,
    .absolute = 4,
    .source = "products and functions in each step; results lie in [-1, 1]"};
constexpr ErrorBound kLogarithmOfSum = {
    .ulps = 4,
    .inputs = 1,
    .absolute = 4,
    .source = "the logarithm of a sum near 1 has the absolute error of the sum"};

struct Row {
  std::string_view op;
  ErrorBound bound;
};

// Alphabetical. Ops that are not here, such as those that move elements, choose or compare, are
// exact.
constexpr std::array kRows = {
    Row{"Acos", kFunction},
    Row{"Acosh", kFunction},
    Row{"Add", kRounded},
    Row{"Asin", kFunction},
    Row{"Asinh", kFunction},
    Row{"Atan", kSteepFunction},
    Row{"Atanh", {.ulps = 6, .source = "log1p() of a quotient that is rounded"}},
    Row{"AveragePool", kSum},
    Row{"BatchNormalization", kNormalized},
    Row{"Cast", kRounded},
    Row{"CastLike", kRounded},
    Row{"Celu", kTail},
    Row{"Conv", kProducts},
    Row{"ConvTranspose", kProducts},
    Row{"Cos", kFunction},
    Row{"Cosh", kFunction},
    Row{"CumSum", kSum},
    Row{"Div", kRounded},
    Row{"Einsum", kProducts},
    Row{"Elu", kFunction},
    Row{"Erf", kSteepFunction},
    Row{"Exp", kFunction},
    Row{"GRU", kRecurrent},
    Row{"Gelu", kTail},
    Row{"Gemm", kProducts},
    Row{"GlobalAveragePool", kSum},
    Row{"GroupNormalization", kNormalized},
    Row{"HardSigmoid", kLine},
    Row{"HardSwish", {.ulps = 2, .inputs = 2, .source = kLine.source}},
    Row{"InstanceNormalization", kNormalized},
    Row{"LRN", kNormalized},
    Row{"LSTM", kRecurrent},
    Row{"LayerNormalization", kNormalized},
    Row{"LeakyRelu", kRounded},
    Row{"Log", kFunction},
    Row{"LogSoftmax", kLogarithmOfSum},
    Row{"MatMul", kProducts},
    Row{"Mean", kSum},
    Row{"Mish", {.ulps = 6, .inputs = 1, .source = kTail.source}},
    Row{"Mul", kRounded},
    Row{"PRelu", kRounded},
    Row{"Pow", {.ulps = 16, .source = "what Khronos asks of pow in C kernels"}},
    Row{"RNN", kRecurrent},
    Row{"Range", kTwoRoundings},
    Row{"Reciprocal", kRounded},
    Row{"ReduceL1", kSumOfMagnitudes},
    Row{"ReduceL2", kSumOfMagnitudes},
    Row{"ReduceLogSum", {.ulps = 4, .inputs = 4, .absolute = 4, .source = kLogarithmOfSum.source}},
    Row{"ReduceLogSumExp", kLogarithmOfSum},
    Row{"ReduceMean", kSum},
    Row{"ReduceProd", {.ulps = 4, .inputs = 2, .source = "each factor may be rounded once"}},
    Row{"ReduceSum", kSum},
    Row{"ReduceSumSquare", kSumOfMagnitudes},
    Row{"Resize", {.ulps = 2, .terms = 12, .source = "weighted sums of few elements"}},
    Row{"ScatterElements", kSum},
    Row{"ScatterND", kSum},
    Row{"Selu", kFunction},
    Row{"Shrink", kRounded},
    Row{"Sigmoid", {.ulps = 5, .source = "exp(), an addition and a division"}},
    Row{"Sin", kFunction},
    Row{"Sinh", kFunction},
    Row{"Softmax",
        {.ulps = 6, .logs = 1, .source = "exp() of x - max, which is rounded; a sum; a division"}},
    Row{"Softplus", kFunction},
    Row{"Softsign", {.ulps = 2, .source = kTwoRoundings.source}},
    Row{"Sqrt", kRounded},
    Row{"Sub", kRounded},
    Row{"Sum", kSum},
    Row{"Swish", kTail},
    Row{"Tan", kSteepFunction},
    Row{"Tanh", kSteepFunction},
    Row{"Upsample", {.ulps = 2, .terms = 12, .source = "weighted sums of few elements"}},
};

static_assert(std::ranges::is_sorted(kRows, {}, &Row::op));

}  // namespace

ErrorBound error_bound_of(std::string_view op) {
  const auto found = std::ranges::lower_bound(kRows, op, {}, &Row::op);
  return found != kRows.end() && found->op == op ? found->bound : kExact;
}

Op with_error_bound(Op op) {
  if (op.domain.empty()) op.error_bound = error_bound_of(op.name);
  return op;
}

}  // namespace tessera::ops
