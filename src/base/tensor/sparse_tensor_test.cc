#include "tessera/sparse_tensor.h"

#include <cstring>
#include <functional>
#include <random>

#include "base/errors/error_test.h"
#include "base/matchers_test.h"
#include "base/tensor/tensors_test.h"
#include "tessera/backend_abi.h"

namespace tessera {
namespace {

Tensor narrow(std::vector<int32_t> numbers) {
  return Tensor::from<int32_t>(DataType::Int32, {static_cast<int64_t>(numbers.size())}, numbers);
}

TEST(SparseTensor, HoldsTheArraysOfCsr) {
  const SparseTensor made =
      SparseTensor::csr({3, 4}, narrow({0, 2, 2, 3}), ints({1, 3, 0}), floats({3}, {5, 6, 7}));
  EXPECT_EQ(made.stored(), 3);
  EXPECT_EQ(made.density(), 0.25);
  EXPECT_THAT(made.row_offsets(), ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(made.columns(), ElementsAre(1, 3, 0));
  EXPECT_THAT(made.values().as<float>(), ElementsAre(5, 6, 7));
  EXPECT_THAT(made.to_dense().as<float>(), ElementsAre(0, 5, 0, 6, 0, 0, 0, 0, 7, 0, 0, 0));
}

TEST(SparseTensor, HoldsRows) {
  const SparseTensor made =
      SparseTensor::row_sparse({4, 2}, ints({1, 3}), floats({2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(made.stored(), 2);
  EXPECT_THAT(made.rows(), ElementsAre(1, 3));
  EXPECT_EQ(made.values().dims(), (std::vector<int64_t>{2, 2}));
  EXPECT_THAT(made.to_dense().as<float>(), ElementsAre(0, 0, 1, 2, 0, 0, 3, 4));
}

TEST(SparseTensor, LiesAsTheContractSays) {
  const SparseTensor made =
      SparseTensor::csr({1, 40}, ints({0, 2}), ints({3, 39}), floats({2}, {1, 2}));
  const auto* header = static_cast<const tessera_sparse_header*>(made.storage().data());
  EXPECT_EQ(sizeof(*header), 64U);
  EXPECT_EQ(header->format, static_cast<uint32_t>(TESSERA_CSR));
  EXPECT_EQ(header->stored, 2);
  EXPECT_EQ(header->capacity, 2);
  EXPECT_EQ(header->offsets_at, 64);
  EXPECT_EQ(header->indices_at, 128);
  EXPECT_EQ(header->values_at, 192);
  EXPECT_EQ(made.storage().bytes(), 256);
}

TEST(SparseTensor, SaysWhatIsWrongAndWhere) {
  const auto csr = [](std::vector<int64_t> offsets, std::vector<int64_t> columns) {
    return [=] { SparseTensor::csr({2, 3}, ints(offsets), ints(columns), floats({2}, {1, 2})); };
  };
  const auto rows = [](std::vector<int64_t> numbers) {
    return [=] { SparseTensor::row_sparse({4}, ints(numbers), floats({2}, {1, 2})); };
  };
  const struct {
    std::function<void()> make;
    const char* says;
  } cases[] = {
      {csr({0, 2}, {0, 1}), "row_offsets: expected 3 of them, found 2"},
      {csr({1, 1, 2}, {0, 1}), "expected 0 to begin with, found 1 as row_offsets[0]"},
      {csr({0, 3, 2}, {0, 1}), "expected at least 3, found 2 as row_offsets[2]"},
      {csr({0, 1, 1}, {0, 1}), "the number of stored elements, 2, to end with, found 1"},
      {csr({0, 1, 2}, {0}), "columns (one for each value): expected 2 of them, found 1"},
      {csr({0, 1, 2}, {0, 3}), "expected 0 to 2, found 3 as columns[1] (row 1)"},
      {csr({0, 1, 2}, {-1, 0}), "expected 0 to 2, found -1 as columns[0] (row 0)"},
      {csr({0, 2, 2}, {2, 1}), "ascending ones without repetition in each row, found 1"},
      {csr({0, 2, 2}, {1, 1}), "found 1 as columns[1] after 1 (row 0)"},
      {rows({1}), "values: expected 1 for this number of stored rows, found 2"},
      {rows({1, 4}), "rows: expected 0 to 3, found 4 as rows[1]"},
      {rows({2, 2}), "rows: expected ascending ones without repetition, found 2 as rows[1]"},
      {[] { SparseTensor::csr({2, 2, 2}, ints({}), ints({}), floats({0}, {})); },
       "expected two dimensions"},
      {[] { SparseTensor::csr({0, 2}, floats({1}, {0}), ints({}), floats({0}, {})); },
       "row_offsets: expected int32 or int64 in one dimension, found float32 1"},
      {[] { SparseTensor::row_sparse({}, ints({}), floats({0}, {})); }, "at least one dimension"},
  };
  for (const auto& [make, says] : cases) {
    EXPECT_THAT(error_of(ErrorKind::InvalidArgument, [&] { make(); }), HasSubstr(says));
  }
}

TEST(SparseTensor, GoesToDenseAndBack) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> dims = {static_cast<int64_t>(random() % 6),
                                 static_cast<int64_t>(random() % 40)};
    const SparseFormat format = random() % 2 == 0 ? SparseFormat::Csr : SparseFormat::RowSparse;
    if (format == SparseFormat::RowSparse && random() % 2 == 0) dims.push_back(2);
    const DataType type = random() % 2 == 0 ? DataType::Float64 : DataType::Int8;
    Tensor dense(type, dims);
    auto* bytes = static_cast<unsigned char*>(dense.mutable_data());
    for (int64_t index = 0; index < dense.bytes(); ++index) {
      bytes[index] = static_cast<unsigned char>(random() % 5 == 0 ? random() : 0);
    }
    const Tensor back = SparseTensor::from_dense(format, dense).to_dense();
    ASSERT_EQ(back.dims(), dense.dims());
    ASSERT_EQ(std::memcmp(back.data(), dense.data(), static_cast<size_t>(dense.bytes())), 0);
  }
}

TEST(SparseTensor, SizesThatExceedAllBoundsAreNoSizes) {
  const std::vector<int64_t> dims = {int64_t{1} << 62, 1};
  EXPECT_EQ(sparse_bytes(SparseFormat::Csr, DataType::Float32, dims, 0), -1);
  EXPECT_EQ(sparse_bytes(SparseFormat::RowSparse, DataType::Float32, dims, int64_t{1} << 61), -1);
  const std::vector<int64_t> wide_dims = {1, int64_t{1} << 31};
  EXPECT_EQ(max_stored(SparseFormat::Csr, wide_dims), -1);
}

}  // namespace
}  // namespace tessera
