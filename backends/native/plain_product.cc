#include "plain_product.h"

#include <algorithm>
#include <type_traits>

#include "element_type.h"

namespace tessera::native {

using plugin::RunContext;

namespace {

constexpr int64_t kGrain = 16 * 1024;
constexpr int64_t kTile = 128;

template <class T>
void multiply(RunContext& context, const Product& product, const void* left, const void* right,
              const void* addend, void* to) {
  // Integers wrap around as narrower ones do.
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  const T* added = static_cast<const T*>(addend);
  const int64_t grain = kGrain / (product.depth * product.columns + 1) + 1;
  const auto multiply_row = [&](int64_t index, int64_t column, int64_t count) {
    const auto which = static_cast<size_t>(index / product.rows);
    const int64_t row = index % product.rows;
    const T* a = static_cast<const T*>(left) + product.left_starts[which] + row * product.left_row;
    const T* b = static_cast<const T*>(right) + column * product.right_column +
                 (product.has_one_right() ? 0 : product.right_starts[which]);
    Sum sums[kTile] = {};
    for (int64_t depth = 0; depth < product.depth; ++depth) {
      const auto factor = static_cast<Sum>(a[depth * product.left_depth]);
      const T* line = b + depth * product.right_depth;
      for (int64_t place = 0; place < count; ++place) {
        sums[place] += factor * static_cast<Sum>(line[place * product.right_column]);
      }
    }
    T* target = static_cast<T*>(to) + index * product.columns + column;
    for (int64_t place = 0; place < count; ++place) {
      Sum sum = sums[place];
      const T* other = added == nullptr ? nullptr
                                        : added + row * product.addend_row +
                                              (column + place) * product.addend_column;
      if constexpr (std::is_floating_point_v<T>) {
        sum *= product.alpha;
        if (other != nullptr) sum += *other * static_cast<T>(product.beta);
      } else if (other != nullptr) {
        sum += static_cast<Sum>(*other);
      }
      target[place] = static_cast<T>(sum);
    }
  };
  context.parallel_for(product.count * product.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      for (int64_t column = 0; column < product.columns; column += kTile) {
        multiply_row(index, column, std::min(kTile, product.columns - column));
      }
    }
  });
}

}  // namespace

PlainProduct find_plain_product(int32_t data_type) {
  return find_loop<double, int32_t, int64_t, uint32_t, uint64_t>(
      data_type, []<class T>() -> PlainProduct { return multiply<T>; });
}

}  // namespace tessera::native
