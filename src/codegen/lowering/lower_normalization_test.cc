#include "codegen/lowering/lower_op_test.h"

namespace tessera::codegen {
namespace {

const std::vector<int64_t> kNormalizationDims = {6, 5, 24};

Attributes axis_and(int64_t axis) { return attributes_of({{"axis", axis}}); }

std::vector<LoweringCase> softmax_cases() {
  std::vector<LoweringCase> cases;
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    for (const Values values : {Values::Moderate, Values::Special, Values::Any}) {
      const CaseInput data = {kNormalizationDims, values};
      cases.push_back({op, 13, {data}});
      cases.push_back({op, 13, {data}, axis_and(0)});
      cases.push_back({op, 13, {data}, axis_and(-2)});
      // The reference does not keep what it loses while it adds up 120 elements.
      cases.push_back({op, 11, {data}, {}, 1e-16});
      cases.push_back({op, 1, {data}, axis_and(2)});
      cases.push_back({op, 11, {data}, axis_and(-3)});
      cases.push_back({op, 13, {{{2, 3000}, values}}});
      cases.push_back({op, 13, {{{}, values}}});
      cases.push_back({op, 11, {{{4, 5, 1}, values}}, axis_and(2)});
      cases.push_back({op, 11, {data}, axis_and(3)});
    }
  }
  return cases;
}

TEST(LowerNormalization, ComputesWhatTheReferenceDoes) {
  constexpr Values kModerate = Values::Moderate;
  std::vector<LoweringCase> cases = softmax_cases();
  const auto groups = [](int64_t count) { return attributes_of({{"num_groups", count}}); };
  const auto vector = [](int64_t size) { return CaseInput{{size}, kModerate}; };
  const CaseInput positive = {{5}, Values::Positive};
  const CaseInput of_float32 = {{5}, Values::Positive, DataType::Float32};
  const CaseInput spatial = {{5, 24}, kModerate};
  for (const Values values : {kModerate, Values::Special}) {
    const CaseInput data = {kNormalizationDims, values};
    const std::vector<LoweringCase> others = {
        {"LayerNormalization", 17, {data, vector(24), vector(24)}},
        {"LayerNormalization", 17, {data, vector(24)}},
        {"LayerNormalization", 17, {data, {{5, 24}, kModerate}, {{5, 1}, kModerate}}, axis_and(1)},
        {"LayerNormalization",
         17,
         {data, {{6, 5, 24}, kModerate}, vector(1)},
         attributes_of({{"axis", -3}, {"epsilon", 0.25F}})},
        {"InstanceNormalization", 22, {data, vector(5), vector(5)}},
        {"InstanceNormalization", 6, {{{2, 3, 4, 5, 6}, values}, vector(3), vector(3)}},
        {"InstanceNormalization", 22, {{{30, 5}, values}, vector(5), vector(5)}},
        {"GroupNormalization", 18, {data, vector(1), vector(1)}, groups(1)},
        {"GroupNormalization", 18, {data, vector(5), vector(5)}, groups(5)},
        {"GroupNormalization", 21, {data, vector(5), vector(5)}, groups(1)},
        {"GroupNormalization", 21, {data, vector(5), vector(5)}, groups(5)},
        {"GroupNormalization", 18, {{{3, 6, 8}, values}, vector(2), vector(2)}, groups(2)},
        {"GroupNormalization", 21, {{{3, 6, 4, 2}, values}, vector(6), vector(6)}, groups(3)},
        {"BatchNormalization", 9, {data, vector(5), vector(5), vector(5), positive}},
        {"BatchNormalization", 14, {{{40, 5}, values}, vector(5), vector(5), vector(5), positive}},
        {"BatchNormalization",
         7,
         {data, spatial, spatial, spatial, {{5, 24}, Values::Positive}},
         attributes_of({{"spatial", 0}})},
        {"BatchNormalization",
         6,
         {data, vector(5), vector(5), vector(5), positive},
         attributes_of({{"is_test", 1}})},
        {"BatchNormalization", 15, {data, of_float32, of_float32, of_float32, of_float32}},
    };
    cases.insert(cases.end(), others.begin(), others.end());
  }
  check_cases(normalization_rows(), cases);
}

}  // namespace
}  // namespace tessera::codegen
