#include "backend/host.h"

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "backend/contract/blob_bounds.h"
#include "backend/contract/run_context.h"
#include "base/matchers_test.h"
#include "base/threads/threads_test.h"

namespace tessera {
namespace {

// No function of the host throws, because plug-ins may be written in C, which exceptions cannot
// pass.
class Host : public testing::Test {
 protected:
  static void throw_it(void* /*argument*/) { throw std::runtime_error("out of luck"); }

  std::vector<std::string> logged_;
  std::shared_ptr<HostServices> services_ = std::make_shared<HostServices>(
      [this](const std::string& message) { logged_.push_back(message); });
  HostTable table_{services_, "mine"};
  const tessera_host* host_ = table_.abi();
};

TEST_F(Host, KeepsBlobs) {
  host_->put_blob(host_, "key", "abc", 3);
  std::string found;
  const auto visit = [](void* user, const void* bytes, size_t size) {
    static_cast<std::string*>(user)->assign(static_cast<const char*>(bytes), size);
  };
  EXPECT_EQ(host_->get_blob(host_, "key", visit, &found), 1);
  EXPECT_EQ(found, "abc");
  EXPECT_EQ(host_->get_blob(host_, "other", visit, &found), 0);
  EXPECT_EQ(host_->get_blob(host_, nullptr, visit, &found), 0);
}

TEST_F(Host, ABlobThatCannotBeTakenIsNotThere) {
  host_->put_blob(host_, "key", "abc", 3);
  const auto visit = [](void*, const void*, size_t) { throw std::runtime_error("no room"); };
  int32_t found = 1;
  EXPECT_NO_THROW(found = host_->get_blob(host_, "key", visit, nullptr));
  EXPECT_EQ(found, 0);
}

TEST_F(Host, OneThreadAtATimeMakesABlob) {
  std::atomic<int> made = 0;
  run_at_once(8, [&](int /*thread*/) {
    ASSERT_EQ(host_->claim_blob(host_, "key"), 1);
    if (!services_->get_blob("mine/key")) {
      ++made;
      host_->put_blob(host_, "key", "abc", 3);
    }
    host_->release_blob(host_, "key");
  });
  EXPECT_EQ(made, 1);
  EXPECT_EQ(host_->claim_blob(host_, nullptr), 0);
  EXPECT_NO_THROW(host_->release_blob(host_, "never claimed"));
}

TEST_F(Host, WaitsForOthersThatMakeABlobButNotForEver) {
  // Another process has it until it was asked twice.
  int asked = 0;
  const BlobKeeper keeper = {.try_claim = [&](const std::string&) -> BlobClaim {
    return ++asked < 3 ? nullptr : std::make_shared<const char>();
  }};
  HostServices services({}, keeper);
  EXPECT_TRUE(services.claim("key"));
  EXPECT_EQ(asked, 3);
  const BlobKeeper busy = {.try_claim = [](const std::string&) -> BlobClaim { return nullptr; }};
  HostServices impatient({}, busy, std::chrono::milliseconds(20));
  EXPECT_FALSE(impatient.claim("key"));
  EXPECT_EQ(impatient.try_claim("key"), nullptr) << "and nothing of it is left";
}

TEST_F(Host, BlobsThatAreKeptAtOnceAreNotNew) {
  std::map<std::string, std::string> kept;
  const BlobKeeper keeper = {.find = [&](const std::string& key) -> std::optional<std::string> {
                               return kept.contains(key) ? std::optional(kept.at(key))
                                                         : std::nullopt;
                             },
                             .keep =
                                 [&](const std::string& key, const std::string& bytes) {
                                   if (key == "mine/a") kept[key] = bytes;
                                   return key == "mine/a";
                                 }};
  HostServices services({}, keeper);
  services.put_blob("mine/a", "text");
  services.put_blob("mine/b", "text");
  EXPECT_EQ(services.take_new_blobs().count("mine/a"), 0U);
  EXPECT_EQ(kept.size(), 1U);
  EXPECT_EQ(HostServices({}, keeper).get_blob("mine/a"), "text");
}

TEST_F(Host, BlobsAreNotKeptWithoutEnd) {
  HostServices services;
  const auto check = [&](const std::string& newest) {
    int64_t bytes = 0;
    for (const auto& [key, blob] : services.blobs()) bytes += std::ssize(blob);
    EXPECT_LE(bytes, kMaxBlobBytes);
    EXPECT_LE(services.blobs().size(), kMaxBlobs);
    EXPECT_TRUE(services.get_blob(newest));
  };
  for (size_t index = 0; index <= kMaxBlobs; ++index) services.put_blob(std::to_string(index), "b");
  check(std::to_string(kMaxBlobs));
  constexpr int64_t kParts = 5;
  for (int64_t index = 0; index < 2 * kParts; ++index) {
    services.put_blob("large " + std::to_string(index),
                      std::string(static_cast<size_t>(kMaxBlobBytes / kParts), 'l'));
    check("large " + std::to_string(index));
  }
  EXPECT_EQ(services.take_new_blobs().size(), services.blobs().size());
}

TEST_F(Host, ABlobForWhichThereIsNoMemoryIsNotKept) {
#ifdef TESSERA_SANITIZED
  GTEST_SKIP() << "the sanitizer's allocator ends the process where there is no memory";
#endif
  EXPECT_NO_THROW(host_->put_blob(host_, "key", "abc", size_t{1} << 62));
  const auto visit = [](void*, const void*, size_t) {};
  EXPECT_EQ(host_->get_blob(host_, "key", visit, nullptr), 0);
}

TEST_F(Host, WhatThrowsInThePoolEndsThere) {
  int runs = 0;
  host_->run_in_pool(host_, 2, [](void* argument) { ++*static_cast<int*>(argument); }, &runs);
  EXPECT_EQ(runs, 1);
  EXPECT_THAT(logged_, ElementsAre());
  EXPECT_NO_THROW(host_->run_in_pool(host_, 2, throw_it, nullptr));
  EXPECT_THAT(logged_, ElementsAre(HasSubstr("in the pool threw an exception")));
}

TEST_F(Host, ALogThatThrowsLosesItsMessage) {
  const auto services = std::make_shared<HostServices>(
      [](const std::string&) { throw std::runtime_error("the log is full"); });
  const HostTable table(services, "mine");
  EXPECT_NO_THROW(table.abi()->log(table.abi(), "a word"));
  EXPECT_NO_THROW(table.abi()->log(table.abi(), nullptr));
}

TEST_F(Host, ALoopThatThrowsFailsTheCall) {
  ThreadPool pool(2);
  RunContext context(pool);
  tessera_run_context* const abi = context.abi();
  const auto body = [](void*, int64_t begin, int64_t) {
    if (begin == 0) throw std::runtime_error("out of luck");
  };
  EXPECT_NO_THROW(abi->parallel_for(abi, 100, 1, body, nullptr));
  EXPECT_TRUE(context.has_failed());
  tessera_error error = {};
  EXPECT_EQ(context.checked(TESSERA_OK, &error), TESSERA_INTERNAL);
  EXPECT_STREQ(error.message, "out of luck");
  EXPECT_FALSE(context.has_failed());
  EXPECT_EQ(context.checked(TESSERA_OK, &error), TESSERA_OK);
}

}  // namespace
}  // namespace tessera
