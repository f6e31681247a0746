#include "codegen/lowering/lower_op_test.h"

namespace tessera::codegen {
namespace {

const std::vector<int64_t> kReductionDims = {6, 7, 20};

Attributes axes_and(std::vector<int64_t> axes, int64_t keeps) {
  return attributes_of({{"axes", std::move(axes)}, {"keepdims", keeps}});
}

CaseInput axes_input(const std::vector<int64_t>& axes) {
  return {{}, Values::Any, DataType::Int64, ints({static_cast<int64_t>(axes.size())}, axes)};
}

// The axes in every form in which a version writes them.
void add_cases(const char* op, int input_version, Values values, std::vector<LoweringCase>& cases) {
  const CaseInput data = {kReductionDims, values};
  const Attributes noop = attributes_of({{"noop_with_empty_axes", 1}});
  const std::vector<LoweringCase> forms = {
      {op, 11, {data}, axes_and({-1}, 1)},
      {op, 11, {data}, axes_and({0, 2}, 0)},
      {op, 1, {data}},
      {op, input_version, {data, axes_input({1})}},
      {op, input_version, {data, axes_input({-3, 2})}, attributes_of({{"keepdims", 0}})},
      {op, input_version, {data}},
      {op, input_version, {data}, noop},
      {op, input_version, {{{}, values}}},
      {op, input_version, {{{5, 1, 9}, values}, axes_input({1})}},
      {op, 11, {{{5, 1, 9}, values}}, axes_and({1}, 0)},
      {op, input_version, {{{2, 3000}, values}, axes_input({1})}},
  };
  cases.insert(cases.end(), forms.begin(), forms.end());
}

TEST(LowerReduction, ComputesWhatTheReferenceDoes) {
  std::vector<LoweringCase> cases;
  for (const Values values : {Values::Moderate, Values::Special}) {
    add_cases("ReduceSum", 13, values, cases);
    for (const char* op : {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean",
                           "ReduceProd", "ReduceSumSquare"}) {
      add_cases(op, 18, values, cases);
    }
    for (const char* op : {"GlobalAveragePool", "GlobalMaxPool"}) {
      cases.push_back({op, 22, {{{3, 5, 8, 9}, values}}});
      cases.push_back({op, 1, {{{30, 50}, values}}});
    }
  }
  for (const char* op : {"ReduceMax", "ReduceMin"}) {
    add_cases(op, 20, Values::Any, cases);
    add_cases(op, 18, Values::Special, cases);
  }
  add_cases("ReduceLogSum", 18, Values::Positive, cases);
  check_cases(reduction_rows(), cases);
}

TEST(LowerReduction, InfinitiesOfLogSumExp) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> elements = {-infinity, -infinity, infinity, -infinity, 2, infinity};
  const Tensor rows = Tensor::from<double>(DataType::Float64, {3, 2}, elements);
  std::mt19937_64 random(1);
  const LoweringCase test = {
      "ReduceLogSumExp", 11, {{{}, Values::Any, DataType::Float64, rows}}, axes_and({1}, 0)};
  const NodeUnderTest made = make_node_under_test(test, DataType::Float64, random);
  const FusionRole role = fusion_role(made.graph, made.node());
  ASSERT_EQ(role.kind, FusionKind::Reduction);
  const std::vector<uint64_t> actual = compute_expression(made, role);
  ASSERT_EQ(actual.size(), 3U);
  for (int64_t row = 0; row < 3; ++row) {
    EXPECT_EQ(actual[static_cast<size_t>(row)], element_bits(made.expected, row)) << row;
  }
}

}  // namespace
}  // namespace tessera::codegen
