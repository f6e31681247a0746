#include "products.h"

#include "grid.h"

namespace tessera::opencl {

namespace {

// Each work-item computes ROWS rows of 16 columns, in registers. For rows of A and columns of B
// that do not exist, existing ones are read, and no result is written.
constexpr const char* kTileSource = R"(
float16 load_part(__global const float *at, int count) {
  float elements[16];
  for (int index = 0; index < 16; ++index) elements[index] = index < count ? at[index] : 0.0f;
  return vload16(0, elements);
}

KERNEL void multiply_tiles(__global const uchar *a_base, ulong a_at, __global const uchar *b_base,
                           ulong b_at, __global uchar *c_base, ulong c_at, int m, int n, int k,
                           int a_row, int a_column, int ldb, int ldc, float alpha, float beta,
                           int a_step, int b_step, int c_step, SIZES(tiles)) {
  // The axes of the groups: batch, columns, rows. Groups that run one after another read the same
  // columns of B, which are still in a cache.
  const int group = get_group_id(0);
  const int line = QUOTIENT(group, tiles2);
  const int entry = QUOTIENT(line, tiles1);
  const int first_row = (group - line * tiles2) * ROWS;
  const int column = ((line - entry * tiles1) * GROUP + (int)get_local_id(0)) * 16;
  if (column < n) {
    __global const float *a = AT(const float, a_base, a_at) + entry * a_step;
    __global const float *b = AT(const float, b_base, b_at) + entry * b_step + column;
    __global float *c = AT(float, c_base, c_at) + entry * c_step + column;
    const int width = min(16, n - column);
    __global const float *a_rows[ROWS];
    float16 sums[ROWS];
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
      a_rows[row] = a + min(first_row + row, m - 1) * a_row;
      sums[row] = 0;
    }
    // Whole vectors are read as long as they end in B; behind a short row, the next one begins.
    const int readable = (k - 1) * ldb + n - column;
    const int whole = readable < 16 ? 0 : min(k, (readable - 16) / ldb + 1);
    // Blocks of the sum are added up on their own, so that rounding errors do not grow with k.
    for (int start = 0; start < whole; start += BLOCK) {
      float16 parts[ROWS];
#pragma unroll
      for (int row = 0; row < ROWS; ++row) parts[row] = 0;
      const int end = min(whole, start + BLOCK);
      for (int index = start; index < end; ++index) {
        const float16 line_of_b = vload16(0, b);
        b += ldb;
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
          parts[row] += a_rows[row][index * a_column] * line_of_b;
        }
      }
#pragma unroll
      for (int row = 0; row < ROWS; ++row) sums[row] += parts[row];
    }
    for (int index = whole; index < k; ++index) {
      const float16 line_of_b = load_part(b, width);
      b += ldb;
#pragma unroll
      for (int row = 0; row < ROWS; ++row) sums[row] += a_rows[row][index * a_column] * line_of_b;
    }
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
      if (first_row + row >= m) continue;
      __global float *line_of_c = c + (first_row + row) * ldc;
      float16 result = alpha * sums[row];
      if (beta != 0) {
        result += beta * (width == 16 ? vload16(0, line_of_c) : load_part(line_of_c, width));
      }
      if (width == 16) {
        vstore16(result, 0, line_of_c);
      } else {
        float elements[16];
        vstore16(result, 0, elements);
        for (int index = 0; index < width; ++index) line_of_c[index] = elements[index];
      }
    }
  }
}
)";

constexpr int32_t kTileGroup = 4;
constexpr int64_t kTileRows = 8;
constexpr int64_t kTileBlock = 512;
constexpr int64_t kTileColumns = 16;

int64_t tiles_for(int64_t count, int64_t tile) { return (count + tile - 1) / tile; }

}  // namespace

bool is_tiled_product(const Offers& offers, const Product& product) {
  // The rows of a transposed B are no vectors of columns.
  return offers.facts().is_cpu && !product.is_b_transposed && batch_step(product.batch);
}

Launch tiled_product(const Product& product) {
  const BatchEntry step = *batch_step(product.batch);
  const auto batch = static_cast<int64_t>(product.batch.size());
  const int64_t column_groups = tiles_for(product.n, kTileColumns * kTileGroup);
  const int64_t row_tiles = tiles_for(product.m, kTileRows);
  const int64_t a_row = product.is_a_transposed ? 1 : product.lda;
  const int64_t a_column = product.is_a_transposed ? product.lda : 1;
  return {
      .definitions = define("ROWS", kTileRows) + define("BLOCK", kTileBlock) + axes_definitions(3),
      .source = kTileSource,
      .name = "multiply_tiles",
      .arguments = {product.a, product.b, product.c, narrow(product.m), narrow(product.n),
                    narrow(product.k), narrow(a_row), narrow(a_column), narrow(product.ldb),
                    narrow(product.ldc), product.alpha, product.beta, narrow(step.a),
                    narrow(step.b), narrow(step.c), divisors({batch, column_groups, row_tiles})},
      .groups = batch * column_groups * row_tiles,
      .group_items = kTileGroup};
}

}  // namespace tessera::opencl
