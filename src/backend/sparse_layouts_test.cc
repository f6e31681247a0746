#include <cstring>
#include <random>

#include "backend/layouts.h"
#include "base/errors/error_test.h"
#include "base/matchers_test.h"
#include "base/tensor/tensors_test.h"

namespace tessera {
namespace {

tessera_buffer buffer_of(const TensorType& type, Tensor& memory) {
  tessera_buffer buffer = {};
  buffer.data = memory.mutable_data();
  buffer.bytes = memory.bytes();
  buffer.data_type = static_cast<int32_t>(type.element);
  buffer.rank = static_cast<int32_t>(type.dims.size());
  buffer.dims = type.dims.data();
  return buffer;
}

// Converts `dense` to the layout of `form` and back, on `threads`; `sparse` receives the
// intermediate.
Tensor there_and_back(const SparseForm& form, Tensor& dense, int threads, Tensor& sparse) {
  const std::vector<SparseForm> forms = {form};
  const LayoutTable table({}, forms);
  const LayoutId layout = *table.find(text(form));
  const TensorType type{dense.type(), dense.dims()};
  ThreadPool pool(threads);
  RunContext context(pool);
  sparse = Tensor(DataType::UInt8, {*table.storage_bytes(layout, type)});
  Tensor back(dense.type(), dense.dims());
  convert(table.route(kDefaultLayout, layout, type).at(0), "value 'x'", context,
          buffer_of(type, dense), buffer_of(type, sparse));
  std::memset(back.mutable_data(), 0x77, static_cast<size_t>(back.bytes()));
  convert(table.route(layout, kDefaultLayout, type).at(0), "value 'x'", context,
          buffer_of(type, sparse), buffer_of(type, back));
  return back;
}

Tensor random_tensor(std::mt19937& random, DataType type, std::vector<int64_t> dims) {
  Tensor dense(type, std::move(dims));
  auto* bytes = static_cast<unsigned char*>(dense.mutable_data());
  const unsigned rarity = 1 + random() % 20;
  for (int64_t index = 0; index < dense.bytes(); ++index) {
    bytes[index] = static_cast<unsigned char>(random() % rarity == 0 ? random() : 0);
  }
  return dense;
}

TEST(SparseLayouts, ConvertThereAndBack) {
  std::mt19937 random(5);
  const DataType types[] = {DataType::Float32, DataType::Float64, DataType::Int8,
                            DataType::Float16};
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> dims = {static_cast<int64_t>(random() % 50),
                                 static_cast<int64_t>(random() % 300)};
    const SparseFormat format = round % 2 == 0 ? SparseFormat::Csr : SparseFormat::RowSparse;
    if (format == SparseFormat::RowSparse && round % 4 == 1) dims = {dims[0]};
    if (format == SparseFormat::RowSparse && round % 8 == 3) dims.push_back(3);
    Tensor dense = random_tensor(random, types[random() % 4], dims);
    Tensor sparse;
    const SparseForm form = {format, max_stored(format, dims)};
    const Tensor back = there_and_back(form, dense, 1 + round % 2, sparse);
    ASSERT_EQ(std::memcmp(back.data(), dense.data(), static_cast<size_t>(dense.bytes())), 0);
    // Compares with the serial conversion, which has tests of its own.
    const SparseTensor found = SparseTensor::from_storage(dense.type(), dims, sparse);
    const SparseTensor expected = SparseTensor::from_dense(format, dense);
    ASSERT_EQ(found.stored(), expected.stored());
    const Tensor values = found.values();
    ASSERT_EQ(
        std::memcmp(values.data(), expected.values().data(), static_cast<size_t>(values.bytes())),
        0);
  }
}

TEST(SparseLayouts, SayWhenThereIsMoreThanTheyHaveRoomFor) {
  Tensor dense = floats({3, 2}, {1, 0, 0, 0, 2, 3});
  Tensor sparse;
  EXPECT_NO_THROW(there_and_back({SparseFormat::Csr, 3}, dense, 1, sparse));
  EXPECT_THAT(
      error_of([&] { there_and_back({SparseFormat::Csr, 2}, dense, 1, sparse); }),
      HasSubstr("InvalidArgument: value 'x': expected at most 2 elements that are not zero (the "
                "capacity of csr:2), found 3; bind with a layout that has room for them, such as "
                "'csr:3'"));
  EXPECT_NO_THROW(there_and_back({SparseFormat::RowSparse, 2}, dense, 1, sparse));
  EXPECT_THAT(error_of([&] { there_and_back({SparseFormat::RowSparse, 1}, dense, 1, sparse); }),
              HasSubstr("expected at most 1 rows"));
}

TEST(SparseLayouts, HoldWhatTheirFormatIsFor) {
  const std::vector<SparseForm> forms = {{SparseFormat::Csr, 4}, {SparseFormat::RowSparse, 2}};
  const LayoutTable table({}, forms);
  const LayoutId csr = *table.find("csr:4");
  const LayoutId rows = *table.find("row_sparse:2");
  EXPECT_FALSE(table.is_dense(csr));
  EXPECT_EQ(table.sparse_form(rows), forms[1]);
  EXPECT_EQ(table.sparse_form(kDefaultLayout), std::nullopt);
  EXPECT_EQ(table.storage_bytes(csr, {DataType::Float32, {3, 5}}), 64 + 64 + 64 + 64);
  EXPECT_EQ(table.storage_bytes(csr, {DataType::Float32, {3}}), std::nullopt);
  EXPECT_EQ(table.storage_bytes(rows, {DataType::Float32, {3, 40}}), 64 + 64 + 320);
  EXPECT_EQ(table.storage_bytes(rows, {DataType::Float32, {}}), std::nullopt);
  EXPECT_EQ(table.hops(csr, kDefaultLayout), 1);
}

}  // namespace
}  // namespace tessera
