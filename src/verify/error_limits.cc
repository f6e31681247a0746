#include "verify/error_limits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "ops/convert_elements.h"
#include "ops/evaluate.h"
#include "ops/schema.h"
#include "tessera/error.h"
#include "verify/compare_tensors.h"
#include "verify/type_precision.h"

namespace tessera::verification {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// The number of draws of random signs, and the allowed multiple of the largest change among them.
constexpr uint64_t kDraws = 4;
constexpr double kDrawFactor = 4;
// More draws follow, by the bits of the position: any two elements change in opposite directions in
// one of them, except for elements at a distance of a multiple of 2^kPairBits. At random, some of
// many pairs would always change alike, and the result may depend on the difference of two elements
// alone (LogSoftmax of two).
constexpr int kPairBits = 20;
// The corresponding numbers for changes of the inputs by parts of themselves.
constexpr uint64_t kInputDraws = 5;
constexpr double kInputFactor = 2;

Tensor converted(const Tensor& tensor, DataType type) {
  if (tensor.is_empty() || tensor.type() == type) return tensor;
  Tensor result(type, tensor.dims());
  ops::convert_elements(tensor.type(), tensor.data(), type, result.mutable_data(),
                        tensor.elements());
  return result;
}

// SplitMix64, as a function of the position.
double sign_at(uint64_t draw, uint64_t input, size_t index) {
  uint64_t mixed = (draw * 64 + input) * 0x9e3779b97f4a7c15U + index * 0xd1342543de82ef95U;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
  return ((mixed >> 40) & 1U) == 0 ? 1 : -1;
}

// By element, the changed input: function(old element, index).
template <class Function>
Tensor mapped(const Tensor& tensor, const Function& function) {
  Tensor result(DataType::Float64, tensor.dims());
  const std::span<const double> from = tensor.as<double>();
  const std::span<double> to = result.mutable_as<double>();
  for (size_t index = 0; index < from.size(); ++index) to[index] = function(from[index], index);
  return result;
}

// In the first draw all signs are equal; in the next two, all of one input, except the first one;
// then they are random. So terms of several inputs that cancel change in opposite directions at
// least once.
double sign_of_change(uint64_t draw, uint64_t input, size_t index) {
  if (draw == 0) return 1;
  if (draw > 2 || input == 0) return sign_at(draw, input, index);
  return (input % 2 == 0) == (draw == 1) ? 1 : -1;
}

double change(double from, double to) {
  if (from == to || (std::isnan(from) && std::isnan(to))) return 0;
  const double difference = std::fabs(to - from);
  return std::isnan(difference) ? kInfinity : difference;
}

bool is_double(const Tensor& tensor) { return tensor.type() == DataType::Float64; }

// The state of a value while the nodes are analysed.
struct State {
  ErrorLimits limits;
  int products = 0;  // the largest number in a row before it
  bool is_given = false;
};

// Thrown if no limits can be found; never leaves error_limits().
struct Unknown {};

class Analysis {
 public:
  Analysis(const Graph& graph, const ops::Registry& registry, std::vector<Tensor> known,
           ThreadPool& pool, KnownProducts* products)
      : graph_(graph), registry_(registry), pool_(pool), products_(products) {
    states_.resize(known.size());
    for (size_t index = 0; index < known.size(); ++index) {
      if (known[index].is_empty()) continue;
      const bool is_floating = tessera::is_floating(known[index].type());
      states_[index].limits.exact =
          is_floating ? converted(known[index], DataType::Float64) : known[index];
      states_[index].is_given = true;
    }
  }

  std::vector<ErrorLimits> run() {
    for (const Node& node : graph_.nodes) analyse(node);
    std::vector<ErrorLimits> limits;
    limits.reserve(states_.size());
    for (State& state : states_) limits.push_back(std::move(state.limits));
    return limits;
  }

 private:
  const State& state(ValueId id) const { return states_[static_cast<size_t>(id.index)]; }

  DataType declared(ValueId id) const {
    const DataType type = graph_[id].type.element;
    if (type == DataType::Undefined || type == DataType::String) throw Unknown();
    return type;
  }

  void analyse(const Node& node) {
    op_ = &registry_.of(node);
    if (!op_->error_bound || !node.bodies.empty() || (op_->traits & ops::kRandom) != 0) {
      throw Unknown();
    }
    bound_ = *op_->error_bound;
    node_ = &node;
    wide_ = widened(node);
    inputs_ = wide_inputs(node);
    int products = 0;
    for (const ValueId id : node.inputs) {
      if (!id.is_none()) products = std::max(products, state(id).products);
    }
    if ((op_->traits & ops::kProduct) != 0) ++products;
    if (products > kMaxProductsInARow) throw Unknown();
    const std::vector<Tensor> exact = evaluated(wide_, inputs_, "exact");
    std::vector<State> made(node.outputs.size());
    for (size_t index = 0; index < made.size(); ++index) {
      if (node.outputs[index].is_none()) continue;
      made[index].products = products;
      made[index].limits.exact = is_floating(exact[index].type())
                                     ? converted(exact[index], DataType::Float64)
                                     : exact[index];
    }
    add_own(made);
    add_carried(made);
    for (size_t index = 0; index < made.size(); ++index) {
      const ValueId id = node.outputs[index];
      if (!id.is_none()) states_[static_cast<size_t>(id.index)] = std::move(made[index]);
    }
  }

  // The node with results in float64 where an attribute names their type.
  Node widened(const Node& node) const {
    Node wide = node;
    if (!node.domain.empty()) return wide;
    if (node.op == "Cast") {
      // A whole number is rounded to the declared type, which changes large ones by more than what
      // follows may be linear in.
      const bool rounds_whole = !is_double(state(node.inputs[0]).limits.exact);
      if (is_floating(declared(node.outputs[0])) && !rounds_whole)
        wide.attributes.set("to", int64_t{11});
    } else if (node.op == "CastLike" || node.op == "ConstantOfShape" || node.op == "Constant") {
      throw Unknown();
    }
    return wide;
  }

  // Whether the op's schema lets this input be float64.
  bool can_be_wide(const Node& node, size_t index) const {
    const std::vector<ops::Parameter> parameters = ops::parameters_of(op_->inputs, node.version);
    if (parameters.empty()) return false;
    const ops::Parameter& parameter = parameters[std::min(index, parameters.size() - 1)];
    return std::ranges::any_of(op_->type_variables, [&](const ops::TypeVariable& variable) {
      return variable.name == parameter.type_variable && variable.types.contains(DataType::Float64);
    });
  }

  std::vector<Tensor> wide_inputs(const Node& node) const {
    std::vector<Tensor> inputs;
    for (size_t index = 0; index < node.inputs.size(); ++index) {
      const ValueId id = node.inputs[index];
      if (id.is_none()) {
        inputs.emplace_back();
        continue;
      }
      const Tensor& exact = state(id).limits.exact;
      if (exact.is_empty()) throw Unknown();
      inputs.push_back(
          is_double(exact) && !can_be_wide(node, index) ? converted(exact, declared(id)) : exact);
    }
    return inputs;
  }

  std::vector<Tensor> evaluated(const Node& node, const std::vector<Tensor>& inputs,
                                const std::string& what = "") {
    const bool is_kept =
        products_ != nullptr && !what.empty() && (op_->traits & ops::kProduct) != 0 &&
        std::ranges::all_of(node.inputs,
                            [&](ValueId id) { return id.is_none() || state(id).is_given; });
    const std::string key = is_kept ? graph_[node.outputs[0]].name + ", " + what : "";
    if (is_kept) {
      const auto found = products_->by_value.find(key);
      if (found != products_->by_value.end()) return {found->second};
    }
    std::vector<Tensor> outputs = ops::evaluate(*op_, node, inputs, pool_);
    if (is_kept && products_->bytes + outputs[0].bytes() <= products_->max_bytes) {
      products_->bytes += outputs[0].bytes();
      products_->by_value.emplace(key, outputs[0]);
    }
    return outputs;
  }

  // --- The bound of the node itself

  void add_own(std::vector<State>& made) {
    if (bound_.is_exact()) return;
    for (size_t index = 0; index < made.size(); ++index) {
      ErrorLimits& limits = made[index].limits;
      if (!is_double(limits.exact)) continue;
      const DataType type = declared(node_->outputs[index]);
      limits.spread = mapped(limits.exact, [&](double x, size_t) { return own_at(type, x); });
    }
    if (bound_.terms > 0) add_terms(made);
    if (bound_.inputs == 0) return;
    const bool gives_numbers =
        std::ranges::any_of(made, [](const State& state) { return is_double(state.limits.exact); });
    if (gives_numbers) {
      add_inputs(made);
    } else {
      accept_for_inputs(made);
    }
  }

  // Accepts the integers that follow from a change of one input, such as a scale.
  void accept_for_inputs(std::vector<State>& made) {
    for (size_t input = 0; input < inputs_.size(); ++input) {
      if (inputs_[input].is_empty() || !is_floating(inputs_[input].type())) continue;
      const double part = kInputFactor * bound_.inputs * epsilon_of(declared(node_->inputs[input]));
      for (const double sign : {1.0, -1.0}) {
        std::vector<Tensor> inputs = inputs_;
        inputs[input] = converted(mapped(converted(inputs_[input], DataType::Float64),
                                         [&](double x, size_t) { return x * (1 + sign * part); }),
                                  inputs_[input].type());
        extend(made, ops::evaluate(*op_, wide_, inputs, pool_), 1, kOwn);
      }
    }
  }

  double own_at(DataType type, double x) const {
    if (!std::isfinite(x)) return 0;
    double allowed = bound_.ulps * ulp_of(type, x) + bound_.absolute * epsilon_of(type);
    if (bound_.logs > 0 && x != 0) {
      allowed += bound_.logs * epsilon_of(type) * std::fabs(x * std::log(std::fabs(x)));
    }
    const double flushed = flushed_magnitude_of(type);
    const bool may_be_flushed = x != 0 && std::fabs(x) < flushed;
    // A result in float64 is compared with one of the same type, which has errors of its own.
    return (type == DataType::Float64 ? 2 * allowed : allowed) + (may_be_flushed ? flushed : 0);
  }

  Node of_magnitudes(const Node& node) const {
    Node result = node;
    for (const auto& [name, value] : node.attributes.all()) {
      if (const auto* number = std::get_if<float>(&value)) {
        result.attributes.set(name, std::fabs(*number));
      }
    }
    return result;
  }

  void add_terms(std::vector<State>& made) {
    std::vector<Tensor> inputs = inputs_;
    for (Tensor& input : inputs) input = magnitude_of(input);
    const std::vector<Tensor> summed = evaluated(of_magnitudes(wide_), inputs, "magnitudes");
    for (size_t index = 0; index < made.size(); ++index) {
      ErrorLimits& limits = made[index].limits;
      if (!is_double(limits.exact)) continue;
      const DataType type = declared(node_->outputs[index]);
      const double units = bound_.terms * epsilon_of(type) * (type == DataType::Float64 ? 2 : 1);
      const Tensor magnitude = converted(summed[index], DataType::Float64);
      // The op's own weights may be negative (Resize): then even the result may be larger. If the
      // terms exceed the type, their sum overflows in one order and not in another.
      add(limits, [&](size_t at) {
        const double terms = std::max(std::fabs(magnitude.as<double>()[at]),
                                      std::fabs(limits.exact.as<double>()[at]));
        return terms > largest_finite(type) ? kInfinity : units * terms;
      });
    }
  }

  void add_inputs(std::vector<State>& made) {
    for (uint64_t draw = 0; draw < kInputDraws; ++draw) {
      std::vector<Tensor> inputs = inputs_;
      for (size_t input = 0; input < inputs.size(); ++input) {
        if (!is_double(inputs[input])) continue;
        const double part =
            kInputFactor * bound_.inputs * epsilon_of(declared(node_->inputs[input]));
        inputs[input] = mapped(inputs_[input], [&](double x, size_t at) {
          return x * (1 + part * sign_of_change(draw, input, at));
        });
      }
      extend(made, ops::evaluate(*op_, wide_, inputs, pool_), 1, kOwn);
    }
    merge(made);
  }

  // --- The errors of its inputs

  bool has_spread(size_t input) const {
    const ValueId id = node_->inputs[input];
    return !id.is_none() && !state(id).limits.spread.is_empty();
  }

  void add_carried(std::vector<State>& made) {
    std::vector<size_t> uncertain;
    for (size_t input = 0; input < node_->inputs.size(); ++input) {
      if (has_spread(input)) uncertain.push_back(input);
    }
    if (uncertain.empty()) return;
    const bool are_numbers =
        std::ranges::all_of(uncertain, [&](size_t input) { return is_double(inputs_[input]); });
    constexpr uint32_t kLocal = ops::kElementwise | ops::kView;
    if (bound_.terms > 0 && are_numbers) {
      carry_by_magnitudes(made, uncertain);
    } else if (bound_.is_exact() || (op_->traits & kLocal) != 0 || !are_numbers) {
      carry_one_by_one(made, uncertain);
    } else {
      carry_at_random(made, uncertain);
    }
    merge(made);
  }

  // A number that the type of an inner value cannot hold is infinite there, with all that follows.
  Tensor spread_of(size_t input) const {
    const ValueId id = node_->inputs[input];
    const ErrorLimits& limits = state(id).limits;
    if (!is_double(limits.exact)) return limits.spread;
    const double largest = largest_finite(declared(id));
    return mapped(limits.spread, [&](double spread, size_t at) {
      return std::fabs(limits.exact.as<double>()[at]) > largest ? kInfinity : spread;
    });
  }

  void carry_by_magnitudes(std::vector<State>& made, const std::vector<size_t>& uncertain) {
    std::vector<Tensor> inputs = inputs_;
    for (Tensor& input : inputs) input = magnitude_of(input);
    const Node node = of_magnitudes(wide_);
    const std::vector<Tensor> plain = ops::evaluate(*op_, node, inputs, pool_);
    for (const size_t input : uncertain) {
      const Tensor spread = spread_of(input);
      inputs[input] =
          mapped(inputs[input], [&](double x, size_t at) { return x + spread.as<double>()[at]; });
    }
    const std::vector<Tensor> larger = ops::evaluate(*op_, node, inputs, pool_);
    for (size_t index = 0; index < made.size(); ++index) {
      ErrorLimits& limits = made[index].limits;
      if (!is_double(limits.exact)) continue;
      const Tensor from = converted(plain[index], DataType::Float64);
      const Tensor to = converted(larger[index], DataType::Float64);
      add(limits, [&](size_t at) { return change(from.as<double>()[at], to.as<double>()[at]); });
    }
  }

  void carry_one_by_one(std::vector<State>& made, const std::vector<size_t>& uncertain) {
    const bool decides = std::ranges::any_of(made, [](const State& state) {
      return !state.limits.exact.is_empty() && !is_double(state.limits.exact);
    });
    // Errors of several inputs may add up; only results that are not numbers need that here.
    const double share = decides ? static_cast<double>(uncertain.size()) : 1;
    for (const size_t input : uncertain) {
      for (const double sign : {1.0, -1.0, 0.0}) {
        // Whether something is zero is decided inside an interval, not at its ends.
        if (sign == 0 && !decides) continue;
        std::vector<Tensor> inputs = inputs_;
        const Tensor spread = spread_of(input);
        if (is_double(inputs_[input])) {
          inputs[input] = mapped(inputs_[input], [&](double x, size_t at) {
            const double error = share * spread.as<double>()[at];
            if (sign == 0) return std::fabs(x) <= error ? 0 : x;
            return x + sign * error;
          });
        } else {
          decide_alike(inputs, input, spread);
        }
        extend(made, ops::evaluate(*op_, wide_, inputs, pool_), 1, input);
        if (!is_double(inputs_[input])) extend_by_errors(made, uncertain, inputs, input);
      }
    }
    if (node_->domain.empty() && node_->op == "Equal" && std::ranges::all_of(inputs_, is_double)) {
      accept_meeting(made[0].limits);
    }
  }

  // Accepts that two numbers are equal wherever their intervals meet: neither end of an interval
  // need be the number at which they do.
  void accept_meeting(ErrorLimits& limits) {
    Node reaches = *node_;
    reaches.op = "GreaterOrEqual";
    reaches.version = 16;
    const ops::Op& op = registry_.of(reaches);
    const std::array<Tensor, 2> first_up = {end_of(0, 1), end_of(1, -1)};
    const std::array<Tensor, 2> second_up = {end_of(1, 1), end_of(0, -1)};
    const Tensor first = ops::evaluate(op, reaches, first_up, pool_).at(0);
    const Tensor second = ops::evaluate(op, reaches, second_up, pool_).at(0);
    Tensor meeting(DataType::Bool, limits.exact.dims());
    const std::span<bool> equal = meeting.mutable_as<bool>();
    for (size_t at = 0; at < equal.size(); ++at) {
      equal[at] = limits.exact.as<bool>()[at] || (first.as<bool>()[at] && second.as<bool>()[at]);
    }
    accept(limits, meeting);
  }

  // Each element of an input, moved by all of its error upwards (sign 1) or downwards (-1).
  Tensor end_of(size_t input, double sign) const {
    if (!has_spread(input)) return inputs_[input];
    const Tensor spread = spread_of(input);
    return mapped(inputs_[input],
                  [&](double x, size_t at) { return x + sign * spread.as<double>()[at]; });
  }

  // A decision holds wherever its value is read: Add(x, x) of another x is twice the other x.
  void decide_alike(std::vector<Tensor>& inputs, size_t input, const Tensor& decided) const {
    for (size_t other = 0; other < inputs.size(); ++other) {
      if (node_->inputs[other] == node_->inputs[input]) inputs[other] = decided;
    }
  }

  // A value that another decision selects (Where) has an error of its own.
  void extend_by_errors(std::vector<State>& made, const std::vector<size_t>& uncertain,
                        const std::vector<Tensor>& decided, size_t cause) {
    for (const size_t input : uncertain) {
      if (!is_double(inputs_[input])) continue;
      const Tensor spread = spread_of(input);
      for (const double sign : {1.0, -1.0}) {
        std::vector<Tensor> inputs = decided;
        inputs[input] = mapped(inputs_[input], [&](double x, size_t at) {
          return x + sign * spread.as<double>()[at];
        });
        extend(made, ops::evaluate(*op_, wide_, inputs, pool_), 1, cause);
      }
    }
  }

  void carry_at_random(std::vector<State>& made, const std::vector<size_t>& uncertain) {
    size_t elements = 1;
    for (const size_t input : uncertain) {
      elements = std::max(elements, static_cast<size_t>(inputs_[input].elements()));
    }
    const int bits = std::min(static_cast<int>(std::bit_width(elements - 1)), kPairBits);
    for (uint64_t draw = 0; draw < kDraws + static_cast<uint64_t>(bits); ++draw) {
      std::vector<Tensor> inputs = inputs_;
      for (const size_t input : uncertain) {
        const Tensor spread = spread_of(input);
        inputs[input] = mapped(inputs_[input], [&](double x, size_t at) {
          const double sign = draw < kDraws                         ? sign_at(draw, input, at)
                              : ((at >> (draw - kDraws)) & 1U) == 0 ? 1.0
                                                                    : -1.0;
          return x + sign * spread.as<double>()[at];
        });
      }
      extend(made, ops::evaluate(*op_, wide_, inputs, pool_), kDrawFactor, 0);
    }
  }

  // --- Sums of changes

  template <class Function>
  static void add(ErrorLimits& limits, const Function& amount) {
    if (limits.spread.is_empty()) {
      limits.spread = mapped(limits.exact, [&](double, size_t at) { return amount(at); });
      return;
    }
    const std::span<double> spread = limits.spread.mutable_as<double>();
    for (size_t at = 0; at < spread.size(); ++at) spread[at] += amount(at);
  }

  // Notes the changes from the exact results to `changed`. Of changes with the same `cause`, the
  // largest counts; those of several causes add up, in merge().
  void extend(std::vector<State>& made, const std::vector<Tensor>& changed, double factor,
              size_t cause) {
    for (size_t index = 0; index < made.size(); ++index) {
      ErrorLimits& limits = made[index].limits;
      if (limits.exact.is_empty()) continue;
      if (changed[index].dims() != limits.exact.dims()) throw Unknown();
      if (!is_double(limits.exact)) {
        accept(limits, changed[index]);
        continue;
      }
      const Tensor wide = converted(changed[index], DataType::Float64);
      Tensor& largest = changes_[{index, cause}];
      const auto amount = [&](size_t at) {
        return factor * change(limits.exact.as<double>()[at], wide.as<double>()[at]);
      };
      if (largest.is_empty()) {
        largest = mapped(limits.exact, [&](double, size_t at) { return amount(at); });
        continue;
      }
      const std::span<double> elements = largest.mutable_as<double>();
      for (size_t at = 0; at < elements.size(); ++at) {
        elements[at] = std::max(elements[at], amount(at));
      }
    }
  }

  void merge(std::vector<State>& made) {
    for (const auto& [key, changes] : changes_) {
      add(made[key.first].limits, [&](size_t at) { return changes.as<double>()[at]; });
    }
    changes_.clear();
  }

  // Elements of `other` are accepted where they differ.
  static void accept(ErrorLimits& limits, const Tensor& other) {
    const auto bytes = static_cast<size_t>(limits.exact.bytes());
    if (std::memcmp(limits.exact.data(), other.data(), bytes) == 0) return;
    if (limits.spread.is_empty()) {
      limits.spread = Tensor::copy_of(other.type(), other.dims(), other.data(), bytes);
      return;
    }
    const auto size = static_cast<size_t>(element_bytes(other.type()));
    const auto* exact = static_cast<const char*>(limits.exact.data());
    const auto* from = static_cast<const char*>(other.data());
    auto* to = static_cast<char*>(limits.spread.mutable_data());
    for (size_t at = 0; at < bytes; at += size) {
      if (std::memcmp(exact + at, from + at, size) != 0) std::memcpy(to + at, from + at, size);
    }
  }

  static constexpr size_t kOwn = std::numeric_limits<size_t>::max();

  const Graph& graph_;
  const ops::Registry& registry_;
  ThreadPool& pool_;
  KnownProducts* products_;
  std::vector<State> states_;
  // Of the node that is being analysed.
  const Node* node_ = nullptr;
  const ops::Op* op_ = nullptr;
  ops::ErrorBound bound_;
  Node wide_;
  std::vector<Tensor> inputs_;
  std::map<std::pair<size_t, size_t>, Tensor> changes_;  // by output and cause
};

}  // namespace

std::optional<double> ulps_of(const Graph& graph, const ops::Registry& registry) {
  double ulps = 0;
  for (const Node& node : graph.nodes) {
    const ops::Op& op = registry.of(node);
    if (!op.error_bound) return std::nullopt;
    ulps += op.error_bound->ulps;
  }
  return ulps;
}

std::optional<std::vector<ErrorLimits>> error_limits(const Graph& graph,
                                                     const ops::Registry& registry,
                                                     std::vector<Tensor> known, ThreadPool& pool,
                                                     KnownProducts* products) {
  try {
    return Analysis(graph, registry, std::move(known), pool, products).run();
  } catch (const Unknown&) {
    return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace tessera::verification
