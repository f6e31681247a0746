#include "kernel_store.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <map>

#include "base/threads/threads_test.h"
#include "group_runner.h"

namespace tessera::jit {
namespace {

// A host that keeps blobs.
struct TestHost {
  TestHost() {
    host.struct_size = sizeof(host);
    host.host_state = this;
    host.get_blob = [](const tessera_host* self, const char* key, tessera_bytes_visitor visitor,
                       void* user) -> int32_t {
      const auto& kept = static_cast<TestHost*>(self->host_state)->blobs;
      const auto found = kept.find(key);
      if (found == kept.end()) return 0;
      visitor(user, found->second.data(), found->second.size());
      return 1;
    };
    host.put_blob = [](const tessera_host* self, const char* key, const void* bytes, size_t size) {
      static_cast<TestHost*>(self->host_state)->blobs[key] =
          std::string(static_cast<const char*>(bytes), size);
    };
    host.claim_blob = [](const tessera_host* self, const char* /*key*/) -> int32_t {
      auto* test = static_cast<TestHost*>(self->host_state);
      ++test->claims;
      test->blobs.merge(test->held_back);
      return 1;
    };
    host.release_blob = [](const tessera_host* self, const char* /*key*/) {
      ++static_cast<TestHost*>(self->host_state)->releases;
    };
  }

  tessera_host host = {};
  std::map<std::string, std::string> blobs;
  std::map<std::string, std::string> held_back;  // found after the next claim
  int claims = 0;
  int releases = 0;
};

constexpr const char* kWrongText = "define void @kernel(";

class KernelStores : public testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = new_store().explain_missing_compiler();
    if (!missing.empty()) GTEST_SKIP() << missing;
  }

  KernelStore new_store(const std::string& revision = "test") {
    return {target_, plugin::Blobs(&host_.host), revision};
  }

  struct Given {
    std::string source;
    std::string text;
  };

  // x * factor
  Given given(double factor = 3) const {
    GroupBuilder builder({10});
    const int32_t x = builder.operand(TESSERA_FLOAT32);
    const int32_t number = builder.number(TESSERA_FLOAT32, factor);
    builder.result(builder.append(TESSERA_EXPRESSION_MULTIPLY, TESSERA_FLOAT32, {x, number}));
    const KernelPart part = kernel_parts(builder.group, "", target_).at(0);
    return {part.source, part.print()};
  }

  static std::shared_ptr<const ReadyKernel> get(KernelStore& store, const Given& wanted) {
    return store.get(wanted.source, [&] { return wanted.text; });
  }

  const Target target_ = target_of_level("x86-64-v2");
  TestHost host_;
};

TEST_F(KernelStores, CompileEachSourceOnce) {
  KernelStore store = new_store();
  EXPECT_FALSE(store.has(given().source));
  const auto first = get(store, given());
  EXPECT_EQ(get(store, given()), first);
  EXPECT_TRUE(store.has(given().source));
  get(store, given(4));
  EXPECT_EQ(store.counts().compiled, 2);
  EXPECT_EQ(store.counts().unique, 2);
  EXPECT_GT(store.counts().compile_seconds, 0);
}

TEST_F(KernelStores, CompileOnceForThreadsThatAskTogether) {
  KernelStore store = new_store();
  const Given wanted = given();
  run_at_once(4, [&](int /*thread*/) { get(store, wanted); });
  EXPECT_EQ(store.counts().compiled, 1);
}

TEST_F(KernelStores, TakeKernelsFromTheHost) {
  KernelStore first = new_store();
  get(first, given());
  KernelStore later = new_store();
  EXPECT_TRUE(later.has(given().source));
  const auto ready = later.get(given().source, [] { return std::string("is not printed"); });
  EXPECT_NE(ready->code.kernel(), nullptr);
  EXPECT_EQ(later.counts().compiled, 0);
  EXPECT_EQ(later.counts().loaded, 1);
  EXPECT_FALSE(new_store("another revision").has(given().source));
}

TEST_F(KernelStores, RememberWhatCannotBeCompiled) {
  for (int process = 0; process < 2; ++process) {
    KernelStore store = new_store();
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        store.get("wrong", [] { return std::string(kWrongText); });
        ADD_FAILURE() << "was compiled";
      } catch (const plugin::Failure& failure) {
        EXPECT_EQ(failure.kind(), TESSERA_INTERNAL);
        EXPECT_NE(std::string(failure.what()).find("cannot parse"), std::string::npos);
      }
    }
    EXPECT_EQ(store.counts().compiled, process == 0 ? 1 : 0);
  }
}

// A blob that is cut or damaged outside of the machine code is a miss, and is written again.
TEST_F(KernelStores, CompileAgainIfABlobIsDamaged) {
  const Given wanted = given();
  KernelStore first = new_store();
  get(first, wanted);
  ASSERT_EQ(host_.blobs.size(), 1U);
  std::string& blob = host_.blobs.begin()->second;
  const std::string good = blob;
  const size_t code_bytes = record_of_bytes(good).image.code.size();
  for (size_t size = 0; size < good.size(); size += 7) {
    EXPECT_THROW(record_of_bytes(good.substr(0, size)), plugin::Failure) << size;
  }
  for (size_t bit = 0; bit < 8 * (good.size() - code_bytes); bit += 97) {
    blob = good;
    blob[bit / 8] = static_cast<char>(blob[bit / 8] ^ 1 << bit % 8);
    try {
      const KernelRecord damaged = record_of_bytes(blob);
      if (damaged.source != wanted.source) continue;
      const LoadedCode code(damaged.image);
    } catch (const plugin::Failure&) {
      continue;
    }
  }
  blob = good.substr(0, good.size() / 2);
  KernelStore store = new_store();
  EXPECT_NE(get(store, wanted), nullptr);
  EXPECT_EQ(store.counts().compiled, 1);
  EXPECT_EQ(blob, good);
}

TEST_F(KernelStores, NeverUseTheKernelOfAnotherSource) {
  KernelStore first = new_store();
  get(first, given());
  ASSERT_EQ(host_.blobs.size(), 1U);
  const std::string kernel = host_.blobs.begin()->second;
  KernelStore store = new_store();
  get(store, given(4));
  for (auto& [key, blob] : host_.blobs) blob = kernel;
  KernelStore later = new_store();
  EXPECT_EQ(get(later, given(4))->record.source, given(4).source);
  EXPECT_EQ(later.counts().compiled, 1);
}

TEST_F(KernelStores, CheckAgainOnlyWhatWasRefused) {
  KernelStore store = new_store();
  int calls = 0;
  const auto refuse = [&] {
    ++calls;
    throw plugin::Failure(TESSERA_UNSUPPORTED, "has no text");
  };
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_THROW(store.check("refused", refuse), plugin::Failure);
  }
  store.check("fine", [&] { ++calls; });
  store.check("fine", refuse);
  EXPECT_EQ(calls, 3);
}

// Adds so many sources that the store removes unused ones.
TEST_F(KernelStores, KeepWhatIsUsed) {
  KernelStore store = new_store();
  const auto kept = get(store, given());
  for (int index = 0; index < 1'100; ++index) {
    KernelRecord record = kept->record;
    record.source += "; " + std::to_string(index) + "\n";
    store.accept(std::move(record));
  }
  EXPECT_EQ(get(store, given()), kept);
  EXPECT_EQ(store.counts().compiled, 1);
}

// Two architectures need two compilations; two devices of one architecture load the same code.
TEST_F(KernelStores, CompileOnceForEachArchitecture) {
  const Given wanted = given();
  KernelStore first = new_store();
  KernelStore second = new_store();
  EXPECT_NE(get(first, wanted), get(second, wanted));
  EXPECT_EQ(first.counts().compiled + second.counts().compiled, 1);
  EXPECT_EQ(first.counts().loaded + second.counts().loaded, 1);
  KernelStore other(target_of_level("x86-64-v3"), plugin::Blobs(&host_.host), "test");
  get(other, wanted);
  EXPECT_EQ(other.counts().compiled, 1);
  EXPECT_EQ(other.counts().loaded, 0);
  EXPECT_EQ(host_.blobs.size(), 2U);
}

// A kernel that another process compiles while this one waits for its claim is loaded.
TEST_F(KernelStores, WaitForAnotherProcessThatCompilesTheSame) {
  KernelStore other = new_store();
  get(other, given());
  host_.held_back.swap(host_.blobs);
  KernelStore store = new_store();
  EXPECT_NE(get(store, given()), nullptr);
  EXPECT_EQ(store.counts().compiled, 0);
  EXPECT_EQ(host_.claims, 2);
  EXPECT_EQ(host_.releases, 2);
}

TEST_F(KernelStores, CompileForHostsThatKnowNoClaims) {
  host_.host.struct_size = offsetof(tessera_host, claim_blob);
  KernelStore store = new_store();
  EXPECT_NE(get(store, given()), nullptr);
  EXPECT_EQ(host_.claims, 0);
}

}  // namespace
}  // namespace tessera::jit
