#include "resize/separable.h"

#include <algorithm>
#include <cstring>

#include "resize/resize_kernels.h"

namespace tessera::native {

using plugin::ResizeAxis;
using plugin::RunContext;

namespace {

// The minimum number of elements that one thread computes.
constexpr int64_t kResizeGrain = 8 * 1024;
// With fewer contiguous elements, whole lines are gathered.
constexpr int64_t kMinInner = 16;

// The axes that change, in the order of their passes.
class PassOrder {
 public:
  PassOrder(const ResampleOptions& options, std::span<const ResizeAxis> axes) {
    const auto add = [&](size_t axis, bool is_shrinking) {
      const bool shrinks = axes[axis].output < axes[axis].input;
      if (shrinks != is_shrinking || is_unchanged(options, axes[axis])) return;
      order_[count_++] = axis;
    };
    for (size_t axis = 0; axis < axes.size(); ++axis) add(axis, true);
    // The last axis is the most expensive one, so it comes while the tensor is small.
    for (size_t axis = axes.size(); axis-- > 0;) add(axis, false);
  }

  std::span<const size_t> order() const { return std::span(order_).first(count_); }

 private:
  std::array<size_t, SeparablePlan::kMaxAxes> order_ = {};
  size_t count_ = 0;
};

class SeparableRun {
 public:
  SeparableRun(const ResampleOptions& options, const SeparablePlan& plan)
      : plan_(plan), outside_(options.extrapolation_value), loops_(find_resize_loops()) {}

  void run(RunContext& context, const float* from, float* to, float* scratch) const {
    if (plan_.slots == 1 && plan_.planes < context.threads()) {
      for (int64_t plane = 0; plane < plan_.planes; ++plane) {
        run_plane(plane, from, to, scratch,
                  [&](const ResamplePass& pass, const float* source, float* target) {
                    share_lines(context, pass, source, target);
                  });
      }
      return;
    }
    context.parallel_for(plan_.slots, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        const int64_t last = (slot + 1) * plan_.planes / plan_.slots;
        for (int64_t plane = slot * plan_.planes / plan_.slots; plane < last; ++plane) {
          run_plane(plane, from, to, scratch + slot * 2 * plan_.scratch_elements,
                    [&](const ResamplePass& pass, const float* source, float* target) {
                      run_lines(pass, source, target, 0, pass.lines());
                    });
        }
      }
    });
  }

 private:
  template <class RunPass>
  void run_plane(int64_t plane, const float* from, float* to, float* scratch,
                 const RunPass& run_pass) const {
    const float* source = from + plane * plan_.input_elements;
    to += plane * plan_.output_elements;
    if (plan_.pass_count == 0) {
      std::memcpy(to, source, static_cast<size_t>(plan_.output_elements) * sizeof(float));
      return;
    }
    for (size_t index = 0; index < plan_.pass_count; ++index) {
      float* between = scratch + (index % 2 == 0 ? 0 : plan_.scratch_elements);
      float* target = index + 1 == plan_.pass_count ? to : between;
      run_pass(plan_.passes[index], source, target);
      source = target;
    }
  }

  void share_lines(RunContext& context, const ResamplePass& pass, const float* source,
                   float* target) const {
    const int64_t line = pass.output_elements() / std::max<int64_t>(1, pass.lines());
    const int64_t grain = std::max<int64_t>(1, kResizeGrain / std::max<int64_t>(1, line));
    context.parallel_for(pass.lines(), grain, [&](int64_t begin, int64_t end) {
      run_lines(pass, source, target, begin, end);
    });
  }

  void run_lines(const ResamplePass& pass, const float* from, float* to, int64_t begin,
                 int64_t end) const {
    const Taps& taps = pass.taps;
    const int64_t input = pass.axis.input * pass.inner;
    if (pass.is_gathered) {
      const int64_t count = pass.table_lines();
      for (int64_t line = begin; line < end; ++line) {
        float* target = to + line * count;
        loops_.gather(from + line * input, taps.sources, taps.weights, taps.count, target, count);
        for (int64_t index = 0; index < count; ++index) {
          if (taps.is_outside[index] != 0) target[index] = outside_;
        }
      }
      return;
    }
    for (int64_t line = begin; line < end; ++line) {
      const int64_t index = line % pass.axis.output;
      float* target = to + line * pass.inner;
      if (taps.is_outside[index] != 0) {
        std::fill_n(target, pass.inner, outside_);
        continue;
      }
      loops_.blend(from + line / pass.axis.output * input, pass.inner,
                   taps.sources + index * taps.count, taps.weights + index * taps.count, taps.count,
                   target, pass.inner);
    }
  }

  const SeparablePlan& plan_;
  float outside_;  // for extrapolated elements
  ResizeLoops loops_;
};

}  // namespace

int64_t SeparablePlan::scratch_bytes() const {
  return 2 * scratch_elements * slots * static_cast<int64_t>(sizeof(float));
}

int64_t SeparablePlan::most_entries() const {
  int64_t most = 0;
  for (const ResamplePass& pass : std::span(passes).first(pass_count)) {
    most = std::max(most, pass.taps.count * pass.table_lines());
  }
  return most;
}

int64_t SeparablePlan::table_bytes() const {
  int64_t bytes = 0;
  for (const ResamplePass& pass : std::span(passes).first(pass_count)) {
    constexpr auto kEntryBytes = static_cast<int64_t>(sizeof(int32_t) + sizeof(float));
    bytes += pass.table_lines() * (pass.taps.count * kEntryBytes + 1);
  }
  return bytes;
}

void SeparablePlan::fill_tables(const ResampleOptions& options, std::byte* memory) {
  const std::span<ResamplePass> used = std::span(passes).first(pass_count);
  // The arrays of bytes come last, so that all are aligned.
  for (ResamplePass& pass : used) {
    const int64_t entries = pass.taps.count * pass.table_lines();
    pass.taps.sources = reinterpret_cast<int32_t*>(memory);
    pass.taps.weights = reinterpret_cast<float*>(pass.taps.sources + entries);
    memory = reinterpret_cast<std::byte*>(pass.taps.weights + entries);
  }
  for (ResamplePass& pass : used) {
    pass.taps.is_outside = reinterpret_cast<uint8_t*>(memory);
    memory += pass.table_lines();
    write_taps(options, pass.axis, pass.is_gathered ? pass.inner : 0, pass.taps);
  }
}

SeparablePlan separable_plan(const ResampleOptions& options, std::span<const ResizeAxis> axes,
                             int64_t threads) {
  SeparablePlan plan;
  while (!axes.empty() && is_unchanged(options, axes.front())) {
    plan.planes *= axes.front().input;
    axes = axes.subspan(1);
  }
  std::array<int64_t, SeparablePlan::kMaxAxes> dims = {};  // after the passes before
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    dims[axis] = axes[axis].input;
    plan.input_elements *= axes[axis].input;
    plan.output_elements *= axes[axis].output;
  }
  const PassOrder passes(options, axes);
  for (const size_t which : passes.order()) {
    ResamplePass& pass = plan.passes[plan.pass_count++];
    pass.axis = axes[which];
    for (size_t axis = 0; axis < which; ++axis) pass.outer *= dims[axis];
    for (size_t axis = which + 1; axis < axes.size(); ++axis) pass.inner *= dims[axis];
    dims[which] = pass.axis.output;
    pass.taps.count = tap_count(options, pass.axis);
    pass.is_gathered = pass.inner < kMinInner;
  }
  for (size_t index = 0; index + 1 < plan.pass_count; ++index) {
    plan.scratch_elements = std::max(plan.scratch_elements, plan.passes[index].output_elements());
  }
  // Buffers are aligned to cache lines.
  plan.scratch_elements = (plan.scratch_elements + 15) / 16 * 16;
  const int64_t worth = std::max<int64_t>(1, plan.planes * plan.output_elements / kResizeGrain);
  if (plan.planes >= threads) {
    plan.slots = std::clamp<int64_t>(threads, 1, std::min(worth, plan.planes));
  }
  return plan;
}

void run_separable(RunContext& context, const ResampleOptions& options, const SeparablePlan& plan,
                   const float* from, float* to, float* scratch) {
  SeparableRun(options, plan).run(context, from, to, scratch);
}

}  // namespace tessera::native
