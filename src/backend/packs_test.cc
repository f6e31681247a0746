#include "backend/packs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tessera/error.h"

namespace tessera {
namespace {

Tensor tensor_of(std::vector<int64_t> dims, const std::vector<float>& values) {
  return Tensor::from<float>(DataType::Float32, std::move(dims), values);
}

TEST(Digest, TellsElementsShapesAndTypesApart) {
  const Digest digest = digest_of(tensor_of({2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(digest, digest_of(tensor_of({2, 2}, {1, 2, 3, 4})));
  EXPECT_NE(digest, digest_of(tensor_of({2, 2}, {1, 2, 3, 5})));
  EXPECT_NE(digest, digest_of(tensor_of({4}, {1, 2, 3, 4})));
  const std::vector<int32_t> bits = {0x3f800000, 0x40000000, 0x40400000, 0x40800000};
  EXPECT_NE(digest, digest_of(Tensor::from<int32_t>(DataType::Int32, {2, 2}, bits)));
}

TEST(PackStore, MakesAPackOnceThoughManyAsk) {
  PackStore store;
  std::atomic<int> made = 0;
  std::vector<PackStore::Bytes> packs(8);
  std::vector<std::thread> threads;
  for (PackStore::Bytes& pack : packs) {
    threads.emplace_back([&] {
      pack = store.get({{1, 2}, "id", "lib 1"}, 16, [&](void* memory) {
        ++made;
        *static_cast<int*>(memory) = 42;
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  for (const PackStore::Bytes& pack : packs) {
    EXPECT_EQ(pack, packs[0]);
    EXPECT_EQ(*static_cast<const int*>(pack.get()), 42);
  }
  EXPECT_EQ(store.total_bytes(), 16);
}

TEST(PackStore, KeepsWhatDiffersInAnyPartOfItsKeyApart) {
  PackStore store;
  const PackKey keys[] = {{{1, 2}, "id", "lib 1"},
                          {{1, 3}, "id", "lib 1"},
                          {{1, 2}, "di", "lib 1"},
                          {{1, 2}, "id", "lib 2"}};
  for (const PackKey& key : keys) {
    EXPECT_EQ(store.find(key), nullptr);
    store.get(key, 8, [](void*) {});
  }
  EXPECT_EQ(store.total_bytes(), 32);
}

TEST(PackStore, TriesAgainAfterAFailure) {
  PackStore store;
  const PackKey key{{1, 2}, "id", "lib"};
  EXPECT_THROW(store.get(key, 8, [](void*) { throw Error(ErrorKind::Unsupported, "a", "b"); }),
               Error);
  EXPECT_EQ(store.find(key), nullptr);
  EXPECT_NE(store.get(key, 8, [](void*) {}), nullptr);
}

}  // namespace
}  // namespace tessera
