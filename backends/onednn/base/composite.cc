#include "base/chain.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "base/accuracy.h"

namespace tessera::onednn {

using dnnl::algorithm;
using plugin::Graph;
using plugin::Node;
using plugin::Value;

namespace {

// Exporters round these constants to float32.
constexpr double kConstantTolerance = 1e-6;

// One decomposition of a function. Its `#` are constants of one element, in the order in which the
// steps read them, which must be close to `constants`. `x` is the argument.
struct Form {
  std::string pattern;
  Eltwise function;
  std::vector<double> constants;
};

constexpr Eltwise kSwish = {algorithm::eltwise_swish, 1, 0};
constexpr Eltwise kMish = {algorithm::eltwise_mish, 0, 0};
constexpr Eltwise kGeluErf = {algorithm::eltwise_gelu_erf, 0, 0};
constexpr Eltwise kGeluTanh = {algorithm::eltwise_gelu_tanh, 0, 0};
constexpr Eltwise kHardSwish = {algorithm::eltwise_hardswish, 1.0F / 6, 0.5F};
constexpr Eltwise kHardSigmoid = {algorithm::eltwise_hardsigmoid, 1.0F / 6, 0.5F};
constexpr double kRootTwo = 1.4142135623730951;
constexpr double kInverseRootTwo = 0.7071067811865476;
constexpr double kTanhFactor = 0.7978845608028654;  // sqrt(2 / pi)
constexpr double kTanhCube = 0.044715;
constexpr double kSixth = 1.0 / 6;

std::vector<Form> gelu_forms() {
  return {
      {"a = Div(x, #); b = Erf(a); c = Add(b, #); d = Mul(x, c); Mul(d, #)",
       kGeluErf,
       {kRootTwo, 1, 0.5}},
      {"a = Mul(x, #); b = Erf(a); c = Add(b, #); d = Mul(x, c); Mul(d, #)",
       kGeluErf,
       {kInverseRootTwo, 1, 0.5}},
      {"a = Div(x, #); b = Erf(a); c = Add(b, #); d = Mul(x, #); Mul(d, c)",
       kGeluErf,
       {kRootTwo, 1, 0.5}},
      {"a = Mul(x, #); b = Erf(a); c = Add(b, #); d = Mul(x, #); Mul(d, c)",
       kGeluErf,
       {kInverseRootTwo, 1, 0.5}},
      {"a = Div(x, #); b = Erf(a); c = Add(b, #); d = Mul(c, #); Mul(x, d)",
       kGeluErf,
       {kRootTwo, 1, 0.5}},
      {"a = Mul(x, #); b = Erf(a); c = Add(b, #); d = Mul(c, #); Mul(x, d)",
       kGeluErf,
       {kInverseRootTwo, 1, 0.5}},
      {"a = Pow(x, #); b = Mul(a, #); c = Add(x, b); d = Mul(c, #); e = Tanh(d); f = Add(e, #); "
       "g = Mul(x, #); Mul(g, f)",
       kGeluTanh,
       {3, kTanhCube, kTanhFactor, 1, 0.5}},
      {"a = Pow(x, #); b = Mul(a, #); c = Add(x, b); d = Mul(c, #); e = Tanh(d); f = Add(e, #); "
       "g = Mul(x, f); Mul(g, #)",
       kGeluTanh,
       {3, kTanhCube, kTanhFactor, 1, 0.5}},
      {"a = Mul(x, x); h = Mul(a, x); b = Mul(h, #); c = Add(x, b); d = Mul(c, #); e = Tanh(d); "
       "f = Add(e, #); g = Mul(x, #); Mul(g, f)",
       kGeluTanh,
       {kTanhCube, kTanhFactor, 1, 0.5}},
  };
}

// Forms of clipping from 0 to 6, with bounds as inputs or, in old models, as attributes.
std::vector<Form> hard_forms() {
  std::vector<Form> forms;
  const auto add = [&](const std::string& steps, const Eltwise& function, double last) {
    forms.push_back({"a = Add(x, #); b = Clip(a, #, #); " + steps, function, {3, 0, 6, last}});
    forms.push_back({"a = Add(x, #); b = Clip{min=0, max=6}(a); " + steps, function, {3, last}});
  };
  add("c = Div(b, #); Mul(x, c)", kHardSwish, 6);
  add("c = Mul(b, #); Mul(x, c)", kHardSwish, kSixth);
  add("c = Mul(x, b); Div(c, #)", kHardSwish, 6);
  add("c = Mul(x, b); Mul(c, #)", kHardSwish, kSixth);
  add("Div(b, #)", kHardSigmoid, 6);
  add("Mul(b, #)", kHardSigmoid, kSixth);
  return forms;
}

std::vector<Form> all_forms() {
  std::vector<Form> forms = {
      {"a = Sigmoid(x); Mul(x, a)", kSwish, {}},
      {"a = HardSigmoid(x); Mul(x, a)", kHardSwish, {}},
      {"a = Softplus(x); b = Tanh(a); Mul(x, b)", kMish, {}},
  };
  for (std::vector<Form> more : {gelu_forms(), hard_forms()}) {
    forms.insert(forms.end(), more.begin(), more.end());
  }
  return forms;
}

// The outside operands of a match: numbers in the order of its nodes, and one value.
struct OutsideOperands {
  std::vector<double> numbers;
  int32_t variable = -1;
  bool is_one_variable = true;
};

OutsideOperands outside_operands(const Graph& graph, const std::vector<int32_t>& nodes) {
  OutsideOperands found;
  for (const int32_t id : nodes) {
    const Node node = graph.node(id);
    for (size_t index = 0; index < node.input_count(); ++index) {
      const Value value = node.input(index);
      if (!value.is_present()) continue;
      if (const std::optional<double> number = constant_scalar(value)) {
        found.numbers.push_back(*number);
      } else if (std::find(nodes.begin(), nodes.end(), value.producer()) == nodes.end()) {
        if (found.variable >= 0 && found.variable != value.id()) found.is_one_variable = false;
        found.variable = value.id();
      }
    }
  }
  return found;
}

bool are_close(const std::vector<double>& found, const std::vector<double>& expected) {
  return std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                    [](double left, double right) {
                      return std::abs(left - right) <= kConstantTolerance * std::abs(right);
                    });
}

std::optional<Composite> composite_of(const Graph& graph, const Form& form,
                                      std::vector<int32_t> nodes) {
  const OutsideOperands around = outside_operands(graph, nodes);
  if (around.variable < 0 || !around.is_one_variable) return std::nullopt;
  if (!are_close(around.numbers, form.constants)) return std::nullopt;
  const Value input = graph.value(around.variable);
  const Value output = graph.node(nodes.back()).output(0);
  if (input.type() != output.type() || !input.type().is_known()) return std::nullopt;
  Composite composite = {form.function, input.id(), output.id(), {}};
  const Node first = graph.node(nodes.front());
  if (first.op() == "HardSigmoid") {
    composite.function.alpha = first.attributes().get_float("alpha");
    composite.function.beta = first.attributes().get_float("beta");
  }
  std::sort(nodes.begin(), nodes.end());
  composite.nodes = std::move(nodes);
  return composite;
}

}  // namespace

std::vector<Composite> find_composites(const Graph& graph, int32_t nan) {
  std::vector<Composite> composites;
  static const std::vector<Form> kForms = all_forms();
  for (const Form& form : kForms) {
    if (nan == TESSERA_NAN_EXACT && keeping_nan(form.function).empty()) continue;
    if (!explain_inexact(form.function).empty()) continue;
    for (std::vector<int32_t>& nodes : graph.match(form.pattern)) {
      std::optional<Composite> found = composite_of(graph, form, std::move(nodes));
      if (found) composites.push_back(*std::move(found));
    }
  }
  std::stable_sort(composites.begin(), composites.end(), [](const auto& left, const auto& right) {
    if (left.input != right.input) return left.input < right.input;
    return left.nodes.size() > right.nodes.size();
  });
  return composites;
}

}  // namespace tessera::onednn
