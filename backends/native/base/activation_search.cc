#include "base/activation_search.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Failure;
using plugin::Graph;
using plugin::Node;
using plugin::Value;

namespace {

// Exporters round these constants to float32.
constexpr double kTolerance = 1e-6;

// The `#` of a pattern are constants of one element, in the order in which its steps read them,
// which must be close to `constants`. `x` is the argument.
struct Form {
  const char* pattern;
  ActivationKind kind;
  std::vector<double> constants;
};

std::vector<Form> all_forms() {
  constexpr double kRootTwo = 1.4142135623730951;
  constexpr double kInverseRoot = 0.7071067811865476;
  constexpr double kCube = 0.044715;
  constexpr double kFactor = 0.7978845608028654;  // sqrt(2 / pi)
  std::vector<Form> forms = {{"a = Sigmoid(x); Mul(x, a)", ActivationKind::Silu, {}}};
  for (const char* pattern :
       {"a = Div(x, #); b = Erf(a); c = Add(b, #); d = Mul(x, c); Mul(d, #)",
        "a = Div(x, #); b = Erf(a); c = Add(b, #); d = Mul(x, #); Mul(d, c)",
        "a = Div(x, #); b = Erf(a); c = Add(b, #); d = Mul(c, #); Mul(x, d)"}) {
    forms.push_back({pattern, ActivationKind::Gelu, {kRootTwo, 1, 0.5}});
  }
  for (const char* pattern :
       {"a = Mul(x, #); b = Erf(a); c = Add(b, #); d = Mul(x, c); Mul(d, #)",
        "a = Mul(x, #); b = Erf(a); c = Add(b, #); d = Mul(x, #); Mul(d, c)",
        "a = Mul(x, #); b = Erf(a); c = Add(b, #); d = Mul(c, #); Mul(x, d)"}) {
    forms.push_back({pattern, ActivationKind::Gelu, {kInverseRoot, 1, 0.5}});
  }
  for (const char* pattern : {"a = Pow(x, #); b = Mul(a, #); c = Add(x, b); d = Mul(c, #); "
                              "e = Tanh(d); f = Add(e, #); g = Mul(x, #); Mul(g, f)",
                              "a = Pow(x, #); b = Mul(a, #); c = Add(x, b); d = Mul(c, #); "
                              "e = Tanh(d); f = Add(e, #); g = Mul(x, f); Mul(g, #)"}) {
    forms.push_back({pattern, ActivationKind::GeluTanh, {3, kCube, kFactor, 1, 0.5}});
  }
  forms.push_back(
      {"a = Mul(x, x); h = Mul(a, x); b = Mul(h, #); c = Add(x, b); d = Mul(c, #); "
       "e = Tanh(d); f = Add(e, #); g = Mul(x, #); Mul(g, f)",
       ActivationKind::GeluTanh,
       {kCube, kFactor, 1, 0.5}});
  return forms;
}

bool are_close(const std::vector<double>& found, const std::vector<double>& expected) {
  return std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                    [](double left, double right) {
                      return std::abs(left - right) <= kTolerance * std::abs(right);
                    });
}

// Adds the match if its constants are right, and nothing but its nodes reads the argument.
void add_match(const Graph& graph, const Form& form, std::vector<int32_t> nodes,
               std::map<int32_t, FoundActivation>& found) {
  std::vector<double> numbers;
  int32_t argument = -1;
  for (const int32_t id : nodes) {
    const Node node = graph.node(id);
    for (size_t index = 0; index < node.input_count(); ++index) {
      const Value value = node.input(index);
      if (std::ranges::find(nodes, value.producer()) != nodes.end()) continue;
      if (const std::optional<double> number = plugin::constant_number(value)) {
        numbers.push_back(*number);
      } else if (argument >= 0 && argument != value.id()) {
        return;
      } else {
        argument = value.id();
      }
    }
  }
  if (argument < 0 || !are_close(numbers, form.constants)) return;
  const Value value = graph.value(argument);
  const Value result = graph.node(nodes.back()).output(0);
  if (value.is_needed() || value.type() != result.type()) return;
  for (const int32_t reader : value.consumers()) {
    if (std::ranges::find(nodes, reader) == nodes.end()) return;
  }
  std::ranges::sort(nodes);
  found[argument] = {std::move(nodes), result.id(), {form.kind}};
}

}  // namespace

std::optional<Activation> activation_of(const Node& last) {
  if (last.op() == "Relu") return Activation{ActivationKind::Relu};
  if (last.op() == "HardSwish") return Activation{ActivationKind::HardSwish};
  if (last.op() == "Mul") return Activation{ActivationKind::Silu};
  if (last.op() != "Clip") return std::nullopt;
  const plugin::ClipBounds bounds = plugin::clip_bounds(last);
  if (!bounds.min || !bounds.max) {
    throw Failure(TESSERA_UNSUPPORTED, "clips to constant bounds only");
  }
  return Activation{ActivationKind::Clip, static_cast<float>(*bounds.min),
                    static_cast<float>(*bounds.max)};
}

std::map<int32_t, FoundActivation> find_activations(const Graph& graph) {
  std::map<int32_t, FoundActivation> found;
  static const std::vector<Form> kForms = all_forms();
  for (const Form& form : kForms) {
    for (std::vector<int32_t>& nodes : graph.match(form.pattern)) {
      add_match(graph, form, std::move(nodes), found);
    }
  }
  return found;
}

}  // namespace tessera::native
