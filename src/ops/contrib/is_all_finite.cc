// IsAllFinite: whether no element of any input is infinite or NaN.
#include <atomic>
#include <cmath>

#include "ops/contrib/contrib.h"
#include "ops/convert_element.h"
#include "ops/domains.h"

namespace tessera::ops {
namespace {

void infer_is_all_finite(InferContext& context) {
  const Attributes& attributes = context.node().attributes;
  if (attributes.get_int("isinf_only") != 0 && attributes.get_int("isnan_only") != 0) {
    context.fail("expected at most one of 'isinf_only' and 'isnan_only', found both");
  }
  context.set_output(0, DataType::Bool, Shape{});
}

void run_is_all_finite(const KernelCall& call) {
  const bool is_inf_allowed = call.node.attributes.get_int("isnan_only") != 0;
  const bool is_nan_allowed = call.node.attributes.get_int("isinf_only") != 0;
  std::atomic<bool> is_finite = true;
  for (const TensorView& input : call.inputs) {
    visit_floating(input.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* elements = input.as<T>().data();
      const auto is_wanted = [&](double x) {
        return std::isfinite(x) || (std::isnan(x) ? is_nan_allowed : is_inf_allowed);
      };
      call.pool.parallel_for(input.elements, kElementGrain, [&](int64_t begin, int64_t end) {
        for (int64_t index = begin; index < end; ++index) {
          if (!is_wanted(to_double(elements[index]))) return is_finite.store(false);
        }
      });
    });
  }
  call.outputs[0].as<uint8_t>()[0] = is_finite ? 1 : 0;
}

}  // namespace

std::vector<Op> is_all_finite_ops() {
  return {{.name = "IsAllFinite",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"input", "V", Arity::Variadic}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"V", kFloatTypes}, {"T", kBoolType}},
           .attributes = {{"isinf_only", AttributeKind::Int, int64_t{0}},
                          {"isnan_only", AttributeKind::Int, int64_t{0}}},
           .infer = infer_is_all_finite,
           .flops = flops_per_input,
           .kernel = run_is_all_finite}};
}

}  // namespace tessera::ops
