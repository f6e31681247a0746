#include "ops/op.h"

#include <algorithm>
#include <array>

#include "ops/domains.h"

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
constexpr ErrorBound kLoss = {
    .ulps = 4,
    .inputs = 4,
    .absolute = 4,
    .source = "a logarithm and a product for each sample, then a sum or a mean in a wider type"};

constexpr ErrorBound kSampled = {
    .ulps = 2,
    .terms = 16,
    .inputs = 8,
    .source = "weighted sums of few elements, at positions that are rounded"};
constexpr ErrorBound kCosines = {
    .ulps = 1, .absolute = 4, .source = "a sum of cosines, which cancels near the ends"};
constexpr ErrorBound kFourier = {
    .ulps = 4, .inputs = 8, .source = "each result is a sum of all inputs times roots of unity"};
constexpr ErrorBound kFactors = {
    .ulps = 4, .inputs = 2, .source = "each factor may be rounded once"};
constexpr ErrorBound kNorm = {.ulps = 16,
                              .source = "pow() and its inverse around a sum of magnitudes"};

constexpr ErrorBound kAttention = {
    .ulps = 2,
    .terms = 16,
    .inputs = 32,
    .source = "two products as of MatMul, and a softmax of scores that are rounded between them"};
constexpr ErrorBound kRecurrentState = {
    .ulps = 4, .terms = 64, .inputs = 16, .source = "products and powers in each step"};
constexpr ErrorBound kRotated = {
    .ulps = 1, .terms = 2, .source = "two products and a sum, which may cancel"};

constexpr ErrorBound kRequantized = {
    .inputs = 4,
    .source = "exact integers, then a few roundings in float32 before they become integers again"};

struct BoundRow {
  std::string_view op;
  ErrorBound bound;
  std::string_view domain = "";
};

// Alphabetical. Ops that are not here, such as those that move elements, choose or compare, are
// exact.
constexpr std::array kRows = {
    BoundRow{"Acos", kFunction},
    BoundRow{"Acosh", kFunction},
    BoundRow{"Add", kRounded},
    BoundRow{"AffineGrid", kSum},
    BoundRow{"Asin", kFunction},
    BoundRow{"Asinh", kFunction},
    BoundRow{"Atan", kSteepFunction},
    BoundRow{"Atanh", {.ulps = 6, .source = "log1p() of a quotient that is rounded"}},
    BoundRow{"Attention", kAttention},
    BoundRow{"AveragePool", kSum},
    BoundRow{"BatchNormalization", kNormalized},
    BoundRow{"BlackmanWindow", kCosines},
    BoundRow{"Cast", kRounded},
    BoundRow{"CastLike", kRounded},
    BoundRow{"CausalConvWithState",
             {.ulps = 4, .terms = 16, .inputs = 2, .source = kProducts.source}},
    BoundRow{"Celu", kTail},
    BoundRow{"Col2Im", kSum},
    BoundRow{"Conv", kProducts},
    BoundRow{"ConvTranspose", kProducts},
    BoundRow{"Cos", kFunction},
    BoundRow{"Cosh", kFunction},
    BoundRow{"CumProd", kFactors},
    BoundRow{"CumSum", kSum},
    BoundRow{"DFT", kFourier},
    BoundRow{"DeformConv", {.ulps = 1, .terms = 16, .inputs = 8, .source = kSampled.source}},
    BoundRow{"DequantizeLinear", kRounded},
    BoundRow{"Det",
             {.ulps = 4, .inputs = 16, .source = "Higham, 9.3: LU decomposition with pivoting"}},
    BoundRow{"Div", kRounded},
    BoundRow{"DynamicQuantizeLinear", kTwoRoundings},
    BoundRow{"Einsum", kProducts},
    BoundRow{"Elu", kFunction},
    BoundRow{"Erf", kSteepFunction},
    BoundRow{"Exp", kFunction},
    BoundRow{"GRU", kRecurrent},
    BoundRow{"Gelu", kTail},
    BoundRow{"Gemm", kProducts},
    BoundRow{"GlobalAveragePool", kSum},
    BoundRow{"GlobalLpPool", kNorm},
    BoundRow{"GridSample", kSampled},
    BoundRow{"GroupNormalization", kNormalized},
    BoundRow{"HammingWindow", kCosines},
    BoundRow{"HannWindow", kCosines},
    BoundRow{"HardSigmoid", kLine},
    BoundRow{"HardSwish", {.ulps = 2, .inputs = 2, .source = kLine.source}},
    BoundRow{"InstanceNormalization", kNormalized},
    BoundRow{"LRN", kNormalized},
    BoundRow{"LSTM", kRecurrent},
    BoundRow{"LayerNormalization", kNormalized},
    BoundRow{"LeakyRelu", kRounded},
    BoundRow{"LinearAttention", kRecurrentState},
    BoundRow{"Log", kFunction},
    BoundRow{"LogSoftmax", kLogarithmOfSum},
    BoundRow{"LpNormalization", kNorm},
    BoundRow{"LpPool", kNorm},
    BoundRow{"MatMul", kProducts},
    BoundRow{"Mean", kSum},
    BoundRow{"MeanVarianceNormalization", kNormalized},
    BoundRow{"MelWeightMatrix", kRounded},
    BoundRow{"Mish", {.ulps = 6, .inputs = 1, .source = kTail.source}},
    BoundRow{"Mul", kRounded},
    BoundRow{"NegativeLogLikelihoodLoss", kLoss},
    BoundRow{"PRelu", kRounded},
    BoundRow{"Pow", {.ulps = 16, .source = "what Khronos asks of pow in C kernels"}},
    BoundRow{"QLinearAdd", kRequantized, kMicrosoftDomain},
    BoundRow{"QLinearAveragePool", kRequantized, kMicrosoftDomain},
    BoundRow{"QLinearConcat", kRequantized, kMicrosoftDomain},
    BoundRow{"QLinearGlobalAveragePool", kRequantized, kMicrosoftDomain},
    BoundRow{"QLinearLeakyRelu", kRequantized, kMicrosoftDomain},
    BoundRow{"QLinearMul", kRequantized, kMicrosoftDomain},
    BoundRow{"QLinearReduceMean", kRequantized, kMicrosoftDomain},
    BoundRow{"QLinearSigmoid", kRequantized, kMicrosoftDomain},
    BoundRow{"QLinearSoftmax", kRequantized, kMicrosoftDomain},
    BoundRow{"QLinearWhere", kRequantized, kMicrosoftDomain},
    BoundRow{"RMSNormalization", kNormalized},
    BoundRow{"RNN", kRecurrent},
    BoundRow{"Range", kTwoRoundings},
    BoundRow{"Reciprocal", kRounded},
    BoundRow{"ReduceL1", kSumOfMagnitudes},
    BoundRow{"ReduceL2", kSumOfMagnitudes},
    BoundRow{"ReduceLogSum",
             {.ulps = 4, .inputs = 4, .absolute = 4, .source = kLogarithmOfSum.source}},
    BoundRow{"ReduceLogSumExp", kLogarithmOfSum},
    BoundRow{"ReduceMean", kSum},
    BoundRow{"ReduceProd", kFactors},
    BoundRow{"ReduceSum", kSum},
    BoundRow{"ReduceSumSquare", kSumOfMagnitudes},
    BoundRow{"Resize", {.ulps = 2, .terms = 12, .source = "weighted sums of few elements"}},
    BoundRow{"RoiAlign", kSampled},
    BoundRow{"RotaryEmbedding", kRotated},
    BoundRow{"STFT", kFourier},
    BoundRow{"ScatterElements", kSum},
    BoundRow{"ScatterND", kSum},
    BoundRow{"Selu", kFunction},
    BoundRow{"Shrink", kRounded},
    BoundRow{"Sigmoid", {.ulps = 5, .source = "exp(), an addition and a division"}},
    BoundRow{"SimplifiedLayerNormalization", kNormalized},
    BoundRow{"Sin", kFunction},
    BoundRow{"Sinh", kFunction},
    BoundRow{
        "Softmax",
        {.ulps = 6, .logs = 1, .source = "exp() of x - max, which is rounded; a sum; a division"}},
    BoundRow{"SoftmaxCrossEntropyLoss", kLoss},
    BoundRow{"Softplus", kFunction},
    BoundRow{"Softsign", {.ulps = 2, .source = kTwoRoundings.source}},
    BoundRow{"Sqrt", kRounded},
    BoundRow{"Sub", kRounded},
    BoundRow{"Sum", kSum},
    BoundRow{"SwiGLU", {.ulps = 5, .inputs = 2, .source = kTail.source}},
    BoundRow{"Swish", kTail},
    BoundRow{"Tan", kSteepFunction},
    BoundRow{"Tanh", kSteepFunction},
    BoundRow{"Upsample", {.ulps = 2, .terms = 12, .source = "weighted sums of few elements"}},
};

static_assert(std::ranges::is_sorted(kRows, {}, &BoundRow::op));

const BoundRow* row_of(std::string_view op) {
  const auto found = std::ranges::lower_bound(kRows, op, {}, &BoundRow::op);
  return found != kRows.end() && found->op == op ? &*found : nullptr;
}

}  // namespace

ErrorBound error_bound_of(std::string_view op) {
  const BoundRow* const row = row_of(op);
  return row == nullptr ? kExact : row->bound;
}

Op with_error_bound(Op op) {
  const BoundRow* const row = row_of(op.name);
  const bool has_row = row != nullptr && row->domain == op.domain;
  if (op.domain.empty() || has_row) op.error_bound = has_row ? row->bound : kExact;
  return op;
}

}  // namespace tessera::ops
