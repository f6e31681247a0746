#include "base/files/byte_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/tensor/tensors_test.h"

namespace tessera {
namespace {

struct Inner {
  std::string name;
  std::array<uint64_t, 2> digest = {};
  bool operator==(const Inner&) const = default;
};

template <class Archive>
void transfer(Archive& archive, Inner& inner) {
  archive(inner.name, inner.digest);
}

struct Outer {
  int32_t number = 0;
  double fraction = 0;
  bool is_set = false;
  DataType type = DataType::Undefined;
  std::vector<Inner> inners;
  std::map<std::string, std::vector<float>> lists;
  std::optional<Inner> perhaps;
  std::optional<int64_t> never;
  bool operator==(const Outer&) const = default;
};

template <class Archive>
void transfer(Archive& archive, Outer& outer) {
  archive(outer.number, outer.fraction, outer.is_set, outer.type, outer.inners, outer.lists,
          outer.perhaps, outer.never);
}

Outer example() {
  return {.number = -5,
          .fraction = 0.25,
          .is_set = true,
          .type = DataType::Int8,
          .inners = {{"a", {1, 2}}, {"", {3, 4}}},
          .lists = {{"empty", {}}, {"two", {1.5F, -0.0F}}},
          .perhaps = Inner{"there", {5, 6}}};
}

std::string bytes_of(const Outer& outer) {
  ByteWriter writer;
  writer(outer);
  return writer.take_bytes();
}

TEST(ByteArchive, RefusesNumbersThatAreNoKind) {
  for (const int number : {static_cast<int>(DataType::String) + 1, 249}) {
    const std::string bytes(1, static_cast<char>(number));
    DataType type = DataType::Undefined;
    ByteReader reader(bytes);
    EXPECT_THROW(reader(type), Error) << number;
  }
}

TEST(ByteArchive, GivesBackWhatItGot) {
  const std::string bytes = bytes_of(example());
  Outer found;
  ByteReader reader(bytes);
  reader(found);
  reader.expect_end();
  EXPECT_EQ(found, example());
}

TEST(ByteArchive, RefusesEveryTruncation) {
  const std::string bytes = bytes_of(example());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string part = bytes.substr(0, size);
    ByteReader reader(part);
    Outer found;
    EXPECT_THROW(reader(found), Error) << size;
  }
  const std::string longer = bytes + "x";
  ByteReader reader(longer);
  Outer found;
  reader(found);
  EXPECT_THROW(reader.expect_end(), Error);
}

TEST(ByteArchive, SurvivesAnyBytes) {
  std::mt19937_64 random(3);
  const std::string bytes = bytes_of(example());
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string spoiled = bytes;
    for (int flips = 0; flips < 3; ++flips) {
      spoiled[random() % spoiled.size()] = static_cast<char>(random());
    }
    try {
      Outer found;
      ByteReader reader(spoiled);
      reader(found);
      reader.expect_end();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Corrupt);
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(ByteArchive, TensorsShareTheirBlocks) {
  const Tensor weight = floats({2, 2}, {1, 2, 3, 4});
  ByteWriter writer;
  writer(weight, weight.reshaped({4}), Tensor(), weight.without_elements());
  ASSERT_EQ(writer.tensors().size(), 1U);
  const std::string bytes = writer.take_bytes();

  Tensor first;
  Tensor second;
  Tensor nothing = weight;
  Tensor without;
  const std::shared_ptr<const void> memory(std::shared_ptr<void>(), weight.data());
  ByteReader reader(bytes, {{memory, weight.bytes()}});
  reader(first, second, nothing, without);
  EXPECT_EQ(first.data(), weight.data());
  EXPECT_EQ(second.dims(), (std::vector<int64_t>{4}));
  EXPECT_TRUE(nothing.is_empty());
  EXPECT_FALSE(without.has_elements());
  EXPECT_EQ(without.dims(), weight.dims());

  ByteReader short_block(bytes, {{memory, weight.bytes() - 1}});
  EXPECT_THROW(short_block(first), Error);
  ByteReader no_block(bytes);
  EXPECT_THROW(no_block(first), Error);
}

}  // namespace
}  // namespace tessera
