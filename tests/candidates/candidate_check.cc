#include "candidate_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "backend/graph_view.h"
#include "backend/host.h"
#include "backend/run_context.h"
#include "infer/infer.h"
#include "ops/evaluate.h"
#include "tessera/error.h"

namespace tessera {
namespace {

constexpr int kThreads = 2;
constexpr size_t kGuardBytes = 256;
constexpr unsigned char kGuard = 0xA5;
constexpr int kMostFailures = 12;

// Memory with bytes around it that nobody may change.
class Guarded {
 public:
  explicit Guarded(int64_t bytes)
      : bytes_(static_cast<size_t>(bytes)), memory_(bytes_ + 2 * kGuardBytes + 64, kGuard) {
    const auto start = reinterpret_cast<uintptr_t>(memory_.data()) + kGuardBytes;
    offset_ = kGuardBytes + (64 - start % 64) % 64;
    // What nobody has written shows as NaN.
    std::memset(data(), 0xFF, bytes_);
  }

  Guarded(const Guarded& other) : Guarded(static_cast<int64_t>(other.bytes_)) {
    std::memcpy(data(), other.data(), bytes_);
  }
  Guarded(Guarded&&) = default;
  Guarded& operator=(const Guarded&) = delete;
  Guarded& operator=(Guarded&&) = default;
  ~Guarded() = default;

  void* data() { return memory_.data() + offset_; }
  const void* data() const { return memory_.data() + offset_; }
  size_t bytes() const { return bytes_; }
  bool is_intact() const {
    const auto is_guard = [](unsigned char byte) { return byte == kGuard; };
    const auto begin = memory_.begin();
    const auto end_of_data = static_cast<std::ptrdiff_t>(offset_ + bytes_);
    return std::all_of(begin, begin + static_cast<std::ptrdiff_t>(offset_), is_guard) &&
           std::all_of(begin + end_of_data, memory_.end(), is_guard);
  }

 private:
  size_t bytes_;
  size_t offset_ = 0;
  std::vector<unsigned char> memory_;
};

tessera_buffer buffer_of(const Tensor& type, Guarded& memory) {
  tessera_buffer buffer = {};
  buffer.data = memory.data();
  buffer.bytes = static_cast<int64_t>(memory.bytes());
  buffer.data_type = static_cast<int32_t>(type.type());
  buffer.rank = static_cast<int32_t>(type.rank());
  buffer.dims = type.dims().data();
  buffer.request = TESSERA_REQUEST_WRITE;
  return buffer;
}

// What went wrong with a candidate; a sentence.
struct Wrong {
  std::string text;
};

// Runs one candidate and compares what it gives.
class CandidateRun {
 public:
  CandidateRun(const Graph& graph, const std::vector<Tensor>& values, const LayoutTable& layouts,
               const Candidate& candidate, ThreadPool& pool, const Tolerance& tolerance)
      : graph_(graph),
        values_(values),
        layouts_(layouts),
        candidate_(candidate),
        pool_(pool),
        tolerance_(tolerance) {}

  // Throws Wrong or Error.
  void check() {
    const Kernel kernel = candidate_.build(kThreads);
    if (kernel.workspace_bytes() > candidate_.workspace_bytes) {
      throw Wrong{"needs more workspace than it said"};
    }
    run(kernel, std::nullopt, TESSERA_REQUEST_WRITE);
    // Again, as nothing may be left over from the first time.
    run(kernel, std::nullopt, TESSERA_REQUEST_WRITE);
    for (size_t index = 0; index < candidate_.outputs.size(); ++index) {
      const uint32_t requests = candidate_.outputs[index].requests;
      if ((requests & TESSERA_REQUEST_IN_PLACE) != 0) run(kernel, index, TESSERA_REQUEST_IN_PLACE);
      if ((requests & TESSERA_REQUEST_ADD) != 0) run(kernel, index, TESSERA_REQUEST_ADD);
    }
  }

 private:
  const Tensor& tensor(ValueId value) const { return values_[static_cast<size_t>(value.index)]; }

  int64_t bytes_in(LayoutId layout, ValueId value) const {
    const Tensor& type = tensor(value);
    const std::optional<int64_t> bytes =
        layouts_.storage_bytes(layout, TensorType{type.type(), type.dims()});
    if (!bytes) throw Wrong{"is in a layout that does not hold " + graph_[value].name};
    return *bytes;
  }

  // The tensor's elements in `layout`.
  Guarded stored(ValueId value, LayoutId layout) {
    const Tensor& source = tensor(value);
    Guarded current(source.bytes());
    std::memcpy(current.data(), source.data(), current.bytes());
    const TensorType type{source.type(), source.dims()};
    for (const ConversionStep& step : layouts_.route(kDefaultLayout, layout, type)) {
      Guarded next(bytes_in(step.to, value));
      RunContext context(pool_);
      convert(step, "test", context, buffer_of(source, current), buffer_of(source, next));
      if (!next.is_intact()) throw Wrong{"has a conversion that writes outside its buffer"};
      current = std::move(next);
    }
    return current;
  }

  Guarded packed(const CandidateInput& input) {
    const Tensor& source = tensor(input.value);
    Guarded from(source.bytes());
    std::memcpy(from.data(), source.data(), from.bytes());
    Guarded to(input.pack->bytes);
    RunContext context(pool_);
    tessera_error error = {};
    error.struct_size = sizeof(error);
    const tessera_buffer buffer = buffer_of(source, from);
    const int32_t status = input.pack->pack(input.pack->self, context.face(), &buffer, to.data(),
                                            input.pack->bytes, &error);
    if (status != TESSERA_OK) throw Wrong{std::string("fails to pack: ") + error.message};
    if (!to.is_intact()) throw Wrong{"packs outside its buffer"};
    return to;
  }

  void run(const Kernel& kernel, std::optional<size_t> aliased, uint32_t request) {
    std::vector<Guarded> inputs;
    for (const CandidateInput& input : candidate_.inputs) {
      inputs.push_back(input.pack != nullptr ? packed(input) : stored(input.value, input.layout));
    }
    const std::vector<Guarded> before = inputs;
    std::vector<Guarded> outputs;
    for (const CandidateOutput& output : candidate_.outputs) {
      outputs.emplace_back(bytes_in(output.layout, output.value));
    }
    std::vector<tessera_buffer> from;
    for (size_t index = 0; index < inputs.size(); ++index) {
      from.push_back(buffer_of(tensor(candidate_.inputs[index].value), inputs[index]));
    }
    std::vector<tessera_buffer> to;
    int overwritten = -1;
    for (size_t index = 0; index < outputs.size(); ++index) {
      to.push_back(buffer_of(tensor(candidate_.outputs[index].value), outputs[index]));
      if (aliased != index) continue;
      overwritten = candidate_.outputs[index].in_place_input;
      to.back().data = from[static_cast<size_t>(overwritten)].data;
      to.back().request = static_cast<int32_t>(request);
      if (to.back().bytes != from[static_cast<size_t>(overwritten)].bytes) {
        throw Wrong{"overwrites an input of another size"};
      }
    }
    Guarded workspace(kernel.workspace_bytes());
    RunContext context(pool_);
    context.set_workspace(workspace.data(), kernel.workspace_bytes());
    pool_.execute([&] { kernel.run("test", context, from.data(), to.data()); });
    if (!workspace.is_intact()) throw Wrong{"writes outside its workspace"};
    for (size_t index = 0; index < inputs.size(); ++index) {
      const bool may_change = static_cast<int>(index) == overwritten;
      if (!inputs[index].is_intact()) throw Wrong{"writes around an input"};
      if (!may_change &&
          std::memcmp(inputs[index].data(), before[index].data(), inputs[index].bytes()) != 0) {
        throw Wrong{"changes an input"};
      }
    }
    for (size_t index = 0; index < outputs.size(); ++index) {
      if (!outputs[index].is_intact()) throw Wrong{"writes around an output"};
      Guarded& made = aliased == index ? inputs[static_cast<size_t>(overwritten)] : outputs[index];
      compare(candidate_.outputs[index], made, aliased == index ? request : 0);
    }
  }

  void compare(const CandidateOutput& output, Guarded& made, uint32_t request) {
    const Tensor& expected = tensor(output.value);
    const TensorType type{expected.type(), expected.dims()};
    // Elements in the default layout, and from there back: padding must be what it was.
    Guarded plain(expected.bytes());
    convert_all(output.value, output.layout, kDefaultLayout, type, made, plain);
    Guarded again(static_cast<int64_t>(made.bytes()));
    convert_all(output.value, kDefaultLayout, output.layout, type, plain, again);
    const std::string how = request == TESSERA_REQUEST_ADD        ? " when it adds"
                            : request == TESSERA_REQUEST_IN_PLACE ? " in place"
                                                                  : "";
    if (std::memcmp(made.data(), again.data(), made.bytes()) != 0) {
      throw Wrong{"leaves something in the padding of " + graph_[output.value].name + how};
    }
    compare_elements(graph_[output.value].name + how, expected,
                     static_cast<const float*>(plain.data()));
  }

  void convert_all(ValueId value, LayoutId from, LayoutId to, const TensorType& type,
                   Guarded& source, Guarded& target) {
    std::vector<ConversionStep> steps = layouts_.route(from, to, type);
    if (steps.empty()) {
      std::memcpy(target.data(), source.data(), target.bytes());
      return;
    }
    Guarded current = source;
    for (const ConversionStep& step : steps) {
      Guarded next(bytes_in(step.to, value));
      RunContext context(pool_);
      convert(step, "test", context, buffer_of(tensor(value), current),
              buffer_of(tensor(value), next));
      current = std::move(next);
    }
    std::memcpy(target.data(), current.data(), target.bytes());
  }

  void compare_elements(const std::string& name, const Tensor& expected, const float* found) const {
    const std::span<const float> wanted = expected.as<float>();
    double largest = 0;
    for (const float value : wanted) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(double{value}));
    }
    for (size_t index = 0; index < wanted.size(); ++index) {
      const double want = wanted[index];
      const double have = found[index];
      if (std::isnan(want) ? std::isnan(have) : want == have) continue;
      const double allowed = tolerance_.relative * std::abs(want) + tolerance_.of_largest * largest;
      if (std::isfinite(want) && std::abs(want - have) <= allowed) continue;
      std::ostringstream text;
      text.precision(9);
      text << "gives " << have << " for " << want << " at " << index << " of " << name << " (of "
           << wanted.size() << ", largest " << largest << ")";
      throw Wrong{text.str()};
    }
  }

  const Graph& graph_;
  const std::vector<Tensor>& values_;
  const LayoutTable& layouts_;
  const Candidate& candidate_;
  ThreadPool& pool_;
  Tolerance tolerance_;
};

// The elements of every value, by the reference.
std::vector<Tensor> evaluate_all(const Graph& graph, const std::map<std::string, Tensor>& fed,
                                 const ops::Registry& registry, ThreadPool& pool) {
  std::vector<Tensor> values(graph.values.size());
  for (size_t index = 0; index < values.size(); ++index) {
    const Value& value = graph.values[index];
    if (value.is_constant()) values[index] = value.constant;
    const auto found = fed.find(value.name);
    if (found != fed.end()) values[index] = found->second;
  }
  for (const Node& node : graph.nodes) {
    std::vector<Tensor> inputs;
    for (const ValueId input : node.inputs) {
      inputs.push_back(input.is_none() ? Tensor() : values[static_cast<size_t>(input.index)]);
    }
    const std::vector<Tensor> outputs = evaluate(registry.of(node), node, inputs, pool);
    for (size_t index = 0; index < outputs.size(); ++index) {
      const ValueId output = node.outputs[index];
      if (!output.is_none()) values[static_cast<size_t>(output.index)] = outputs[index];
    }
  }
  return values;
}

std::string describe(const Graph& graph, const Candidate& candidate, const LayoutTable& layouts) {
  std::string text = candidate.algorithm + " for";
  for (const NodeId id : candidate.nodes) text += " " + graph[id].op;
  for (const CandidateInput& input : candidate.inputs) {
    text += ", " + layouts.name(input.layout) + " " + tessera::text(graph[input.value].type);
    if (input.pack != nullptr) text += " (packed)";
  }
  for (const CandidateOutput& output : candidate.outputs) {
    text += " -> " + layouts.name(output.layout) + " " + tessera::text(graph[output.value].type);
  }
  return text;
}

}  // namespace

CandidateCheck::CandidateCheck(const std::string& backend)
    : registry_(ops::make_registry()), pool_(kThreads) {
  const std::string file = std::string(TESSERA_PLUGIN_FOLDER) + "/backend_" + backend + ".so";
  plugins_.push_back(Plugin::open(file, std::make_shared<HostServices>()));
  layouts_ = std::make_unique<LayoutTable>(plugins_);
}

CheckResult CandidateCheck::run(const Graph& graph, const std::map<std::string, Tensor>& fed,
                                const Tolerance& tolerance) {
  const Graph typed = infer_types(graph, registry_, Log());
  const std::vector<Tensor> values = evaluate_all(typed, fed, registry_, pool_);
  const tessera_graph view(typed, registry_);
  OfferOptions options;
  options.threads = kThreads;
  const Offers offers = collect_offers(view, plugins_, *layouts_, options);
  CheckResult result;
  std::set<int32_t> taken;
  for (const Candidate& candidate : offers.candidates) {
    ++result.candidates;
    result.largest = std::max(result.largest, candidate.nodes.size());
    for (const NodeId node : candidate.nodes) taken.insert(node.index);
    try {
      CandidateRun(typed, values, *layouts_, candidate, pool_, tolerance).check();
    } catch (const Wrong& wrong) {
      result.failures.push_back(describe(typed, candidate, *layouts_) + ": " + wrong.text);
    } catch (const Error& error) {
      result.failures.push_back(describe(typed, candidate, *layouts_) + ": " + error.what());
    }
  }
  for (const Refusal& refusal : offers.refusals) {
    if (taken.contains(refusal.node.index)) {
      // A candidate that the host refused is a mistake, whatever else there is.
      result.failures.push_back(typed[refusal.node].op + ": " + refusal.reason);
    } else {
      result.refusals.push_back(typed[refusal.node].op + ": " + refusal.reason);
    }
  }
  return result;
}

uint64_t Dice::next() {
  // Sebastiano Vigna's splitmix64.
  uint64_t mixed = (state_ += 0x9E3779B97F4A7C15ULL);
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBULL;
  return mixed ^ (mixed >> 31U);
}

int64_t Dice::whole(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
}

float Dice::number(float low, float high) {
  return low + (high - low) * static_cast<float>(next() >> 40U) / static_cast<float>(1U << 24U);
}

Tensor Dice::tensor(std::vector<int64_t> dims, float low, float high) {
  Tensor made(DataType::Float32, std::move(dims));
  for (float& value : made.mutable_as<float>()) value = number(low, high);
  return made;
}

RandomGraph& RandomGraph::input(const std::string& name, Tensor tensor) {
  builder.input(name, Type::tensor(tensor.type(), shape_from(tensor.dims())));
  fed[name] = std::move(tensor);
  return *this;
}

RandomGraph& RandomGraph::constant(const std::string& name, Tensor tensor) {
  builder.constant(name, std::move(tensor));
  return *this;
}

RandomGraph& RandomGraph::operand(Dice& dice, const std::string& name, Tensor tensor) {
  return dice.one_in(2) ? input(name, std::move(tensor)) : constant(name, std::move(tensor));
}

Totals check_cases(const std::string& backend, uint64_t seed, int cases, const MakeCase& make,
                   const Tolerance& tolerance) {
  static std::map<std::string, std::unique_ptr<CandidateCheck>> checks;
  std::unique_ptr<CandidateCheck>& check = checks[backend];
  if (!check) check = std::make_unique<CandidateCheck>(backend);
  Totals totals;
  for (int number = 0; number < cases; ++number) {
    Dice dice(seed * 100000 + static_cast<uint64_t>(number));
    const RandomGraph made = make(dice, check->registry());
    const CheckResult result = check->run(made.builder.graph(), made.fed, tolerance);
    totals.candidates += result.candidates;
    totals.largest = std::max(totals.largest, result.largest);
    if (result.candidates > 0) ++totals.answered;
    for (const std::string& refusal : result.refusals) ++totals.refusals[refusal];
    for (const std::string& failure : result.failures) {
      ADD_FAILURE() << "case " << number << ": " << failure;
      ++totals.failures;
    }
    if (totals.failures > kMostFailures) {
      ADD_FAILURE() << "too many failures, stopped at case " << number;
      break;
    }
  }
  std::cout << "           " << cases << " cases, " << totals.answered << " answered by "
            << totals.candidates << " candidates of up to " << totals.largest << " nodes\n";
  for (const auto& [refusal, count] : totals.refusals) {
    std::cout << "           refused " << count << " x " << refusal << "\n";
  }
  return totals;
}

}  // namespace tessera
