// The lists of fields are complete: each field has one row, and each name and key is unique.
#include "api/description_fields.h"

#include <gmock/gmock.h>

#include <optional>
#include <set>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tessera {
namespace {

template <class Description>
class DescriptionFields : public testing::Test {};

using Described =
    testing::Types<BackendDescription, BackendRefusal, CacheReport, CacheTypeReport,
                   CandidateDescription, ContenderDescription, ConversionDescription, MeasuredTime,
                   MemoryBlock, MemoryDescription, ModelDescription, NodeDescription,
                   PassDescription, PlacementDescription, PlanDescription, PlanPort, PlanStep,
                   ShapePlanDescription, ShapesDescription, StageRecord, StepRecord, TuneProgress,
                   TuningDescription, ValueDescription>;
TYPED_TEST_SUITE(DescriptionFields, Described);

TYPED_TEST(DescriptionFields, HasEachFieldOnce) {
  const TypeParam description{};
  std::set<const void*> addresses;
  std::set<std::string_view> names;
  std::set<std::string_view> keys;
  for_each_row<TypeParam>([&]<class Row>(const Row& row) {
    if constexpr (std::is_same_v<Row, ComputedKey>) {
      EXPECT_TRUE(keys.insert(row.key).second) << row.key;
    } else {
      EXPECT_TRUE(addresses.insert(&(description.*row.member)).second) << row.name;
      EXPECT_TRUE(names.insert(row.name).second) << row.name;
      EXPECT_TRUE(!Row::kIsPrinted || keys.insert(row.key).second) << row.key;
    }
  });
  EXPECT_EQ(names.size(), field_count<TypeParam>());
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
