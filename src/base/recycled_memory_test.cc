#include "base/recycled_memory.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

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
