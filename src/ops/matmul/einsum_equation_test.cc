#include "ops/matmul/einsum_equation.h"

#include "base/matchers_test.h"

namespace tessera::ops {
namespace {

constexpr int kA = 26;  // of 'a'
constexpr int kDot = kEinsumLetters;

EinsumEquation equation_of(const std::string& text, const std::vector<int64_t>& ranks) {
  EinsumEquation equation;
  EXPECT_EQ(read_einsum(text, ranks, equation), "");
  return equation;
}

std::string parse_error_of(const std::string& text, const std::vector<int64_t>& ranks) {
  EinsumEquation equation;
  return read_einsum(text, ranks, equation);
}

TEST(EinsumEquation, NamesTheAxes) {
  const EinsumEquation equation = equation_of("ab, bc -> ac", {2, 2});
  EXPECT_THAT(equation.operands, ElementsAre(ElementsAre(kA, kA + 1), ElementsAre(kA + 1, kA + 2)));
  EXPECT_THAT(equation.output, ElementsAre(kA, kA + 2));
}

TEST(EinsumEquation, AnImplicitOutputHasWhatOccursOnceInOrder) {
  EXPECT_THAT(equation_of("ba", {2}).output, ElementsAre(kA, kA + 1));
  EXPECT_THAT(equation_of("bAb", {3}).output, ElementsAre(0));
  EXPECT_THAT(equation_of("ab,bc", {2, 2}).output, ElementsAre(kA, kA + 2));
  EXPECT_TRUE(equation_of("ii", {2}).output.empty());
  EXPECT_TRUE(equation_of(",->", {0, 0}).output.empty());
}

TEST(EinsumEquation, DotsAlignAtTheLastAxis) {
  const EinsumEquation equation = equation_of("a...,...a->...", {4, 2});
  EXPECT_THAT(equation.operands,
              ElementsAre(ElementsAre(kA, kDot + 2, kDot + 1, kDot), ElementsAre(kDot, kA)));
  EXPECT_THAT(equation.output, ElementsAre(kDot + 2, kDot + 1, kDot));
  EXPECT_THAT(equation_of("...b,b", {3, 1}).output, ElementsAre(kDot + 1, kDot));
  EXPECT_THAT(equation_of("...a->a...", {1}).output, ElementsAre(kA));
}

TEST(EinsumEquation, SaysWhatIsWrong) {
  EXPECT_THAT(parse_error_of("a,b->ab", {1}), HasSubstr("as many terms as inputs, 1, found 2"));
  EXPECT_THAT(parse_error_of("ab->a", {3}), HasSubstr("each of the 3 axes of input 0, found 'ab'"));
  EXPECT_THAT(parse_error_of("...abc->a", {2}), HasSubstr("each of the 2 axes"));
  EXPECT_THAT(parse_error_of("a1->a", {2}), HasSubstr("expected letters and at most one '...'"));
  EXPECT_THAT(parse_error_of("a..->a", {2}), HasSubstr("expected letters"));
  EXPECT_THAT(parse_error_of("...a...->a", {2}), HasSubstr("at most one"));
  EXPECT_THAT(parse_error_of("a->a->a", {1}), HasSubstr("expected letters"));
  EXPECT_THAT(parse_error_of("ab->aa", {2}), HasSubstr("found 'a' twice"));
  EXPECT_THAT(parse_error_of("ab->aC", {2}),
              HasSubstr("letters of the inputs in the result, found 'C'"));
  EXPECT_THAT(parse_error_of("...a->a", {2}), HasSubstr("expected '...' in the result"));
}

}  // namespace
}  // namespace tessera::ops
