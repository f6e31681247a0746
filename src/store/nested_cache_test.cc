#include "store/nested_cache.h"

#include "base/errors/error_test.h"
#include "base/matchers_test.h"
#include "price/cost_sections.h"

namespace tessera {
namespace {

const std::vector<cache::Ingredient> kOuter = {{"model", "outer"}};
const std::vector<cache::Ingredient> kInner = {{"model", "inner"}};

// What a bind of a nested graph with the shape `shape` found out: nothing but how long it took.
std::shared_ptr<const CacheRecord> record_of(std::vector<cache::Ingredient> model,
                                             const std::string& shape) {
  tuning::FoundPlan plan;
  plan.interrupted_seconds = 2;
  return std::make_shared<const CacheRecord>(
      std::move(model), tuning::Binding{{"shape of x", shape}}, std::move(plan),
      [] { return CacheRecord::Contents(); });
}

cache::CacheFile saved(const CacheRecords& nested, const std::string& wanted = "") {
  cache::CacheFile file{.ingredients = kOuter};
  add_nested_caches(nested, wanted, /*key=*/nullptr, file);
  // As another process reads it.
  return cache::decode(cache::encode(file, nullptr), nullptr, "the file");
}

TEST(NestedCaches, AreFoundByTheirIngredients) {
  const cache::CacheFile file =
      saved({record_of(kInner, "1"), record_of(kInner, "2"), record_of({{"model", "other"}}, "1")});
  EXPECT_EQ(file.sections.size(), 2U) << "one for each nested graph";
  const auto inner = find_nested_cache(file, kInner, nullptr, "the file");
  ASSERT_TRUE(inner);
  EXPECT_EQ(inner->ingredients, kInner);
  EXPECT_EQ(inner->sections.size(), 2U) << "one for each shape";
  EXPECT_FALSE(find_nested_cache(file, kOuter, nullptr, "the file"));
  check_nested_caches(file, "the file");
}

TEST(NestedCaches, HaveSectionsOfOneTypeIfItIsWanted) {
  EXPECT_EQ(saved({record_of(kInner, "1")}, "plan").sections.size(), 1U);
  EXPECT_TRUE(saved({record_of(kInner, "1")}, "native").sections.empty());
}

TEST(NestedCaches, AreCheckedIfTheyAreLoaded) {
  cache::CacheFile file = saved({record_of(kInner, "1")});
  file.sections[0].bytes.back() ^= 1;  // the checksum of the section is made anew
  file = cache::decode(cache::encode(file, nullptr), nullptr, "the file");
  for (const std::string& error :
       {error_of([&] { check_nested_caches(file, "the file"); }),
        error_of([&] { find_nested_cache(file, kInner, nullptr, "the file"); })}) {
    EXPECT_THAT(error, HasSubstr("the file, a nested graph"));
  }
}

}  // namespace
}  // namespace tessera
