// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "matmul/block_product_kernels.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "matmul/block_product_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "base/partial_vector.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

using BlockTag = hn::ScalableTag<float>;
using BlockVector = hn::Vec<BlockTag>;
using WordTag = hn::RebindToUnsigned<BlockTag>;
using WordVector = hn::Vec<WordTag>;

HWY_INLINE int64_t block_lanes() { return static_cast<int64_t>(hn::Lanes(BlockTag())); }

// The vectors of a panel, as those of gemm_kernels.cc.
#if HWY_CAP_GE512
constexpr int kPanelVectors = 4;
#else
constexpr int kPanelVectors = 2;
#endif

// The most rows whose sums are held in registers.
constexpr int kMostRows = 4;

constexpr int kMantissaBits = 23;
constexpr int kWordBits = 32;

// Weights are turned into numbers at several positions of a word, which is then shifted: bits at
// position p of the mantissa of a float32 with the exponent 23 - p are 2^(23 - p) plus the weight,
// and the difference to 2^(23 - p) plus the zero point is exact.
template <int kBits>
struct WordForm {
  static constexpr int kWeights = kWordBits / kBits;
  static constexpr int kPositions = kBits == 8 ? 2 : 4;
  static constexpr int kShift = kPositions * kBits;

  static constexpr uint32_t mask(int position) {
    return ((uint32_t{1} << kBits) - 1) << (position * kBits);
  }
  static constexpr float base(int position) {
    return static_cast<float>(uint32_t{1} << (kMantissaBits - position * kBits));
  }
};

// 2^(23 - p) plus the zero points of a block, for each position; and zero points that are no
// integers.
template <int kBits, BlockZeros kZeros>
struct BlockOffsets {
  static constexpr bool kHasOne = kZeros != BlockZeros::Bytes;  // for all columns
  static constexpr int kVectors = kHasOne ? 1 : kPanelVectors;
  BlockVector offsets[kVectors][WordForm<kBits>::kPositions];
  BlockVector numbers[kPanelVectors];

  HWY_INLINE explicit BlockOffsets(float zero) {
    for (int position = 0; position < WordForm<kBits>::kPositions; ++position) {
      for (auto& each : offsets) {
        each[position] = hn::Set(BlockTag(), WordForm<kBits>::base(position) + zero);
      }
    }
    for (BlockVector& each : numbers) each = hn::Zero(BlockTag());
  }

  // The zero points of a block: those of the first column of the panel are at `from`.
  HWY_INLINE void read(const void* from) {
    const BlockTag d;
    const int64_t lanes = block_lanes();
    if constexpr (kZeros == BlockZeros::Bytes) {
      const hn::Rebind<uint8_t, BlockTag> bytes;
      const hn::RebindToSigned<BlockTag> integers;
      for (int vector = 0; vector < kPanelVectors; ++vector) {
        const auto some = hn::LoadU(bytes, static_cast<const uint8_t*>(from) + vector * lanes);
        const BlockVector zero = hn::ConvertTo(d, hn::PromoteTo(integers, some));
        for (int position = 0; position < WordForm<kBits>::kPositions; ++position) {
          offsets[vector][position] = hn::Add(zero, hn::Set(d, WordForm<kBits>::base(position)));
        }
      }
    } else if constexpr (kZeros == BlockZeros::Numbers) {
      for (int vector = 0; vector < kPanelVectors; ++vector) {
        numbers[vector] = hn::LoadU(d, static_cast<const float*>(from) + vector * lanes);
      }
    }
  }

  template <int kPosition>
  HWY_INLINE BlockVector weight(WordVector word, int vector) const {
    using Form = WordForm<kBits>;
    const WordTag words;
    const uint32_t base = std::bit_cast<uint32_t>(Form::base(kPosition));
    const WordVector bits =
        hn::OrAnd(hn::Set(words, base), word, hn::Set(words, Form::mask(kPosition)));
    const BlockVector number = hn::BitCast(BlockTag(), bits);
    const BlockVector whole = hn::Sub(number, offsets[kHasOne ? 0 : vector][kPosition]);
    return kZeros == BlockZeros::Numbers ? hn::Sub(whole, numbers[vector]) : whole;
  }
};

// The zero point if none is given; of numbers, it is subtracted with them.
template <int kBits, BlockZeros kZeros>
constexpr float default_zero() {
  return kZeros == BlockZeros::None ? static_cast<float>(1 << (kBits - 1)) : 0.0F;
}

constexpr int64_t zero_bytes(BlockZeros zeros) {
  return zeros == BlockZeros::None ? 0 : zeros == BlockZeros::Bytes ? 1 : int64_t{sizeof(float)};
}

// Calls visit(place, weights) for each of the weights of a word, in order; `place` is a constant,
// `weights` has a vector for each of the panel.
template <int kBits, BlockZeros kZeros, int kPlace = 0, class Visit>
HWY_INLINE void for_weights(const BlockOffsets<kBits, kZeros>& offsets,
                            WordVector (&words)[kPanelVectors], const Visit& visit) {
  using Form = WordForm<kBits>;
  if constexpr (kPlace < Form::kWeights) {
    constexpr int kPosition = kPlace % Form::kPositions;
    if constexpr (kPlace > 0 && kPosition == 0) {
      for (WordVector& word : words) word = hn::ShiftRight<Form::kShift>(word);
    }
    BlockVector weights[kPanelVectors];
    for (int vector = 0; vector < kPanelVectors; ++vector) {
      weights[vector] = offsets.template weight<kPosition>(words[vector], vector);
    }
    visit(std::integral_constant<int, kPlace>(), weights);
    for_weights<kBits, kZeros, kPlace + 1>(offsets, words, visit);
  }
}

HWY_INLINE void load_words(const uint32_t* from, WordVector (&words)[kPanelVectors]) {
  for (int vector = 0; vector < kPanelVectors; ++vector) {
    words[vector] = hn::LoadU(WordTag(), from + vector * block_lanes());
  }
}

// Sums of a block, kChains for each row and vector: those of few rows would wait for each other.
template <int kRows>
struct BlockSums {
  static constexpr int kChains = kRows == 1 ? 2 : 1;
  BlockVector sums[kRows][kPanelVectors][kChains];

  HWY_INLINE void clear() {
    for (auto& row : sums) {
      for (auto& vector : row) {
        for (BlockVector& sum : vector) sum = hn::Zero(BlockTag());
      }
    }
  }
  HWY_INLINE BlockVector total(int row, int vector) const {
    BlockVector result = sums[row][vector][0];
    for (int chain = 1; chain < kChains; ++chain) {
      result = hn::Add(result, sums[row][vector][chain]);
    }
    return result;
  }
};

// Adds the products of a word of each column.
template <int kBits, BlockZeros kZeros, int kRows>
HWY_INLINE void add_words(const BlockOffsets<kBits, kZeros>& offsets, const uint32_t* from,
                          const float* left, int64_t left_row_stride, BlockSums<kRows>& sums) {
  WordVector words[kPanelVectors];
  load_words(from, words);
  for_weights<kBits, kZeros>(
      offsets, words, [&](auto place, const BlockVector(&weights)[kPanelVectors]) HWY_ATTR {
        constexpr int kChain = place % BlockSums<kRows>::kChains;
        for (int row = 0; row < kRows; ++row) {
          const BlockVector factor = hn::Set(BlockTag(), left[row * left_row_stride + int{place}]);
          for (int vector = 0; vector < kPanelVectors; ++vector) {
            BlockVector& sum = sums.sums[row][vector][kChain];
            sum = hn::MulAdd(factor, weights[vector], sum);
          }
        }
      });
}

template <int kRows>
HWY_INLINE void store_totals(const BlockPart& part, int64_t row,
                             const BlockVector (&totals)[kRows][kPanelVectors]) {
  const BlockTag d;
  const int64_t lanes = block_lanes();
  float* to = part.to + row * part.to_row_stride;
  for (int line = 0; line < kRows; ++line, to += part.to_row_stride) {
    for (int vector = 0; vector < kPanelVectors; ++vector) {
      const int64_t count = std::min(lanes, part.columns - vector * lanes);
      if (count <= 0) break;
      BlockVector result = totals[line][vector];
      if (count == lanes) {
        if (part.bias != nullptr) {
          result = hn::Add(result, hn::LoadU(d, part.bias + vector * lanes));
        }
        hn::StoreU(result, d, to + vector * lanes);
      } else {
        if (part.bias != nullptr) {
          result = hn::Add(result, load_some(d, part.bias + vector * lanes, count));
        }
        store_some(result, d, to + vector * lanes, count);
      }
    }
  }
}

// kRows rows from `row` on.
template <int kBits, BlockZeros kZeros, int kRows>
HWY_NOINLINE void multiply_block_rows(const BlockPart& part, int64_t row) {
  using Form = WordForm<kBits>;
  const BlockTag d;
  const int64_t lanes = block_lanes();
  const int64_t panel = kPanelVectors * lanes;
  const float* left = part.left + row * part.left_row_stride;
  const uint32_t* words = part.words;
  const float* scales = part.scales;
  const auto* zeros = static_cast<const char*>(part.zeros);
  BlockOffsets<kBits, kZeros> offsets(default_zero<kBits, kZeros>());
  BlockVector totals[kRows][kPanelVectors];
  for (auto& line : totals) {
    for (BlockVector& total : line) total = hn::Zero(d);
  }
  for (int64_t first = 0; first < part.depth; first += part.block) {
    offsets.read(zeros);
    BlockSums<kRows> sums;
    sums.clear();
    const int64_t count = std::min(part.block, part.depth - first);
    int64_t done = 0;
    for (; done + Form::kWeights <= count; done += Form::kWeights, words += panel) {
      add_words(offsets, words, left + done, part.left_row_stride, sums);
    }
    if (done < count) {
      // Weights behind the last one are multiplied by zeros.
      float rest[kRows][Form::kWeights] = {};
      for (int line = 0; line < kRows; ++line) {
        std::copy_n(left + line * part.left_row_stride + done, count - done, rest[line]);
      }
      add_words(offsets, words, rest[0], Form::kWeights, sums);
    }
    for (int vector = 0; vector < kPanelVectors; ++vector) {
      const BlockVector scale = hn::LoadU(d, scales + vector * lanes);
      for (int line = 0; line < kRows; ++line) {
        totals[line][vector] = hn::MulAdd(sums.total(line, vector), scale, totals[line][vector]);
      }
    }
    left += part.block;
    scales += panel;
    zeros += panel * zero_bytes(kZeros);
  }
  store_totals(part, row, totals);
}

template <int kBits, BlockZeros kZeros>
void multiply_part(const BlockPart& part) {
  int64_t row = 0;
  for (; row + kMostRows <= part.rows; row += kMostRows) {
    multiply_block_rows<kBits, kZeros, kMostRows>(part, row);
  }
  if (part.rows - row == 3) return multiply_block_rows<kBits, kZeros, 3>(part, row);
  if (part.rows - row == 2) return multiply_block_rows<kBits, kZeros, 2>(part, row);
  if (part.rows - row == 1) multiply_block_rows<kBits, kZeros, 1>(part, row);
}

template <int kBits, BlockZeros kZeros>
void unpack_part(const BlockPart& part) {
  using Form = WordForm<kBits>;
  const BlockTag d;
  const int64_t lanes = block_lanes();
  const int64_t panel = kPanelVectors * lanes;
  const uint32_t* from = part.words;
  const float* scales = part.scales;
  const auto* zeros = static_cast<const char*>(part.zeros);
  BlockOffsets<kBits, kZeros> offsets(default_zero<kBits, kZeros>());
  for (int64_t first = 0; first < part.depth; first += part.block) {
    offsets.read(zeros);
    BlockVector scale[kPanelVectors];
    for (int vector = 0; vector < kPanelVectors; ++vector) {
      scale[vector] = hn::LoadU(d, scales + vector * lanes);
    }
    const int64_t end = std::min(first + part.block, part.depth);
    for (int64_t depth = first; depth < end; depth += Form::kWeights, from += panel) {
      WordVector words[kPanelVectors];
      load_words(from, words);
      float* to = part.to + depth * panel;
      const int64_t count = end - depth;
      for_weights<kBits, kZeros>(
          offsets, words, [&](auto place, const BlockVector(&weights)[kPanelVectors]) HWY_ATTR {
            if (int64_t{place} >= count) return;
            for (int vector = 0; vector < kPanelVectors; ++vector) {
              hn::StoreU(hn::Mul(weights[vector], scale[vector]), d,
                         to + int{place} * panel + vector * lanes);
            }
          });
    }
    scales += panel;
    zeros += panel * zero_bytes(kZeros);
  }
}

template <int kBits>
BlockLoops loops_with(BlockZeros zeros) {
  if (zeros == BlockZeros::Bytes) {
    return {multiply_part<kBits, BlockZeros::Bytes>, unpack_part<kBits, BlockZeros::Bytes>};
  }
  if (zeros == BlockZeros::Numbers) {
    return {multiply_part<kBits, BlockZeros::Numbers>, unpack_part<kBits, BlockZeros::Numbers>};
  }
  return {multiply_part<kBits, BlockZeros::None>, unpack_part<kBits, BlockZeros::None>};
}

BlockLoops block_loops_of(int64_t bits, BlockZeros zeros) {
  if (bits == 2) return loops_with<2>(zeros);
  if (bits == 4) return loops_with<4>(zeros);
  return loops_with<8>(zeros);
}

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(block_loops_of);

BlockLoops find_block_loops(int64_t bits, BlockZeros zeros) {
  return HWY_DYNAMIC_DISPATCH(block_loops_of)(bits, zeros);
}

}  // namespace tessera::native

#endif  // HWY_ONCE
