#include "base/recycled_memory.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "tessera/error.h"

namespace tessera {
namespace {

const std::vector<int64_t> kDims = {64, 1024};

TEST(RecycledMemory, IsUsedAgainOnceNobodyRefersToIt) {
  RecycledMemory memory;
  std::optional<Tensor> first = memory.take(DataType::Float32, kDims);
  const void* const data = first->data();
  EXPECT_TRUE(first->is_sole_owner());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % kTensorAlignmentBytes, 0U);
  std::optional<Tensor> copy = first->reshaped({1024, 64});
  first.reset();
  const Tensor other = memory.take(DataType::Float32, kDims);
  EXPECT_NE(other.data(), data);
  std::thread([&] { copy.reset(); }).join();
  EXPECT_EQ(memory.take(DataType::Float32, kDims).data(), data);
}

TEST(RecycledMemory, IsOfOneTypeAndSize) {
  RecycledMemory memory;
  memory.take(DataType::Float32, kDims);
  EXPECT_EQ(memory.take(DataType::Int32, kDims).type(), DataType::Int32);
  EXPECT_EQ(memory.take(DataType::Int32, {1 << 17}).bytes(), 1 << 19);
  EXPECT_EQ(memory.take(DataType::Int32, {3}).bytes(), 12);
}

TEST(RecycledMemory, IsComparedWithWhatIsAvailable) {
  RecycledMemory memory([] { return int64_t{20} << 20; });
  const std::vector<int64_t> fits = {16 << 20};
  const std::vector<int64_t> is_too_large = {21 << 20};
  Tensor first = memory.take(DataType::UInt8, fits);
  EXPECT_THROW(memory.take(DataType::UInt8, is_too_large), Error);
  EXPECT_NO_THROW(memory.take(DataType::UInt8, fits));
  RecycledMemory full([] { return int64_t{0}; });
  EXPECT_NO_THROW(full.take(DataType::Float32, kDims)) << "too small to ask";
}

TEST(RecycledMemory, MayEndBeforeItsTensors) {
  Tensor tensor;
  {
    RecycledMemory memory;
    tensor = memory.take(DataType::Float32, kDims);
  }
  tensor.mutable_as<float>()[kDims[0] * kDims[1] - 1] = 1;
  EXPECT_TRUE(tensor.is_sole_owner());
}

}  // namespace
}  // namespace tessera
