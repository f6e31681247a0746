// The schedule writes each quarter of the result once, and needs three quarters of memory beside
// it: a product adds what was there before while its sums are in registers.
#include "matmul/strassen.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "base/divide_up.h"
#include "base/element_type.h"
#include "base/grain.h"
#include "matmul/strassen_kernels.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;

namespace {

constexpr int64_t kMinRows = 64;
constexpr int64_t kMinDepth = 256;
constexpr int64_t kMinColumns = 256;

// The factors on the right, in the order in which they are packed, as sums of the quarters: upper
// left, upper right, lower left, lower right.
enum Factor : size_t { kB11, kB21, kT2, kT1, kT3, kMinusT4, kB22, kFactors };
constexpr std::array<std::array<float, 4>, kFactors> kSumsOfQuarters = {{
    {1, 0, 0, 0},    // B11
    {0, 0, 1, 0},    // B21
    {1, -1, 0, 1},   // T2 = B22 - T1
    {-1, 1, 0, 0},   // T1 = B12 - B11
    {0, -1, 0, 1},   // T3 = B22 - B12
    {-1, 1, 1, -1},  // -T4 = B21 - T2
    {0, 0, 0, 1},    // B22
}};

// A matrix, or a part of one.
struct Rows {
  float* at = nullptr;
  int64_t stride = 0;
  float* row(int64_t index) const { return at + index * stride; }
};

class StrassenRun {
 public:
  StrassenRun(RunContext& context, const StrassenProduct& product, int64_t threads,
              const StrassenOperands& operands, float* workspace)
      : context_(context),
        product_(product),
        threads_(threads),
        operands_(operands),
        loops_(find_strassen_loops()) {
    const auto take = [&](int64_t columns) {
      const Rows taken = {workspace, columns};
      workspace += product.half_rows() * columns;
      return taken;
    };
    for (Rows& sum : sums_) sum = take(product.half_depth());
    x_ = take(product.half_columns());
    y_ = take(product.half_columns());
    z_ = take(product.half_columns());
  }

  void run() {
    add_quarters_of_left();
    const int64_t upper = product_.half_rows();
    const int64_t lower = product_.rows - upper;
    const int64_t first = product_.half_columns();
    const int64_t second = product_.columns - first;
    const float* left = operands_.left;
    const int64_t stride = product_.left_row_stride;
    const float* a12 = left + product_.half_depth();
    const float* a22 = left + upper * stride + product_.half_depth();

    multiply({upper, first}, left, stride, kB11, nullptr, x_);
    finish({upper, first, 0, 0}, a12, stride, kB21, x_);
    multiply({upper, first}, sums_[1].at, sums_[1].stride, kT2, &x_, x_);
    multiply({upper, first}, sums_[0].at, sums_[0].stride, kT1, nullptr, z_);
    multiply({upper, first}, sums_[2].at, sums_[2].stride, kT3, &x_, y_);
    finish({lower, first, upper, 0}, a22, stride, kMinusT4, y_);
    add_rest();
    finish({upper, second, 0, first}, sums_[3].at, sums_[3].stride, kB22, x_);
  }

 private:
  // A quarter of the result; or of a buffer, in which it begins at 0.
  struct Quarter {
    int64_t rows = 0;
    int64_t columns = 0;
    int64_t row = 0;
    int64_t column = 0;
  };

  Rows result(const Quarter& quarter) const {
    return {operands_.to + quarter.row * product_.columns + quarter.column, product_.columns};
  }

  template <class Body>
  void for_rows(int64_t rows, int64_t width, const Body& body) const {
    const int64_t grain = kGrain / (width + 1) + 1;
    context_.parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) body(row);
    });
  }

  void add_quarters_of_left() const {
    const int64_t upper = product_.half_rows();
    const int64_t depth = product_.half_depth();
    for_rows(upper, 4 * depth, [&](int64_t row) {
      const float* high = operands_.left + row * product_.left_row_stride;
      StrassenRow quarters = {.upper_left = high, .upper_right = high + depth};
      if (upper + row < product_.rows) {
        quarters.lower_left = high + upper * product_.left_row_stride;
        quarters.lower_right = quarters.lower_left + depth;
      }
      for (size_t sum = 0; sum < sums_.size(); ++sum) quarters.sums[sum] = sums_[sum].row(row);
      loops_.add_quarters(quarters, depth);
    });
  }

  // to = left * factor + the elements of `added`.
  void multiply(const Quarter& quarter, const float* left, int64_t left_stride, Factor factor,
                const Rows* added, const Rows& to, const GemmEpilogue& epilogue = {}) const {
    if (quarter.rows == 0 || quarter.columns == 0) return;
    const int64_t depth = product_.half_depth();
    const int64_t factor_floats = packed_floats({depth, product_.half_columns()});
    PackedOperands operands = {
        .left = left,
        .right = operands_.right + static_cast<int64_t>(factor) * factor_floats,
        .to = to.at,
        .epilogue = epilogue};
    if (added != nullptr) {
      operands.epilogue.addend = added->at;
      operands.epilogue.addend_row_stride = added->stride;
      operands.epilogue.addend_column_stride = 1;
    }
    run_packed_product(context_,
                       {.rows = quarter.rows,
                        .columns = quarter.columns,
                        .depth = depth,
                        .left_row_stride = left_stride,
                        .to_row_stride = to.stride},
                       threads_, operands, nullptr);
  }

  // Writes a quarter of the result: left * factor + base + bias + addend.
  void finish(const Quarter& quarter, const float* left, int64_t left_stride, Factor factor,
              const Rows& base) const {
    const Rows to = result(quarter);
    const bool has_addend = operands_.addend != nullptr;
    if (has_addend) {
      for_rows(quarter.rows, quarter.columns, [&](int64_t row) {
        loops_.add({.first = base.row(row), .second = addend(quarter, row), .to = to.row(row)},
                   quarter.columns);
      });
    }
    const float* bias = operands_.bias == nullptr ? nullptr : operands_.bias + quarter.column;
    multiply(quarter, left, left_stride, factor, has_addend ? &to : &base, to,
             {.bias = bias, .activation = operands_.activation});
  }

  const float* addend(const Quarter& quarter, int64_t row) const {
    if (operands_.addend == nullptr) return nullptr;
    return operands_.addend + (quarter.row + row) * product_.columns + quarter.column;
  }

  // The quarter that needs no further product is y + z; the last one begins with x + z.
  void add_rest() const {
    const int64_t upper = product_.half_rows();
    const int64_t first = product_.half_columns();
    const Quarter last = {product_.rows - upper, product_.columns - first, upper, first};
    const Rows to = result(last);
    for_rows(upper, 2 * first, [&](int64_t row) {
      if (row < last.rows) {
        loops_.add({.first = y_.row(row),
                    .second = z_.row(row),
                    .bias = operands_.bias == nullptr ? nullptr : operands_.bias + first,
                    .addend = addend(last, row),
                    .to = to.row(row),
                    .activation = operands_.activation},
                   last.columns);
      }
      loops_.add({.first = x_.row(row), .second = z_.row(row), .to = x_.row(row)}, first);
    });
  }

  RunContext& context_;
  const StrassenProduct& product_;
  int64_t threads_;
  const StrassenOperands& operands_;
  StrassenLoops loops_;
  std::array<Rows, 4> sums_;
  Rows x_;
  Rows y_;
  Rows z_;
};

}  // namespace

int64_t StrassenProduct::half_columns() const {
  const int64_t panel = find_gemm_loops().panel;
  return divide_up(divide_up(columns, 2), panel) * panel;
}

bool admits_strassen(const plugin::ProposeContext& context, const StrassenProduct& product) {
  return context.options().precision != TESSERA_PRECISION_FLOAT32 && product.rows >= kMinRows &&
         product.depth >= kMinDepth && product.depth % 2 == 0 && product.columns >= kMinColumns;
}

int64_t strassen_workspace_bytes(const StrassenProduct& product) {
  return product.half_rows() * (4 * product.half_depth() + 3 * product.half_columns()) *
         kFloatBytes;
}

void run_strassen(RunContext& context, const StrassenProduct& product, int64_t threads,
                  const StrassenOperands& operands, void* workspace) {
  StrassenRun(context, product, threads, operands, static_cast<float*>(workspace)).run();
}

plugin::Pack strassen_pack(const PanelSource& source) {
  const StrassenProduct product = {.columns = source.columns, .depth = source.depth};
  const int64_t depth = product.half_depth();
  const int64_t columns = product.half_columns();
  plugin::Pack pack;
  pack.id = "strassen_" + panels_pack(source).id;
  pack.bytes = static_cast<int64_t>(kFactors) * packed_floats({depth, columns}) * kFloatBytes;
  pack.pack = [=](RunContext& context, const Buffer& from, void* to) {
    auto* target = static_cast<float*>(to);
    std::vector<float> factor(static_cast<size_t>(depth * columns));
    for (const std::array<float, 4>& signs : kSumsOfQuarters) {
      std::fill(factor.begin(), factor.end(), 0.0F);
      for (int64_t quarter = 0; quarter < 4; ++quarter) {
        const float sign = signs[static_cast<size_t>(quarter)];
        if (sign == 0) continue;
        const int64_t first = quarter % 2 * columns;
        const int64_t count = std::min(columns, source.columns - first);
        const float* values = from.as<const float>() + quarter / 2 * depth * source.depth_stride +
                              first * source.column_stride;
        for (int64_t row = 0; row < depth; ++row) {
          for (int64_t column = 0; column < count; ++column) {
            factor[static_cast<size_t>(row * columns + column)] +=
                sign * values[row * source.depth_stride + column * source.column_stride];
          }
        }
      }
      pack_panels(context, {.depth = depth, .columns = columns, .depth_stride = columns},
                  factor.data(), target);
      target += packed_floats({depth, columns});
    }
  };
  return pack;
}

}  // namespace tessera::native
