#include "base/context.h"

#include <algorithm>

#include "base/chain.h"

namespace tessera::onednn {

namespace {

// The factor by which an implementation stays below the peak of a core, by a part of its name.
struct Slowness {
  std::string_view part;
  double factor;
};
constexpr Slowness kSlowness[] = {
    {"ref", 100}, {"simple", 10}, {"gemm", 2}, {"sse41", 4}, {"avx2", 2},
};

}  // namespace

const Chains& Context::chains() {
  if (chains_ == nullptr) chains_ = std::make_shared<const Chains>(graph(), options().nan);
  return *chains_;
}

const PrimitiveFacts& Context::facts(const std::string& key,
                                     const std::function<PrimitiveFacts()>& find) {
  const auto known = facts_.find(key);
  return known != facts_.end() ? known->second : facts_.emplace(key, find()).first->second;
}

dnnl::primitive_attr Context::attributes() const {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_fpmath_mode(options().precision == TESSERA_PRECISION_BFLOAT16
                                 ? dnnl::fpmath_mode::bf16
                                 : dnnl::fpmath_mode::strict);
  return attributes;
}

double Context::optimistic_seconds(double flops, double bytes,
                                   std::string_view implementation) const {
  double factor = 1;
  for (const Slowness& slowness : kSlowness) {
    if (implementation.find(slowness.part) != std::string_view::npos) {
      factor = std::max(factor, slowness.factor);
    }
  }
  return ProposeContext::optimistic_seconds(flops * factor, bytes);
}

}  // namespace tessera::onednn
