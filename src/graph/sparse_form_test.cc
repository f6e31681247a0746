#include "graph/sparse_form.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(SparseForm, IsNamedAfterFormatAndCapacity) {
  EXPECT_EQ(text(SparseForm{SparseFormat::Csr, 400000}), "csr:400000");
  EXPECT_EQ(text(SparseForm{SparseFormat::RowSparse, 0}), "row_sparse:0");
}

TEST(DensityBucket, IsThePowerOfTenThatIsReached) {
  const struct {
    int64_t stored;
    int64_t total;
    const char* bucket;
  } cases[] = {
      {0, 0, "0"},
      {0, 100, "0"},
      {100, 100, "1e0"},
      {99, 100, "1e-1"},
      {10, 100, "1e-1"},
      {9, 100, "1e-2"},
      {1, 100, "1e-2"},
      {1, 101, "1e-3"},
      {400000, 40000000, "1e-2"},
      {399999, 40000000, "1e-3"},
      {1, 1000000000000, "1e-9"},
      {INT64_MAX, INT64_MAX, "1e0"},
      {1, INT64_MAX, "1e-9"},
  };
  for (const auto& [stored, total, bucket] : cases) {
    EXPECT_EQ(density_bucket(stored, total), bucket) << stored << " of " << total;
  }
}

}  // namespace
}  // namespace tessera
