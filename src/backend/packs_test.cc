#include "backend/packs.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <atomic>
#include <bit>
#include <string>
#include <vector>

#include "base/tensor/tensors_test.h"
#include "base/threads/threads_test.h"
#include "tessera/error.h"

namespace tessera {
namespace {

TEST(Digest, TellsElementsShapesAndTypesApart) {
  const Digest digest = digest_of(floats({2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(digest, digest_of(floats({2, 2}, {1, 2, 3, 4})));
  EXPECT_NE(digest, digest_of(floats({2, 2}, {1, 2, 3, 5})));
  EXPECT_NE(digest, digest_of(floats({4}, {1, 2, 3, 4})));
  const std::vector<int32_t> bits = {0x3f800000, 0x40000000, 0x40400000, 0x40800000};
  EXPECT_NE(digest, digest_of(Tensor::from<int32_t>(DataType::Int32, {2, 2}, bits)));
}

Tensor counted(int64_t bytes) {
  Tensor tensor(DataType::UInt8, {bytes});
  auto* const data = static_cast<uint8_t*>(tensor.mutable_data());
  for (int64_t at = 0; at < bytes; ++at) data[at] = static_cast<uint8_t>(at * 31 + (at >> 12));
  return tensor;
}

// Expected values from Python's hashlib, for D(b) = blake2b(b, digest_size=32).digest() and the
// list of all 1 MiB parts: D(b"tessera weight\n" + TYPE + b" " + DIMENSIONS + b"\n" + length (8
// bytes, little-endian) + D(part) of all parts).
TEST(Digest, IsATreeOfBlake2b) {
  EXPECT_EQ(cache::hexadecimal(digest_of(floats({2, 2}, {1, 2, 3, 4}))),
            "4d6847fa9c583bab047a9cdd4f2e6e9b86512dc7c4df183ca9c6ee11275c9bc0");
  EXPECT_EQ(cache::hexadecimal(digest_of(floats({0}, {}))),
            "130a45ceb5f4cdb4b5cddb021d1459f9c0b445e87662a72d4d70af0810972bb4");
  EXPECT_EQ(cache::hexadecimal(digest_of(counted((2 << 20) + 3))),
            "9a4ac9bb58e86482f16cf0e3d6534e06f715ad56369f900b5b3ce20cd6274d3a");
}

TEST(Digest, IsTheSameOnSeveralThreads) {
  const Tensor tensor = counted((5 << 20) + 1);
  ThreadPool pool(4);
  EXPECT_EQ(digest_of(tensor, &pool), digest_of(tensor));
}

TEST(Digest, DependsOnEveryByte) {
  Tensor tensor = counted((1 << 20) + 2);
  const Digest before = digest_of(tensor);
  auto* const data = static_cast<uint8_t*>(tensor.mutable_data());
  for (const int64_t at : {0, 1, 63, 64, (1 << 20) - 1, 1 << 20, (1 << 20) + 1}) {
    data[at] ^= 1;
    EXPECT_NE(digest_of(tensor), before) << at;
    data[at] ^= 1;
  }
}

// Collisions of XXH3, which identified weights in an earlier version: in the first lane of stripes
// 0 and 1, the lower half of a word equals that of the secret, so the product is 0 and only the sum
// of the upper halves counts.
TEST(Digest, TellsWeightsApartThatHaveOneXxh3) {
  const auto weight = [](float first, float second) {
    Tensor tensor = floats({64, 64}, std::vector<float>(64 * 64));
    auto* const values = static_cast<float*>(tensor.mutable_data());
    values[0] = std::bit_cast<float>(0xbff266e0U);
    values[1] = first;
    values[16] = std::bit_cast<float>(0xa5fb9954U);
    values[17] = second;
    return tensor;
  };
  const auto xxh3 = [](const Tensor& tensor) {
    const std::string head = "float32 64x64";
    const XXH128_hash_t seed = XXH3_128bits(head.data(), head.size());
    return XXH3_128bits_withSeed(tensor.data(), static_cast<size_t>(tensor.bytes()),
                                 seed.low64 ^ seed.high64);
  };
  const Tensor one = weight(1, 2);
  const Tensor other = weight(2, 1);
  ASSERT_TRUE(XXH128_isEqual(xxh3(one), xxh3(other)));
  EXPECT_NE(digest_of(one), digest_of(other));
}

TEST(PackStore, MakesAPackOnceThoughManyAsk) {
  PackStore store;
  std::atomic<int> made = 0;
  std::vector<PackStore::Bytes> packs(8);
  for_each_at_once(packs, [&](PackStore::Bytes& pack) {
    pack = store.get({{1, 2}, "id", "lib 1"}, 16, [&](void* memory) {
      ++made;
      *static_cast<int*>(memory) = 42;
    });
  });
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

TEST(PackStore, TakesWhatTheSourceHasAndMakesTheRest) {
  PackStore store;
  const PackKey kept{{1, 2}, "id", "lib"};
  const PackKey other{{1, 3}, "id", "lib"};
  int asked = 0;
  store.set_source([&](const PackKey& key, int64_t bytes) -> PackStore::Bytes {
    ++asked;
    EXPECT_EQ(bytes, 8);
    return key == kept ? std::make_shared<const int64_t>(42) : nullptr;
  });
  for (const PackKey& key : {kept, other}) store.find_stored(key, 8);
  EXPECT_EQ(store.find(other), nullptr);
  EXPECT_EQ(store.total_bytes(), 8);
  const auto pack = store.get(kept, 8, [](void*) { FAIL() << "it is there"; });
  EXPECT_EQ(*static_cast<const int64_t*>(pack.get()), 42);
  EXPECT_EQ(asked, 2) << "once for each";
  store.get(other, 8, [](void* memory) { *static_cast<int64_t*>(memory) = 7; });
  EXPECT_EQ(store.total_bytes(), 16);
}

TEST(PackStore, DropsWhatNobodyUses) {
  PackStore store;
  const auto make = [](void*) {};
  const PackKey own{.weight = {1}, .id = "a"};
  const PackKey used{.weight = {2}, .id = "a"};
  const PackKey unused{.weight = {3}, .id = "a"};
  const PackKey missing{.weight = {4}, .id = "a"};
  store.get(own, 100, make);
  const PackStore::Bytes held = store.get(used, 10, make);
  store.get(unused, 1, make);
  store.find_stored(missing, 8);
  store.drop_unused([](const Digest& weight) { return weight == Digest{1}; });
  EXPECT_EQ(store.total_bytes(), 110);
  EXPECT_NE(store.find(own), nullptr);
  EXPECT_NE(store.find(used), nullptr);
  EXPECT_EQ(store.find(unused), nullptr);
  store.drop_unused();
  EXPECT_EQ(store.total_bytes(), 10);
  EXPECT_EQ(store.find(own), nullptr);
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
