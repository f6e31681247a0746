#include "resize/separable.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;

namespace {

// The minimum number of elements that one thread computes.
constexpr int64_t kResizeGrain = 8 * 1024;
// With fewer contiguous elements, whole lines are gathered.
constexpr int64_t kMinInner = 16;
// Larger tables are not worth their memory.
constexpr int64_t kMaxTableElements = int64_t{1} << 24;

// Transposes taps from output by output to tap by tap, for a line of output x inner elements.
Taps transposed_taps(const Taps& taps, int64_t output, int64_t inner) {
  Taps result;
  result.count = taps.count;
  for (int64_t tap = 0; tap < taps.count; ++tap) {
    for (int64_t position = 0; position < output; ++position) {
      const auto entry = static_cast<size_t>(position * taps.count + tap);
      for (int64_t index = 0; index < inner; ++index) {
        result.sources.push_back(taps.sources[entry] * static_cast<int32_t>(inner) +
                                 static_cast<int32_t>(index));
        result.weights.push_back(taps.weights[entry]);
      }
    }
  }
  for (const uint8_t is_outside : taps.is_outside) {
    result.is_outside.insert(result.is_outside.end(), static_cast<size_t>(inner), is_outside);
  }
  return result;
}

}  // namespace

std::vector<ResamplePass> resample_passes(const ResampleOptions& options,
                                          const std::vector<plugin::ResizeAxis>& axes) {
  std::vector<size_t> order;
  const auto add = [&](size_t axis, bool is_shrinking) {
    const bool shrinks = axes[axis].output < axes[axis].input;
    if (shrinks == is_shrinking && !is_unchanged(options, axes[axis])) order.push_back(axis);
  };
  for (size_t axis = 0; axis < axes.size(); ++axis) add(axis, true);
  // The last axis is the most expensive one, so it comes while the tensor is small.
  for (size_t axis = axes.size(); axis-- > 0;) add(axis, false);
  std::vector<int64_t> dims;
  for (const plugin::ResizeAxis& axis : axes) dims.push_back(axis.input);
  std::vector<ResamplePass> passes;
  for (const size_t which : order) {
    ResamplePass pass;
    pass.input = axes[which].input;
    pass.output = axes[which].output;
    pass.outside = options.extrapolation_value;
    for (size_t axis = 0; axis < which; ++axis) pass.outer *= dims[axis];
    for (size_t axis = which + 1; axis < dims.size(); ++axis) pass.inner *= dims[axis];
    dims[which] = pass.output;
    pass.taps = taps_of(options, axes[which]);
    pass.is_gathered = pass.inner < kMinInner;
    const int64_t entries = pass.taps.count * pass.output * (pass.is_gathered ? pass.inner : 1);
    if (entries > kMaxTableElements) {
      throw plugin::Failure(TESSERA_UNSUPPORTED, "its table of weights would be too large: " +
                                                     std::to_string(entries) + " entries");
    }
    if (pass.is_gathered) pass.taps = transposed_taps(pass.taps, pass.output, pass.inner);
    passes.push_back(std::move(pass));
  }
  return passes;
}

SeparableKernel::SeparableKernel(std::vector<ResamplePass> passes, int64_t planes,
                                 int64_t input_elements, int64_t output_elements, int32_t threads)
    : passes_(std::move(passes)),
      planes_(planes),
      input_elements_(input_elements),
      output_elements_(output_elements),
      loops_(find_resize_loops()) {
  for (size_t index = 0; index + 1 < passes_.size(); ++index) {
    scratch_elements_ = std::max(scratch_elements_, passes_[index].output_elements());
  }
  // Buffers are aligned to cache lines.
  scratch_elements_ = (scratch_elements_ + 15) / 16 * 16;
  const int64_t worth = std::max<int64_t>(1, planes * output_elements / kResizeGrain);
  if (planes >= threads) slots_ = std::clamp<int64_t>(threads, 1, std::min(worth, planes));
}

int64_t SeparableKernel::workspace_bytes() const {
  return 2 * scratch_elements_ * slots_ * static_cast<int64_t>(sizeof(float));
}

template <class RunPass>
void SeparableKernel::run_plane(const float* from, float* to, float* scratch,
                                const RunPass& run_pass) const {
  if (passes_.empty()) {
    std::memcpy(to, from, static_cast<size_t>(output_elements_) * sizeof(float));
    return;
  }
  const float* source = from;
  for (size_t index = 0; index < passes_.size(); ++index) {
    float* between = scratch + (index % 2 == 0 ? 0 : scratch_elements_);
    float* target = index + 1 == passes_.size() ? to : between;
    run_pass(passes_[index], source, target);
    source = target;
  }
}

void SeparableKernel::run(RunContext& context, std::span<const Buffer> inputs,
                          std::span<const Buffer> outputs) {
  const float* from = inputs[0].as<const float>();
  float* to = outputs[0].as<float>();
  auto* scratch = static_cast<float*>(context.workspace());
  if (slots_ == 1 && planes_ < context.threads()) {
    for (int64_t plane = 0; plane < planes_; ++plane) {
      run_plane(from + plane * input_elements_, to + plane * output_elements_, scratch,
                [&](const ResamplePass& pass, const float* source, float* target) {
                  const int64_t line = pass.output_elements() / std::max<int64_t>(1, pass.lines());
                  const int64_t grain =
                      std::max<int64_t>(1, kResizeGrain / std::max<int64_t>(1, line));
                  context.parallel_for(pass.lines(), grain, [&](int64_t begin, int64_t end) {
                    run_lines(pass, source, target, begin, end);
                  });
                });
    }
    return;
  }
  context.parallel_for(slots_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      const int64_t last = (slot + 1) * planes_ / slots_;
      for (int64_t plane = slot * planes_ / slots_; plane < last; ++plane) {
        run_plane(from + plane * input_elements_, to + plane * output_elements_,
                  scratch + slot * 2 * scratch_elements_,
                  [&](const ResamplePass& pass, const float* source, float* target) {
                    run_lines(pass, source, target, 0, pass.lines());
                  });
      }
    }
  });
}

void SeparableKernel::run_lines(const ResamplePass& pass, const float* from, float* to,
                                int64_t begin, int64_t end) const {
  const Taps& taps = pass.taps;
  if (pass.is_gathered) {
    const int64_t count = pass.output * pass.inner;
    for (int64_t line = begin; line < end; ++line) {
      float* target = to + line * count;
      loops_.gather(from + line * pass.input * pass.inner, taps.sources.data(), taps.weights.data(),
                    taps.count, target, count);
      for (int64_t index = 0; index < count; ++index) {
        if (taps.is_outside[static_cast<size_t>(index)] != 0) target[index] = pass.outside;
      }
    }
    return;
  }
  for (int64_t line = begin; line < end; ++line) {
    const int64_t index = line % pass.output;
    float* target = to + line * pass.inner;
    if (taps.is_outside[static_cast<size_t>(index)] != 0) {
      std::fill_n(target, pass.inner, pass.outside);
      continue;
    }
    loops_.blend(from + line / pass.output * pass.input * pass.inner, pass.inner,
                 taps.sources.data() + index * taps.count, taps.weights.data() + index * taps.count,
                 taps.count, target, pass.inner);
  }
}

}  // namespace tessera::native
