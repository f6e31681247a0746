#include "tessera/tensor.h"

#include <limits>
#include <memory>
#include <vector>

#include "base/errors/error_test.h"
#include "base/matchers_test.h"
#include "base/tensor/tensors_test.h"

namespace tessera {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(Tensor, CountsElementsAndBytes) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count(std::vector<int64_t>{2, 3, 4}), 24);
  EXPECT_EQ(element_count(std::vector<int64_t>{kMax}), kMax);
  EXPECT_EQ(tensor_bytes(DataType::Float64, std::vector<int64_t>{2, 3}), 48);
  EXPECT_EQ(dims_text({}), "scalar");
  EXPECT_EQ(dims_text(std::vector<int64_t>{1, 3, 224}), "1x3x224");
}

TEST(Tensor, RefusesShapesThatCannotBe) {
  const auto count = [](std::vector<int64_t> dims) {
    return error_of([&] { element_count(dims); });
  };
  EXPECT_EQ(count({2, -1}),
            "InvalidArgument: shape 2x-1: expected dimensions of at least 0, found -1");
  EXPECT_EQ(count({kMax, 2}),
            "InvalidArgument: shape 9223372036854775807x2: the number of "
            "elements exceeds 64 bits");
  // A zero dimension does not excuse an overflow of the product of the others.
  EXPECT_NE(count({0, kMax, 2}), "");
  EXPECT_EQ(error_of([] { tensor_bytes(DataType::Float32, std::vector<int64_t>{kMax / 2}); }),
            "InvalidArgument: shape 4611686018427387903: the number of bytes exceeds 64 bits");
}

TEST(Tensor, StorageIsAlignedSharedAndWritable) {
  Tensor tensor(DataType::Float32, {3, 5});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % kTensorAlignmentBytes, 0U);
  EXPECT_EQ(tensor.bytes(), 60);
  EXPECT_EQ(tensor.rank(), 2);
  const Tensor copy = tensor;
  tensor.mutable_as<float>()[14] = 7;
  EXPECT_EQ(copy.as<float>()[14], 7);
}

TEST(Tensor, KnowsWhetherItIsTheSoleOwner) {
  const Tensor tensor(DataType::Float32, {2});
  EXPECT_TRUE(tensor.is_sole_owner());
  {
    const Tensor other = tensor.reshaped({1, 2});
    EXPECT_FALSE(tensor.is_sole_owner());
    EXPECT_FALSE(other.is_sole_owner());
  }
  EXPECT_TRUE(tensor.is_sole_owner());
  const float foreign = 1;
  EXPECT_FALSE(Tensor(DataType::Float32, {}, std::make_shared<int>(0), &foreign).is_sole_owner());
  EXPECT_FALSE(Tensor().is_sole_owner());
}

TEST(Tensor, NothingAndNoElementsAreDifferent) {
  EXPECT_TRUE(Tensor().is_empty());
  const Tensor none(DataType::Int64, {0, 4});
  EXPECT_FALSE(none.is_empty());
  EXPECT_EQ(none.bytes(), 0);
  EXPECT_NE(none.data(), nullptr);
}

TEST(Tensor, KeepsTheOwnerOfForeignMemory) {
  auto owner = std::make_shared<std::vector<int32_t>>(std::vector<int32_t>{1, 2, 3});
  const std::weak_ptr<std::vector<int32_t>> watch = owner;
  Tensor tensor(DataType::Int32, {3}, owner, owner->data());
  owner.reset();
  EXPECT_THAT(tensor.as<int32_t>(), ElementsAre(1, 2, 3));
  const Tensor column = tensor.reshaped({3, 1});
  tensor = Tensor();
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(column.dims(), (std::vector<int64_t>{3, 1}));
}

TEST(Tensor, CopiesValues) {
  std::vector<int64_t> values = {5, 6};
  const Tensor tensor = ints({2}, values);
  values[0] = 0;
  EXPECT_THAT(tensor.as<int64_t>(), ElementsAre(5, 6));
}

// The sanitizers' allocators end the process instead of giving up.
#ifndef TESSERA_SANITIZED
TEST(Tensor, SaysWhenMemoryIsNotThere) {
  const int64_t elements = int64_t{1} << 60;
  const auto error = thrown_by([&] { const Tensor tensor(DataType::UInt8, {elements}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::OutOfMemory);
  EXPECT_EQ(error->message(), "could not allocate 1152921504606846976 bytes");
}
#endif

#ifdef TESSERA_CHECKS
TEST(Tensor, MisuseIsABugOfOurs) {
  const int32_t value = 1;
  Tensor foreign(DataType::Int32, {}, nullptr, &value);
  EXPECT_THAT(error_of([&] { foreign.mutable_data(); }), HasSubstr("Internal"));
  EXPECT_THAT(error_of([&] { foreign.reshaped({2}); }), HasSubstr("Internal"));
}
#endif

}  // namespace
}  // namespace tessera
