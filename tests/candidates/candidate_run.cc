#include "candidate_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

#include "backend/contract/run_context.h"
#include "ops/convert_elements.h"
#include "tessera/error.h"

namespace tessera {
namespace {

constexpr size_t kGuardBytes = 256;
constexpr unsigned char kGuard = 0xA5;

// Memory surrounded by guard bytes that nobody may change.
class Guarded {
 public:
  // Begins at a multiple of `alignment`; if that is below 64, not at a multiple of twice as much.
  explicit Guarded(int64_t bytes, int64_t alignment = 64)
      : bytes_(static_cast<size_t>(bytes)),
        alignment_(static_cast<size_t>(alignment)),
        memory_(bytes_ + 2 * kGuardBytes + 128, kGuard) {
    const auto start = reinterpret_cast<uintptr_t>(memory_.data()) + kGuardBytes;
    offset_ = kGuardBytes + (64 - start % 64) % 64 + alignment_ % 64;
    // Memory that nobody has written reads as NaN.
    std::memset(data(), 0xFF, bytes_);
  }

  Guarded(const Guarded& other)
      : Guarded(static_cast<int64_t>(other.bytes_), static_cast<int64_t>(other.alignment_)) {
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
  size_t alignment_;
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

// Thrown if a candidate fails a check; `text` is a sentence.
struct Wrong {
  std::string text;
};

// Runs one candidate and compares its outputs.
class CandidateRun {
 public:
  CandidateRun(const Graph& graph, const std::vector<Tensor>& values, const LayoutTable& layouts,
               const Candidate& candidate, ThreadPool& pool, const Tolerance& tolerance,
               KernelSizes sizes)
      : graph_(graph),
        values_(values),
        layouts_(layouts),
        candidate_(candidate),
        pool_(pool),
        tolerance_(tolerance),
        sizes_(sizes) {}

  // Throws Wrong or Error.
  void check() {
    if (!candidate_.has_kernel()) return check_parts();
    const Kernel kernel = candidate_.build(pool_.threads());
    const bool is_as_built = sizes_ == KernelSizes::AsBuilt;
    workspace_bytes_ = is_as_built ? kernel.workspace_bytes() : candidate_.workspace_bytes;
    if (workspace_bytes_ > candidate_.workspace_bytes) {
      throw Wrong{"needs more workspace than it said"};
    }
    run(kernel, std::nullopt, TESSERA_REQUEST_WRITE);
    // Runs twice, to find state that is left over from the first run.
    run(kernel, std::nullopt, TESSERA_REQUEST_WRITE);
    for (size_t index = 0; index < candidate_.outputs.size(); ++index) {
      const uint32_t requests = candidate_.outputs[index].requests;
      if ((requests & TESSERA_REQUEST_IN_PLACE) != 0) run(kernel, index, TESSERA_REQUEST_IN_PLACE);
      if ((requests & TESSERA_REQUEST_ADD) != 0) run(kernel, index, TESSERA_REQUEST_ADD);
    }
    for (size_t index = 0; index < candidate_.inputs.size(); ++index) {
      const CandidateInput& input = candidate_.inputs[index];
      if (input.accepts_strides && input.layout == kDefaultLayout) run_strided(kernel, index);
    }
  }

 private:
  const Tensor& tensor(ValueId value) const { return values_[static_cast<size_t>(value.index)]; }

  // Each part of the whole must equal what is stored for that part alone.
  void check_parts() {
    const auto check = [&](Guarded& whole, const auto& port) {
      const Tensor& part = tensor(port.value);
      Guarded alone = stored(port.value, port.layout);
      const auto size = static_cast<size_t>(element_bytes(part.type()));
      const auto compare_bytes = [&](int64_t in_whole, int64_t in_part, size_t bytes) {
        const char* found = static_cast<char*>(whole.data()) + port.part.offset_bytes + in_whole;
        const char* wanted = static_cast<char*>(alone.data()) + in_part;
        if (std::memcmp(found, wanted, bytes) != 0) {
          throw Wrong{"has " + graph_[port.value].name + " elsewhere than it says"};
        }
      };
      if (port.part.is_dense()) return compare_bytes(0, 0, alone.bytes());
      const std::vector<int64_t>& dims = part.dims();
      const auto strides = dense_strides(layouts_.name(port.layout), dims);
      for (int64_t number = 0; number < part.elements(); ++number) {
        int64_t rest = number;
        int64_t in_whole = 0;
        int64_t in_part = 0;
        for (size_t axis = dims.size(); axis-- > 0;) {
          in_whole += rest % dims[axis] * port.part.strides[axis];
          in_part += rest % dims[axis] * (*strides)[axis];
          rest /= dims[axis];
        }
        const auto bytes = static_cast<int64_t>(size);
        compare_bytes(in_whole * bytes, in_part * bytes, size);
      }
    };
    if (candidate_.is_joint()) {
      Guarded whole = stored(candidate_.outputs[0].value, candidate_.outputs[0].layout);
      for (const CandidateInput& port : candidate_.inputs) check(whole, port);
    } else {
      Guarded whole = stored(candidate_.inputs[0].value, candidate_.inputs[0].layout);
      for (const CandidateOutput& port : candidate_.outputs) check(whole, port);
    }
  }

  int64_t bytes_in(LayoutId layout, ValueId value) const {
    const Tensor& type = tensor(value);
    const std::optional<int64_t> bytes =
        layouts_.storage_bytes(layout, TensorType{type.type(), type.dims()});
    if (!bytes) throw Wrong{"is in a layout that does not hold " + graph_[value].name};
    return *bytes;
  }

  // The value's elements, stored in `layout`.
  Guarded stored(ValueId value, LayoutId layout, int64_t alignment = 64) {
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
    Guarded placed(static_cast<int64_t>(current.bytes()), alignment);
    std::memcpy(placed.data(), current.data(), current.bytes());
    return placed;
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
    const int32_t status = input.pack->pack(input.pack->self, context.abi(), &buffer, to.data(),
                                            input.pack->bytes, &error);
    if (status != TESSERA_OK) throw Wrong{std::string("fails to pack: ") + error.message};
    if (!to.is_intact()) throw Wrong{"packs outside its buffer"};
    return to;
  }

  // Runs with input `strided` stored with gaps, like a view of a larger tensor.
  void run_strided(const Kernel& kernel, size_t strided) {
    const Tensor& source = tensor(candidate_.inputs[strided].value);
    const std::vector<int64_t> dims(source.dims().begin(), source.dims().end());
    if (dims.empty() || source.elements() == 0) return;
    strides_.assign(dims.size(), 1);
    int64_t extent = 1;
    for (size_t axis = dims.size(); axis-- > 0;) {
      strides_[axis] = extent;
      // The gaps differ, so that no two axes can be confused.
      extent = extent * dims[axis] + static_cast<int64_t>(axis % 2 + 1);
    }
    const int64_t width = element_bytes(source.type());
    Guarded spread(extent * width);
    std::vector<int64_t> index_by_axis(dims.size(), 0);
    for (int64_t index = 0; index < source.elements(); ++index) {
      int64_t offset = 0;
      for (size_t axis = 0; axis < dims.size(); ++axis)
        offset += index_by_axis[axis] * strides_[axis];
      std::memcpy(static_cast<char*>(spread.data()) + offset * width,
                  static_cast<const char*>(source.data()) + index * width,
                  static_cast<size_t>(width));
      for (size_t axis = dims.size(); axis-- > 0;) {
        if (++index_by_axis[axis] < dims[axis]) break;
        index_by_axis[axis] = 0;
      }
    }
    strided_ = strided;
    spread_ = &spread;
    run(kernel, std::nullopt, TESSERA_REQUEST_WRITE);
    strided_.reset();
  }

  void run(const Kernel& kernel, std::optional<size_t> aliased, uint32_t request) {
    std::vector<Guarded> inputs;
    for (const CandidateInput& input : candidate_.inputs) {
      inputs.push_back(input.pack != nullptr
                           ? packed(input)
                           : stored(input.value, input.layout, input.alignment_bytes));
    }
    const std::vector<Guarded> before = inputs;
    std::vector<Guarded> outputs;
    for (const CandidateOutput& output : candidate_.outputs) {
      outputs.emplace_back(bytes_in(output.layout, output.value), output.alignment_bytes);
    }
    std::vector<tessera_buffer> from;
    for (size_t index = 0; index < inputs.size(); ++index) {
      from.push_back(buffer_of(tensor(candidate_.inputs[index].value), inputs[index]));
      if (strided_ != index) continue;
      from.back().data = spread_->data();
      from.back().bytes = static_cast<int64_t>(spread_->bytes());
      from.back().strides = strides_.data();
    }
    std::vector<tessera_buffer> to;
    int overwritten = -1;
    for (size_t index = 0; index < outputs.size(); ++index) {
      to.push_back(buffer_of(tensor(candidate_.outputs[index].value), outputs[index]));
      if (candidate_.outputs[index].is_size_unknown) to.back().data = nullptr;
      if (aliased != index) continue;
      overwritten = candidate_.outputs[index].in_place_input;
      to.back().data = from[static_cast<size_t>(overwritten)].data;
      to.back().request = static_cast<int32_t>(request);
      if (to.back().bytes != from[static_cast<size_t>(overwritten)].bytes) {
        throw Wrong{"overwrites an input of another size"};
      }
    }
    Guarded workspace(workspace_bytes_);
    RunContext context(pool_);
    context.set_workspace(workspace.data(), workspace_bytes_);
    context.set_allocator([&](int32_t output, std::span<const int64_t> dims) -> void* {
      const Tensor& expected = tensor(candidate_.outputs[static_cast<size_t>(output)].value);
      const bool is_expected =
          std::equal(dims.begin(), dims.end(), expected.dims().begin(), expected.dims().end());
      return is_expected ? outputs[static_cast<size_t>(output)].data() : nullptr;
    });
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
    // Converts the elements to the default layout and back: padding must be unchanged.
    Guarded plain(expected.bytes());
    convert_all(output.value, output.layout, kDefaultLayout, type, made, plain);
    Guarded again(static_cast<int64_t>(made.bytes()));
    convert_all(output.value, kDefaultLayout, output.layout, type, plain, again);
    const std::string how = request == TESSERA_REQUEST_ADD        ? " when it adds"
                            : request == TESSERA_REQUEST_IN_PLACE ? " in place"
                                                                  : "";
    // Sparse values may store zeros, and the bytes after their elements are undefined.
    const bool is_sparse = layouts_.sparse_form(output.layout).has_value();
    if (!is_sparse && std::memcmp(made.data(), again.data(), made.bytes()) != 0) {
      throw Wrong{"leaves something in the padding of " + graph_[output.value].name + how};
    }
    compare_elements(graph_[output.value].name + how, expected, plain.data());
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

  double allowed_by_inputs(size_t outputs) const {
    if (tolerance_.of_inputs == 0) return 0;
    double sum = 0;
    for (const ValueId id : graph_.inputs) {
      const Tensor& input = tensor(id);
      if (!is_floating(input.type())) continue;
      for (const double element : numbers_of(input.type(), input.data(), input)) {
        if (std::isfinite(element)) sum += std::abs(element);
      }
    }
    return tolerance_.of_inputs * sum / static_cast<double>(outputs);
  }

  // Floating-point types must match within the tolerance, all others bit by bit.
  void compare_elements(const std::string& name, const Tensor& expected, const void* found) const {
    if (!is_floating(expected.type())) {
      if (std::memcmp(expected.data(), found, static_cast<size_t>(expected.bytes())) == 0) return;
      if (tolerance_.quanta > 0 && is_within_quanta(expected, found)) return;
      throw Wrong{"gives other elements of " + name + " than the reference"};
    }
    const std::vector<double> wanted = numbers_of(expected.type(), expected.data(), expected);
    const std::vector<double> had = numbers_of(expected.type(), found, expected);
    double largest = 0;
    for (const double value : wanted) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
    for (size_t index = 0; index < wanted.size(); ++index) {
      const double want = wanted[index];
      const double have = had[index];
      if (std::isnan(want) ? std::isnan(have) : want == have) continue;
      const double allowed = tolerance_.of_elements.empty() ? tolerance_.relative * std::abs(want) +
                                                                  tolerance_.of_largest * largest +
                                                                  allowed_by_inputs(wanted.size())
                                                            : tolerance_.of_elements.at(index);
      if (std::isfinite(want) && std::abs(want - have) <= allowed) continue;
      std::ostringstream text;
      text.precision(9);
      text << "gives " << have << " for " << want << " at " << index << " of " << name << " (of "
           << wanted.size() << ", largest " << largest << ")";
      throw Wrong{text.str()};
    }
  }

  bool is_within_quanta(const Tensor& expected, const void* found) const {
    const std::vector<double> wanted = numbers_of(expected.type(), expected.data(), expected);
    const std::vector<double> had = numbers_of(expected.type(), found, expected);
    return std::equal(wanted.begin(), wanted.end(), had.begin(), [&](double want, double have) {
      return std::abs(want - have) <= tolerance_.quanta;
    });
  }

  static std::vector<double> numbers_of(DataType type, const void* elements, const Tensor& shape) {
    std::vector<double> numbers(static_cast<size_t>(shape.elements()));
    ops::convert_elements(type, elements, DataType::Float64, numbers.data(), shape.elements());
    return numbers;
  }

  const Graph& graph_;
  const std::vector<Tensor>& values_;
  const LayoutTable& layouts_;
  const Candidate& candidate_;
  ThreadPool& pool_;
  Tolerance tolerance_;
  KernelSizes sizes_;
  int64_t workspace_bytes_ = 0;
  std::optional<size_t> strided_ = std::nullopt;  // the input that run_strided() tests
  std::vector<int64_t> strides_ = {};
  Guarded* spread_ = nullptr;
};

}  // namespace

std::string explain_wrong(const Graph& graph, const std::vector<Tensor>& values,
                          const LayoutTable& layouts, const Candidate& candidate, ThreadPool& pool,
                          const Tolerance& tolerance, KernelSizes sizes) {
  try {
    CandidateRun(graph, values, layouts, candidate, pool, tolerance, sizes).check();
    return "";
  } catch (const Wrong& wrong) {
    return wrong.text;
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace tessera
