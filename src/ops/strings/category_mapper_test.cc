#include "ops/strings_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const TextOp kMapper = {"CategoryMapper", 1, kMlDomain};

Attributes categories(const std::vector<int64_t>& numbers, const std::vector<std::string>& names) {
  Attributes attributes;
  attributes.set("cats_int64s", numbers);
  attributes.set("cats_strings", names);
  return attributes;
}

TEST(CategoryMapper, MapsBothWays) {
  const Attributes attributes = categories({7, 9}, {"cat", "dog"});
  EXPECT_THAT(run_text(kMapper, attributes, {words({"dog", "cow", "cat"})})[0].as<int64_t>(),
              ElementsAre(9, -1, 7));
  EXPECT_THAT(texts(run_text(kMapper, attributes, {ints({1, 3}, {7, 8, 9})})[0]),
              ElementsAre("cat", "_Unused", "dog"));
}

TEST(CategoryMapper, RefusesListsOfOtherLengths) {
  EXPECT_THAT(text_error(kMapper, categories({1}, {"a", "b"}), {typed(DataType::String, Shape{1})}),
              HasSubstr("found 1 and 2"));
}

}  // namespace
}  // namespace tessera::ops
