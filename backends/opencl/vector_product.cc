#include "products.h"

#include <string>

namespace tessera::opencl {

namespace {

// y[row] = alpha * (row of the matrix) * x + beta * y[row]. A group computes one row.
constexpr const char* kRowSource = R"(
KERNEL void multiply_rows(__global const uchar *matrix_base, ulong matrix_at,
                          __global const uchar *x_base, ulong x_at, __global uchar *y_base,
                          ulong y_at, int rows, int columns, float alpha, float beta) {
  __local float sums[GROUP];
  const int item = get_local_id(0);
  const int row = get_group_id(0);
  __global const float *line = AT(const float, matrix_base, matrix_at) + (size_t)row * columns;
  __global const float *x = AT(const float, x_base, x_at);
  const int vectors = columns / 8;
  // Blocks of the sum are added up on their own, so that rounding errors do not grow with columns.
  float8 sum8 = 0;
  for (int start = item; start < vectors; start += GROUP * BLOCK) {
    float8 part = 0;
    const int end = min(vectors, start + GROUP * BLOCK);
    for (int index = start; index < end; index += GROUP) {
      part += vload8(index, line) * vload8(index, x);
    }
    sum8 += part;
  }
  const float4 sum4 = sum8.lo + sum8.hi;
  const float2 sum2 = sum4.lo + sum4.hi;
  float sum = sum2.x + sum2.y;
  for (int index = vectors * 8 + item; index < columns; index += GROUP) {
    sum += line[index] * x[index];
  }
  sums[item] = sum;
  for (int half_group = GROUP / 2; half_group > 0; half_group /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < half_group) sums[item] += sums[item + half_group];
  }
  if (item == 0) {
    __global float *y = AT(float, y_base, y_at) + row;
    *y = alpha * sums[0] + (beta == 0 ? 0.0f : beta * *y);
  }
}
)";

// y[column] = alpha * x * (column of the matrix) + beta * y[column]. Each work-item computes WIDTH
// columns: processors of vectors read many at once, GPUs have an item for each.
constexpr const char* kColumnSource = R"(
#if WIDTH == 1
#define VECTOR float
#define READ(at) (*(at))
#define WRITE(value, at) (*(at) = (value))
#else
#define VECTOR float16
#define READ(at) vload16(0, at)
#define WRITE(value, at) vstore16(value, 0, at)
#endif

KERNEL void multiply_columns(__global const uchar *matrix_base, ulong matrix_at,
                             __global const uchar *x_base, ulong x_at, __global uchar *y_base,
                             ulong y_at, int rows, int columns, float alpha, float beta) {
  const int first = get_global_id(0) * WIDTH;
  __global const float *matrix = AT(const float, matrix_base, matrix_at) + first;
  __global const float *x = AT(const float, x_base, x_at);
  __global float *y = AT(float, y_base, y_at) + first;
  if (first + WIDTH <= columns) {
    VECTOR sum = 0;
    for (int start = 0; start < rows; start += BLOCK) {
      VECTOR part = 0;
      for (int row = start; row < min(rows, start + BLOCK); ++row) {
        part += x[row] * READ(matrix);
        matrix += columns;
      }
      sum += part;
    }
    sum *= alpha;
    if (beta != 0) sum += beta * READ(y);
    WRITE(sum, y);
  } else {
    for (int column = 0; column < columns - first; ++column) {
      float sum = 0;
      for (int start = 0; start < rows; start += BLOCK) {
        float part = 0;
        for (int row = start; row < min(rows, start + BLOCK); ++row) {
          part += x[row] * matrix[(size_t)row * columns + column];
        }
        sum += part;
      }
      y[column] = alpha * sum + (beta == 0 ? 0.0f : beta * y[column]);
    }
  }
}
)";

constexpr int32_t kRowGroup = 32;
constexpr int32_t kColumnGroup = 16;
constexpr int64_t kBlock = 512;
constexpr int64_t kCpuWidth = 16;

}  // namespace

bool is_vector_product(const Product& product) {
  return product.batch.size() == 1 && (product.m == 1 || product.n == 1);
}

Launch vector_product(const Offers& offers, const Product& product) {
  const bool is_row = product.m == 1;
  const Place matrix = is_row ? product.b : product.a;
  const Place vector = is_row ? product.a : product.b;
  // The matrix is stored so that its rows are those of the product, or its columns.
  const bool is_transposed = is_row ? product.is_b_transposed : product.is_a_transposed;
  const bool has_result_rows = is_row == is_transposed;
  const int64_t results = is_row ? product.n : product.m;
  const int64_t rows = has_result_rows ? results : product.k;
  const int64_t columns = has_result_rows ? product.k : results;
  Launch launch{.definitions = define("BLOCK", kBlock),
                .arguments = {matrix, vector, product.c, narrow(rows), narrow(columns),
                              product.alpha, product.beta}};
  if (has_result_rows) {
    launch.source = kRowSource;
    launch.name = "multiply_rows";
    launch.groups = rows;
    launch.group_items = kRowGroup;
    return launch;
  }
  const int64_t width = offers.facts().is_cpu ? kCpuWidth : 1;
  launch.definitions += define("WIDTH", width);
  launch.source = kColumnSource;
  launch.name = "multiply_columns";
  launch.groups = groups_for((columns + width - 1) / width, kColumnGroup);
  launch.group_items = kColumnGroup;
  return launch;
}

}  // namespace tessera::opencl
