#include "graph/dim_names.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(DimNames, NamesAreIdentifiers) {
  for (const char* name : {"N", "batch", "unk__123", "None", "_", "seq_len", "a1", "\xc3\xa9"}) {
    EXPECT_TRUE(is_dim_name(name)) << name;
  }
  for (const char* text : {"", "?", "-1", "*", " ", " N", "N ", "3", "1a", "a b", "a-b", "a.b",
                           "N+1", "(N*2)", "max(N,4)", "x[0]", "N'2", "-", "a\n"}) {
    EXPECT_FALSE(is_dim_name(text)) << text;
  }
}

TEST(DimNames, EachDimensionIsASymbolOfItsOwn) {
  DimNames names;
  const Dim first = names.next("N");
  const Dim other = names.next("M");
  const Dim second = names.next("N");
  const Dim third = names.next("N");
  EXPECT_EQ(first, Dim::symbol("N"));
  EXPECT_EQ(other, Dim::symbol("M"));
  EXPECT_NE(first, second);
  EXPECT_NE(second, third);
  for (const Dim& dim : {first, second, third}) {
    EXPECT_EQ(name_of(dim), "N");
    EXPECT_EQ(shown_text(dim), "N");
    EXPECT_EQ(text(Shape{dim, 4}), "Nx4");
  }
  // Two symbols stay two symbols in expressions.
  EXPECT_NE(multiply(first, 2), multiply(second, 2));
  EXPECT_EQ(shown_text(multiply(second, 2)), "(N*2)");
  EXPECT_NE(subtract(first, second), Dim(0));
}

TEST(DimNames, OtherSymbolsHaveNoName) {
  for (const char* symbol :
       {"x[0]", "(N*2)", "max(N,4)", "~0123", "?reshape.0.1", "N'", "N'a", "'2"}) {
    EXPECT_EQ(name_of(Dim::symbol(symbol)), "") << symbol;
  }
  EXPECT_EQ(name_of(Dim(3)), "");
  EXPECT_EQ(shown_text(Dim(3)), "3");
  EXPECT_EQ(shown_text(Dim::symbol("it's[0]")), "it's[0]");
}

TEST(DimNames, ValuesWithOperatorsInTheirNamesGiveSymbolsOfTheirOwn) {
  EXPECT_EQ(quoted_for_symbol("/layer.0/Add_output"), "/layer.0/Add_output");
  const auto first_of = [](const char* value) {
    return Dim::symbol(quoted_for_symbol(value) + "[0]");
  };
  const Dim a = first_of("a");
  const Dim b = first_of("b");
  const Dim c = first_of("c");
  EXPECT_NE(add(first_of("a[0]+b"), c), add(a, first_of("b[0]+c")));
  EXPECT_NE(add(first_of("a[0]+b"), c), add(add(a, b), c));
  EXPECT_NE(multiply(first_of("a[0]*2)+(b"), 2), multiply(first_of("a"), 2));
  EXPECT_NE(first_of("a\"+b"), first_of("a+b"));
  EXPECT_NE(first_of("\"a+b\""), first_of("a+b"));
}

}  // namespace
}  // namespace tessera
