#include "kernel_store.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <thread>

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
  }

  tessera_host host = {};
  std::map<std::string, std::string> blobs;
};

constexpr const char* kWrongText = "define void @kernel(";

class KernelStores : public testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = new_store().explain_missing_compiler();
    if (!missing.empty()) GTEST_SKIP() << missing;
  }

  KernelStore new_store(const std::string& revision = "test") {
    return {target_, Blobs(&host_.host), revision};
  }

  std::string text(double factor = 3) const {
    GroupBuilder builder({10});
    const int32_t x = builder.operand(TESSERA_FLOAT32);
    const int32_t number = builder.number(TESSERA_FLOAT32, factor);
    builder.result(builder.append(TESSERA_EXPRESSION_MULTIPLY, TESSERA_FLOAT32, {x, number}));
    return kernel_texts(builder.group, "", target_).at(0);
  }

  const Target target_ = target_of_level("x86-64-v2");
  TestHost host_;
};

TEST_F(KernelStores, CompileEachTextOnce) {
  KernelStore store = new_store();
  EXPECT_FALSE(store.has(text()));
  const auto first = store.get(text());
  EXPECT_EQ(store.get(text()), first);
  EXPECT_TRUE(store.has(text()));
  store.get(text(4));
  EXPECT_EQ(store.counts().compiled, 2);
  EXPECT_EQ(store.counts().unique, 2);
  EXPECT_GT(store.counts().compile_seconds, 0);
}

TEST_F(KernelStores, CompileOnceForThreadsThatAskTogether) {
  KernelStore store = new_store();
  const std::string wanted = text();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] { store.get(wanted); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store.counts().compiled, 1);
}

TEST_F(KernelStores, TakeKernelsFromTheHost) {
  new_store().get(text());
  KernelStore later = new_store();
  EXPECT_TRUE(later.has(text()));
  EXPECT_NE(later.get(text())->code.kernel(), nullptr);
  EXPECT_EQ(later.counts().compiled, 0);
  EXPECT_EQ(later.counts().loaded, 1);
  EXPECT_FALSE(new_store("another revision").has(text()));
}

TEST_F(KernelStores, RememberWhatCannotBeCompiled) {
  for (int process = 0; process < 2; ++process) {
    KernelStore store = new_store();
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        store.get(kWrongText);
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
  const std::string wanted = text();
  new_store().get(wanted);
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
      if (damaged.text != wanted) continue;
      const LoadedCode code(damaged.image);
    } catch (const plugin::Failure&) {
      continue;
    }
  }
  blob = good.substr(0, good.size() / 2);
  KernelStore store = new_store();
  EXPECT_NE(store.get(wanted), nullptr);
  EXPECT_EQ(store.counts().compiled, 1);
  EXPECT_EQ(blob, good);
}

TEST_F(KernelStores, NeverUseTheKernelOfAnotherText) {
  new_store().get(text());
  ASSERT_EQ(host_.blobs.size(), 1U);
  const std::string kernel = host_.blobs.begin()->second;
  KernelStore store = new_store();
  store.get(text(4));
  for (auto& [key, blob] : host_.blobs) blob = kernel;
  KernelStore later = new_store();
  EXPECT_EQ(later.get(text(4))->record.text, text(4));
  EXPECT_EQ(later.counts().compiled, 1);
}

// As many texts as make the store forget those that nobody uses.
TEST_F(KernelStores, KeepWhatIsUsed) {
  KernelStore store = new_store();
  const auto kept = store.get(text());
  for (int index = 0; index < 1'100; ++index) {
    KernelRecord record = kept->record;
    record.text += "; " + std::to_string(index) + "\n";
    store.accept(std::move(record));
  }
  EXPECT_EQ(store.get(text()), kept);
  EXPECT_EQ(store.counts().compiled, 1);
}

}  // namespace
}  // namespace tessera::jit
