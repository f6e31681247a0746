#include "store/store.h"

#include <atomic>
#include <thread>

#include "base/errors/error_test.h"
#include "base/files/temporary_folder_test.h"
#include "base/matchers_test.h"
#include "base/threads/threads_test.h"
#include "cache/cache_folder.h"
#include "cache/stored_file.h"
#include "price/groups.h"

namespace tessera {
namespace {

// One user with a working folder. Each Store stands for one process.
class Stores : public testing::Test {
 protected:
  PlanRequest request() const {
    return {.model = {{"model", "abc"}},
            .model_name = "a.onnx",
            .binding = {{"threads", threads_}},
            .find_versions = [libraries = libraries_] { return libraries; },
            .find_libraries = [libraries = libraries_](const auto&) { return libraries; },
            .folders = {work_.path()},
            .key_folder = user_folder_,
            .is_frozen = is_frozen_};
  }
  LookupResult look_up(Store& store) { return store.look_up(request(), never_wait_, log_); }
  static PlanResult found(const std::string& algorithm) {
    PlanResult result;
    result.plan.steps = {{.nodes = {0}, .backend = "fast", .algorithm = algorithm}};
    result.tuning.seconds = 1;
    result.tuning.measured = 3;
    return result;
  }
  // Searches for a plan, as a process does that knows none, and keeps the result.
  std::shared_ptr<const CacheRecord> find(Store& store, const std::string& algorithm) {
    LookupResult answer = look_up(store);
    auto* const search = std::get_if<PlanSearch>(&answer);
    EXPECT_NE(search, nullptr);
    return search == nullptr ? nullptr : std::move(*search).keep(found(algorithm), costs_);
  }
  // "" if the store has to search for a plan.
  std::string algorithm_known_to(Store& store) {
    LookupResult answer = look_up(store);
    const auto* const stored = std::get_if<StoredPlan>(&answer);
    return stored == nullptr ? "" : stored->plan().steps.front().algorithm;
  }
  void change_user() { user_folder_ = other_user_.path(); }

  const TemporaryFolder work_, user_, other_user_;
  std::filesystem::path user_folder_ = user_.path();
  std::string threads_ = "1";
  std::vector<tuning::PricedLibrary> libraries_ = {{"fast", "version=1.0", {{"version", "1.0"}}}};
  bool is_frozen_ = false;
  tuning::CostTable costs_{.machine = tuning::this_machine()};
  std::vector<std::string> logged_;
  Log log_{[this](const std::string& text) { logged_.push_back(text); }};
  KeepsWaiting never_wait_ = [](const std::string&) { return false; };
};

TEST_F(Stores, WhatOneProcessFindsTheNextOneKnows) {
  Store first;
  const auto record = find(first, "swift");
  ASSERT_NE(record, nullptr);
  EXPECT_TRUE(record->is_saved());
  EXPECT_EQ(algorithm_known_to(first), "swift");
  Store second;
  EXPECT_EQ(algorithm_known_to(second), "swift");
  threads_ = "2";
  EXPECT_EQ(algorithm_known_to(second), "") << "another bind";
  EXPECT_EQ(cache::list_folder(work_.path()).size(), 1U) << "one file a model";
}

TEST_F(Stores, AFileIsInUseAsLongAsItsPlanIs) {
  Store store;
  std::shared_ptr<const CacheRecord> found = find(store, "swift");
  const std::vector<std::filesystem::path> files = cache::list_folder(work_.path());
  ASSERT_EQ(files.size(), 1U);
  EXPECT_TRUE(cache::is_in_use(files[0]));
  std::shared_ptr<const CacheRecord> again;
  {
    LookupResult answer = look_up(store);
    ASSERT_TRUE(std::holds_alternative<StoredPlan>(answer));
    again = std::move(std::get<StoredPlan>(answer)).keep(Stores::found("swift"));
  }
  found.reset();
  EXPECT_TRUE(cache::is_in_use(files[0]));
  again.reset();
  EXPECT_FALSE(cache::is_in_use(files[0])) << "though the store still knows the plan";
  EXPECT_EQ(store.plan_count(), 1U);
  EXPECT_EQ(algorithm_known_to(store), "swift");
  EXPECT_FALSE(cache::is_in_use(files[0]));
}

TEST_F(Stores, AReplacedFileIsMarkedAnew) {
  ProcessPlanCache plans;
  const std::filesystem::path file = work_.path() / "a.cache";
  write_text(file, "one");
  const auto first = plans.mark_in_use(file);
  EXPECT_EQ(plans.mark_in_use(file), first) << "one descriptor a file";
  std::filesystem::remove(file);
  write_text(file, "another");
  EXPECT_FALSE(cache::is_in_use(file));
  const auto second = plans.mark_in_use(file);
  EXPECT_TRUE(cache::is_in_use(file));
}

TEST(PlansOfAProcess, AreForgottenByLastUse) {
  ProcessPlanCache plans(3);
  const auto key = [](int number) {
    const std::vector<cache::Ingredient> all = {{"number", std::to_string(number)}};
    return cache::fingerprint_of(all);
  };
  const auto record = std::make_shared<const CacheRecord>(std::vector<cache::Ingredient>(),
                                                          tuning::Binding(), tuning::FoundPlan(),
                                                          [] { return CacheRecord::Contents(); });
  for (int number = 0; number < 50; ++number) {
    plans.add(key(number), record);
    EXPECT_TRUE(plans.find(key(0)));
    EXPECT_LE(plans.size(), 3U);
  }
  EXPECT_TRUE(plans.find(key(49)));
  EXPECT_TRUE(plans.find(key(48)));
  EXPECT_FALSE(plans.find(key(47)));
}

TEST_F(Stores, APlanSaysWhoFoundIt) {
  Store first;
  find(first, "swift");
  Store second;
  EXPECT_EQ(std::get<StoredPlan>(look_up(second)).origin(), cache::Origin::Signed);
  change_user();
  Store other;
  EXPECT_EQ(std::get<StoredPlan>(look_up(other)).origin(), cache::Origin::Untrusted);
}

TEST_F(Stores, AStrangersPlanThatWasRefusedIsNeverFoundAgain) {
  Store first;
  find(first, "wrong");
  change_user();
  Store other;
  LookupResult first_answer = look_up(other);
  PricingOptions pricing;
  tuning::CostTable costs;
  std::get<StoredPlan>(first_answer).fill(costs, pricing);
  EXPECT_TRUE(pricing.known_plan) << "to judge it";
  LookupResult answer =
      std::get<StoredPlan>(std::move(first_answer)).refuse("it is wrong", never_wait_);
  auto* const search = std::get_if<PlanSearch>(&answer);
  ASSERT_NE(search, nullptr);
  search->fill(costs, pricing);
  EXPECT_FALSE(pricing.known_plan) << "nobody builds it after all";
  EXPECT_THAT(logged_, testing::Contains(HasSubstr("it is wrong")));
  // A result that took no time is saved too, so that nobody verifies the rejected plan again.
  PlanResult result = found("right");
  result.tuning.seconds = 0;
  EXPECT_TRUE(std::move(*search).keep(result, costs_)->is_saved());
  Store next;
  EXPECT_EQ(algorithm_known_to(next), "right");
}

TEST_F(Stores, AStrangersPlanThatIsRightBecomesOnesOwn) {
  Store first;
  find(first, "swift");
  change_user();
  Store other;
  PlanResult built = found("swift");
  built.is_known_plan = true;
  EXPECT_TRUE(std::get<StoredPlan>(look_up(other)).keep(built)->is_saved());
  Store next;
  EXPECT_EQ(std::get<StoredPlan>(look_up(next)).origin(), cache::Origin::Signed);
}

// Background look-ups, and those for other shapes, do not verify plans.
TEST_F(Stores, UntrustedPlansDoNotCountWithoutVerification) {
  Store first;
  find(first, "wrong");
  change_user();
  Store other;
  PricingOptions pricing;
  tuning::CostTable costs;
  other.fill(request(), log_, costs, pricing);
  EXPECT_FALSE(pricing.known_plan);
  const std::optional<LookupResult> answer = other.try_look_up(request(), log_);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(std::holds_alternative<PlanSearch>(*answer));
}

TEST_F(Stores, FrozenFindsNothingOut) {
  is_frozen_ = true;
  Store store;
  EXPECT_THAT(error_of(ErrorKind::CacheMiss, [&] { look_up(store); }),
              HasSubstr("`frozen` forbids measuring"));
  is_frozen_ = false;
  find(store, "swift");
  is_frozen_ = true;
  EXPECT_EQ(algorithm_known_to(store), "swift");
}

TEST_F(Stores, APlanOfOtherLibrariesCompetes) {
  Store first;
  find(first, "swift");
  libraries_[0].stable = {{"version", "2.0"}};
  Store second;
  {
    LookupResult answer = look_up(second);
    EXPECT_THAT(std::get<StoredPlan>(answer).change(), HasSubstr("version 1.0 in the file"));
  }
  // A background bind that competes with it has to search.
  std::optional<LookupResult> answer = second.try_look_up(request(), log_);
  ASSERT_TRUE(answer);
  auto& search = std::get<PlanSearch>(*answer);
  EXPECT_TRUE(search.has_plan());
  PricingOptions pricing;
  tuning::CostTable costs;
  search.fill(costs, pricing);
  EXPECT_FALSE(pricing.relies_on_known_plan);
  std::move(search).keep(found("newer"), costs_);
  Store third;
  EXPECT_EQ(std::get<StoredPlan>(look_up(third)).change(), "");
  EXPECT_EQ(algorithm_known_to(third), "newer");
}

TEST_F(Stores, OfManyThreadsOneFindsThePlan) {
  Store store;
  std::atomic<int> searches = 0;
  const PlanRequest asked = request();
  run_at_once(8, [&](int /*index*/) {
    LookupResult answer = store.look_up(asked, [](const std::string&) { return true; }, log_);
    if (auto* const search = std::get_if<PlanSearch>(&answer)) {
      ++searches;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      std::move(*search).keep(found("swift"), costs_);
    }
  });
  EXPECT_EQ(searches, 1);
}

TEST_F(Stores, WhoCompetesWaitsForNobody) {
  Store first, second;
  const LookupResult searching = look_up(first);
  EXPECT_TRUE(std::holds_alternative<PlanSearch>(searching));
  EXPECT_FALSE(first.try_look_up(request(), log_)) << "another thread is at it";
  EXPECT_FALSE(second.try_look_up(request(), log_)) << "another process is at it";
}

TEST_F(Stores, WithoutAFolderAPlanIsKnownToTheProcess) {
  Store store;
  PlanRequest nowhere = request();
  nowhere.folders.clear();
  nowhere.key_folder.clear();
  LookupResult answer = store.look_up(nowhere, never_wait_, log_);
  const auto record = std::get<PlanSearch>(std::move(answer)).keep(found("swift"), costs_);
  EXPECT_FALSE(record->is_saved());
  EXPECT_TRUE(std::holds_alternative<StoredPlan>(store.look_up(nowhere, never_wait_, log_)));
}

}  // namespace
}  // namespace tessera
