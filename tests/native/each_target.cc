#include "each_target.h"

#include <dlfcn.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "hwy/targets.h"

namespace tessera {
namespace {

using ChooseTargets = int64_t (*)(int64_t targets);

// The function that the plug-in exports; a process loads each file only once.
ChooseTargets find_choose_targets() {
  const std::string file = TESSERA_PLUGIN_FOLDER "/backend_native.so";
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const found =
      library == nullptr ? nullptr : ::dlsym(library, "tessera_native_choose_targets");
  if (found == nullptr) throw std::runtime_error(::dlerror());
  return reinterpret_cast<ChooseTargets>(found);
}

// Each instruction set alone. Those with 256 bits or more come once more with dot products of bytes
// (which HWY_AVX3_DL stands for), in case that the processor has these.
std::vector<int64_t> all_targets() {
  std::vector<int64_t> targets;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    targets.push_back(target);
    if (target == HWY_AVX2 || target == HWY_AVX3) targets.push_back(target | HWY_AVX3_DL);
  }
  return targets;
}

std::string name_of(int64_t target) {
  const bool has_dot_products = (target & HWY_AVX3_DL) != 0;
  return std::string(hwy::TargetName(target & ~int64_t{HWY_AVX3_DL})) +
         (has_dot_products ? " with dot products of bytes" : "");
}

}  // namespace

void for_each_target(const std::function<void()>& check) {
  const ChooseTargets choose_targets = find_choose_targets();
  for (const int64_t target : all_targets()) {
    SCOPED_TRACE(name_of(target));
    choose_targets(target);
    check();
  }
  choose_targets(0);
}

Totals check_each_target(uint64_t seed, int cases, const MakeCase& make,
                         const Tolerance& tolerance) {
  static const ChooseTargets choose_targets = find_choose_targets();
  const std::vector<int64_t> targets = all_targets();
  Totals all;
  const int share = cases / static_cast<int>(targets.size()) + 1;
  for (const int64_t target : targets) {
    SCOPED_TRACE(name_of(target));
    choose_targets(target);
    const Totals totals = check_cases("native", seed++, share, make, tolerance);
    all.answered += totals.answered;
    all.sparse += totals.sparse;
    all.candidates += totals.candidates;
    all.failures += totals.failures;
    all.largest = std::max(all.largest, totals.largest);
    for (const auto& [reason, count] : totals.refusals) all.refusals[reason] += count;
  }
  // Every processor has the fallback targets; the compiler flags decide which one is used.
  constexpr int64_t kRealTargets = ~(HWY_SCALAR | HWY_EMU128);
  EXPECT_EQ(choose_targets(0) & kRealTargets, hwy::SupportedTargets() & kRealTargets);
  return all;
}

}  // namespace tessera
