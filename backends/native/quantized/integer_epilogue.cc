#include "quantized/integer_epilogue.h"

#include <algorithm>
#include <cstring>

namespace tessera::native {

using plugin::Buffer;

namespace {

constexpr auto kColumnBytes = static_cast<int64_t>(sizeof(float));
constexpr int64_t kColumnArrays = 4;

int32_t byte_of(const Buffer& buffer, int64_t index) {
  return buffer.data_type == TESSERA_INT8 ? buffer.as<const int8_t>()[index]
                                          : buffer.as<const uint8_t>()[index];
}

class EpilogueMaker {
 public:
  EpilogueMaker(const IntegerWork& work, std::span<const Buffer> inputs, const RightPanels& panels,
                float left_scale, void* memory)
      : work_(work), inputs_(inputs), panels_(panels), left_scale_(left_scale) {
    const int64_t columns = panels.count * panels.padded_columns();
    terms_ = static_cast<int32_t*>(memory);
    zeros_ = terms_ + columns;
    factors_ = reinterpret_cast<float*>(zeros_ + columns);
    offsets_ = factors_ + columns;
    if (!work.constants && work.to == SumsTo::Bytes) {
      scale_ = *input(kScale).as<const float>();
    }
  }

  IntegerEpilogue make(const void* packed, int32_t left_zero) const {
    const auto* from = static_cast<const uint8_t*>(packed);
    for (int64_t panel = 0; panel < panels_.count * panels_.panels; ++panel) {
      const int64_t at = panel * panels_.panel;
      std::memcpy(terms_ + at, from, static_cast<size_t>(panels_.panel * kColumnBytes));
      from += panels_.panel_bytes();
      const int64_t first = panel % panels_.panels * panels_.panel;
      const int64_t matrix = panel / panels_.panels;
      for (int64_t lane = 0; lane < panels_.panel; ++lane) {
        // The padding repeats the last column.
        const int64_t column = std::min(first + lane, panels_.columns - 1);
        set_column(column + (work_.has_columns_by_matrix ? matrix * panels_.columns : 0), at + lane,
                   left_zero);
      }
    }
    return epilogue();
  }

 private:
  const Buffer& input(IntegerRole role) const { return inputs_[work_.ports.of(role)]; }

  IntegerEpilogue epilogue() const {
    IntegerEpilogue made;
    made.to = work_.to;
    made.terms = terms_;
    made.low = work_.low;
    made.high = work_.high;
    made.lowest = work_.lowest;
    made.highest = work_.highest;
    made.is_signed = work_.is_result_signed;
    if (work_.has_right_zeros()) made.right_zeros = zeros_;
    if (work_.to != SumsTo::Integers) made.factors = factors_;
    if (work_.has_offsets()) made.offsets = offsets_;
    if (work_.constants) {
      made.zero = work_.constants->zero;
    } else if (work_.to == SumsTo::Bytes) {
      made.zero = byte_of(input(kZero), 0);
      // Bytes are those of the exact product of sum and scale.
      made.exact.scales = factors_;
      if (work_.has_wide_scales) {
        const double left = *input(kLeftScale).as<const float>();
        made.exact = {.scales = offsets_, .factor = work_.alpha * left, .divisor = scale_};
      }
    }
    return made;
  }

  // `index` is that among scales, zero points and biases, `at` that in the arrays.
  void set_column(int64_t index, int64_t at, int32_t left_zero) const {
    // Sums wrap around, as they do in the loops.
    uint32_t term = 0U - static_cast<uint32_t>(terms_[at]) * static_cast<uint32_t>(left_zero);
    int32_t zero = 0;
    if (work_.constants) {
      set_constants(index, at, term, zero);
    } else {
      set_from_inputs(index, at, term, zero);
    }
    terms_[at] = static_cast<int32_t>(term);
    // Unsigned elements are packed minus 128.
    zeros_[at] = zero - (work_.is_right_signed ? 0 : 128);
  }

  void set_constants(int64_t index, int64_t at, uint32_t& term, int32_t& zero) const {
    const IntegerConstants& constants = *work_.constants;
    const auto pick = [&](const auto& list) {
      return list[list.size() == 1 ? 0 : static_cast<size_t>(index)];
    };
    if (!constants.bias.empty()) term += static_cast<uint32_t>(pick(constants.bias));
    if (!constants.right_zeros.empty()) zero = pick(constants.right_zeros);
    if (!constants.factors.empty()) factors_[at] = pick(constants.factors);
    if (!constants.offsets.empty()) offsets_[at] = pick(constants.offsets);
  }

  void set_from_inputs(int64_t index, int64_t at, uint32_t& term, int32_t& zero) const {
    const auto of = [&](IntegerRole role) { return input(role).elements() == 1 ? 0 : index; };
    const auto real = [&](IntegerRole role) { return input(role).as<const float>()[of(role)]; };
    if (work_.ports.has(kIntegerBias)) {
      term += static_cast<uint32_t>(input(kIntegerBias).as<const int32_t>()[of(kIntegerBias)]);
    }
    if (work_.ports.has(kRightZero)) zero = byte_of(input(kRightZero), of(kRightZero));
    if (work_.to == SumsTo::Integers) return;
    const float right = work_.ports.has(kRightScale) ? real(kRightScale) : 1;
    factors_[at] = left_scale_ * right / scale_;
    if (work_.ports.has(kRealBias)) offsets_[at] = real(kRealBias);
    // Bytes have no offsets here.
    if (work_.has_wide_scales && work_.to == SumsTo::Bytes) offsets_[at] = right;
  }

  const IntegerWork& work_;
  std::span<const Buffer> inputs_;
  const RightPanels& panels_;
  float left_scale_;
  float scale_ = 1;  // of the result
  int32_t* terms_;
  int32_t* zeros_;
  float* factors_;
  float* offsets_;
};

}  // namespace

bool IntegerWork::has_right_zeros() const {
  if (has_centred_right) return false;
  if (!is_right_signed) return true;
  if (!constants) return ports.has(kRightZero);
  return std::ranges::any_of(constants->right_zeros, [](int32_t zero) { return zero != 0; });
}

bool IntegerWork::has_offsets() const {
  return constants ? !constants->offsets.empty() : ports.has(kRealBias);
}

int32_t IntegerWork::left_zero(std::span<const Buffer> inputs) const {
  if (constants) return constants->left_zero;
  return ports.has(kLeftZero) ? byte_of(inputs[ports.of(kLeftZero)], 0) : 0;
}

float IntegerWork::left_scale(std::span<const Buffer> inputs) const {
  return ports.has(kLeftScale) ? alpha * *inputs[ports.of(kLeftScale)].as<const float>() : alpha;
}

int64_t epilogue_bytes(const RightPanels& panels) {
  return kColumnArrays * panels.count * panels.padded_columns() * kColumnBytes;
}

IntegerEpilogue prepare_epilogue(const IntegerWork& work, std::span<const Buffer> inputs,
                                 const RightPanels& panels, const void* packed, int32_t left_zero,
                                 float left_scale, void* memory) {
  return EpilogueMaker(work, inputs, panels, left_scale, memory).make(packed, left_zero);
}

}  // namespace tessera::native
