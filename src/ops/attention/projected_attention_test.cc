#include "ops/attention/attention_test.h"

namespace tessera::ops {
namespace {

Attributes one_projected_head(std::initializer_list<NamedAttribute> list = {}) {
  Attributes attributes = attributes_of(list);
  attributes.set("num_heads", int64_t{1});
  return attributes;
}

// Queries are 0, keys 0, values are those of the input plus 1.
std::vector<Tensor> projected(std::vector<Tensor> more = {}) {
  std::vector<Tensor> inputs = {floats({1, 2, 1}, {1, 3}), floats({1, 3}, {0, 0, 1}),
                                floats({3}, {0, 0, 1})};
  inputs.insert(inputs.end(), more.begin(), more.end());
  return inputs;
}

std::vector<float> project_and_attend(Attributes attributes, const std::vector<Tensor>& inputs) {
  return values(run_microsoft("Attention", std::move(attributes), inputs)[0]);
}

TEST(ProjectedAttention, ProjectsTheInput) {
  EXPECT_THAT(project_and_attend(one_projected_head(), projected()), is_about({3, 3}));
  EXPECT_THAT(project_and_attend(one_projected_head({{"unidirectional", int64_t{1}}}), projected()),
              is_about({2, 3}));
  // Without a bias, the values are those of the input.
  EXPECT_THAT(project_and_attend(one_projected_head(),
                                 {floats({1, 2, 1}, {1, 3}), floats({1, 3}, {0, 0, 1})}),
              is_about({2, 2}));
}

TEST(ProjectedAttention, MasksHaveEndsAndStarts) {
  EXPECT_THAT(project_and_attend(one_projected_head(), projected({int32s({1}, {1})})),
              is_about({2, 2}));
  EXPECT_THAT(project_and_attend(one_projected_head(), projected({int32s({2}, {2, 1})})),
              is_about({4, 4}));
  EXPECT_THAT(project_and_attend(one_projected_head(), projected({int32s({1, 1}, {0})})),
              is_about({3, 3}));
}

TEST(ProjectedAttention, TheCacheHoldsKeysAndValues) {
  const auto outputs = run_microsoft("Attention", one_projected_head(),
                                     projected({Tensor(), floats({2, 1, 1, 1, 1}, {7, 8})}), 2);
  EXPECT_THAT(values(outputs[0]), is_about({14.0F / 3, 14.0F / 3}));
  EXPECT_EQ(outputs[1].dims(), list({2, 1, 1, 3, 1}));
  EXPECT_THAT(values(outputs[1]), ElementsAre(7, 0, 0, 8, 2, 4));
}

TEST(ProjectedAttention, ValuesMayHaveAnotherSize) {
  const Attributes given = one_projected_head({{"qkv_hidden_sizes", list({1, 1, 2})}});
  EXPECT_THAT(project_and_attend(given, {floats({1, 1, 1}, {1}), floats({1, 4}, {0, 0, 5, 6})}),
              is_about({5, 6}));
  EXPECT_THAT(microsoft_refusal("Attention", given, {zeros({1, 1, 1}), zeros({1, 5})}),
              HasSubstr("expected 4 along axis 1 as 'qkv_hidden_sizes' says"));
  EXPECT_THAT(microsoft_refusal("Attention", given, {zeros({1, 1, 1}), zeros({1, 4})}, 2),
              HasSubstr("equal sizes with a cache"));
}

TEST(ProjectedAttention, RefusesWhatDoesNotFit) {
  const auto refused = [&](Attributes given, const std::vector<Tensor>& inputs) {
    return microsoft_refusal("Attention", std::move(given), inputs);
  };
  EXPECT_THAT(refused(one_projected_head(), {zeros({1, 2, 1}), zeros({2, 3})}),
              HasSubstr("expected 1"));
  EXPECT_THAT(refused(one_projected_head(), {zeros({1, 2, 1}), zeros({1, 4})}),
              HasSubstr("multiple of 3"));
  EXPECT_THAT(refused(one_projected_head({{"do_rotary", int64_t{1}}}), projected()),
              HasSubstr("'do_rotary' has no kernel"));
}

}  // namespace
}  // namespace tessera::ops
