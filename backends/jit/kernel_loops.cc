#include "kernel_loops.h"

#include <string>

namespace tessera::jit {

using plugin::Failure;
using plugin::FusedGroup;
using plugin::LoopAxis;
using plugin::LoopNest;

namespace {

std::vector<int64_t> element_sizes(const FusedGroup& group) {
  std::vector<int64_t> sizes;
  for (const auto* accesses : {&group.operands, &group.results}) {
    for (const plugin::FusedAccess& access : *accesses) {
      sizes.push_back(plugin::element_bytes(access.data_type));
    }
  }
  return sizes;
}

class LoopDivider {
 public:
  explicit LoopDivider(const FusedGroup& group) : bytes_(element_sizes(group)) {
    loops_.shape.steps.resize(bytes_.size(), {Step::Zero, Step::Zero, Step::Zero, Step::Zero});
    loops_.strides.resize(bytes_.size() * kLoopCount, 0);
  }

  KernelLoops divide(const LoopNest& nest) {
    for (size_t access = 0; access < bytes_.size(); ++access) {
      loops_.offsets.push_back(nest.offsets[access] * bytes_[access]);
    }
    if (nest.axes.empty()) return std::move(loops_);
    loops_.shape.is_lane_reduced = nest.axes.back().is_reduced;
    put(kLane, nest.axes.back());
    std::vector<const LoopAxis*> kept;
    std::vector<const LoopAxis*> reduced;
    for (size_t axis = 0; axis + 1 < nest.axes.size(); ++axis) {
      (nest.axes[axis].is_reduced ? reduced : kept).push_back(&nest.axes[axis]);
    }
    put_reduced(reduced);
    if (kept.empty()) return std::move(loops_);
    put(kRow, *kept.back());
    kept.pop_back();
    if (kept.size() > kMaxOuterAxes) {
      throw Failure(TESSERA_UNSUPPORTED, "has more axes than compiled kernels have loops for");
    }
    for (const LoopAxis* axis : kept) {
      OuterAxis& outer = loops_.outer.emplace_back();
      outer.size = axis->size;
      for (size_t access = 0; access < bytes_.size(); ++access) {
        outer.strides.push_back(axis->strides[access] * bytes_[access]);
      }
    }
    return std::move(loops_);
  }

 private:
  void put(Loop loop, const LoopAxis& axis) {
    loops_.sizes[loop] = axis.size;
    for (size_t access = 0; access < bytes_.size(); ++access) {
      const int64_t stride = axis.strides[access];
      const bool is_one = loop == kLane && stride == 1;
      loops_.shape.steps[access][loop] = stride == 0 ? Step::Zero
                                         : is_one    ? Step::One
                                                     : Step::Other;
      loops_.strides[access * kLoopCount + loop] = stride * bytes_[access];
    }
  }

  void put_reduced(const std::vector<const LoopAxis*>& axes) {
    KernelShape& shape = loops_.shape;
    const size_t limit = shape.is_lane_reduced ? 1 : 2;
    if (axes.size() > limit) {
      throw Failure(TESSERA_UNSUPPORTED, "reduces over more than two separate axes");
    }
    if (axes.empty()) return;
    shape.has_reduced_inner = !shape.is_lane_reduced;
    shape.has_reduced_outer = shape.is_lane_reduced || axes.size() == 2;
    put(shape.has_reduced_inner ? kReducedInner : kReducedOuter, *axes.back());
    if (axes.size() == 2) put(kReducedOuter, *axes.front());
  }

  std::vector<int64_t> bytes_;
  KernelLoops loops_;
};

bool is_streaming(const FusedGroup& group, const KernelLoops& loops, int64_t cached_bytes) {
  double points = 1;
  for (const int64_t size : loops.sizes) points *= static_cast<double>(size);
  for (const OuterAxis& axis : loops.outer) points *= static_cast<double>(axis.size);
  double bytes = 0;
  for (size_t index = 0; index < group.results.size(); ++index) {
    if (loops.shape.steps[group.operands.size() + index][kLane] != Step::One) return false;
    bytes += points * static_cast<double>(plugin::element_bytes(group.results[index].data_type));
  }
  return bytes > static_cast<double>(cached_bytes);
}

}  // namespace

KernelLoops kernel_loops(const FusedGroup& group, const LoopNest& nest, int64_t cached_bytes) {
  if (group.operands.size() + group.results.size() > kMaxAccesses) {
    throw Failure(TESSERA_UNSUPPORTED,
                  "has more operands and results than one compiled kernel takes");
  }
  KernelLoops loops = LoopDivider(group).divide(nest);
  loops.shape.is_streaming = is_streaming(group, loops, cached_bytes);
  return loops;
}

}  // namespace tessera::jit
