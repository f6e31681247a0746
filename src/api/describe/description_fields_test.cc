// The lists of fields are complete: each field has one row with a text, and names and keys are
// unique.
#include "api/describe/description_fields.h"

#include <gmock/gmock.h>

#include <optional>
#include <set>
#include <string_view>
#include <type_traits>
#include <vector>

#include "api/describe/field_count.h"

namespace tessera {
namespace {

template <class Description>
void expect_each_field_once(const Description& description) {
  std::set<const void*> addresses;
  std::set<std::string_view> names;
  std::set<std::string_view> keys;
  for_each_row<Description>([&]<class Row>(const Row& row) {
    EXPECT_STRNE(row.help, "");
    if constexpr (std::is_same_v<Row, ComputedKey>) {
      EXPECT_TRUE(keys.insert(row.key).second) << row.key;
    } else {
      EXPECT_TRUE(addresses.insert(&(description.*row.member)).second) << row.name;
      EXPECT_TRUE(names.insert(row.name).second) << row.name;
      EXPECT_TRUE(!Row::kIsPrinted || keys.insert(row.key).second) << row.key;
    }
  });
  EXPECT_EQ(names.size(), field_count<Description>());
}

TEST(DescriptionFields, HaveOneRowEach) {
  std::set<std::string_view> classes;
  for_each_description(Descriptions(), [&]<class Description>(const Description& description) {
    SCOPED_TRACE(kFields<Description>.name);
    EXPECT_TRUE(classes.insert(kFields<Description>.name).second);
    EXPECT_STRNE(kFields<Description>.help, "");
    expect_each_field_once(description);
  });
}

struct Other {
  int first = 0;
  double second = 0;
  std::optional<std::vector<Dimension>> third;
};

TEST(FieldCount, CountsFieldsOfEachType) {
  EXPECT_EQ(field_count<Other>(), 3);
  EXPECT_FALSE(kIsDescribed<Other>);
  EXPECT_TRUE(kIsDescribed<PlanPort>);
}

}  // namespace
}  // namespace tessera
