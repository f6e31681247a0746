// Range and ConstantOfShape, with sizes known before or only at run time; Shape and Size.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/any_address.h"
#include "base/element_type.h"
#include "base/families.h"
#include "base/grain.h"
#include "copy/copy_kernels.h"
#include "copy/copy_offer.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;

namespace {

constexpr int64_t kMaxElements = int64_t{1} << 62;

// The memory of output 0, which is allocated now if its size was unknown.
void* memory_of(RunContext& run, const Buffer& output, std::span<const int64_t> dims) {
  return output.is_present() ? output.data : run.allocate_output(0, dims);
}

// --- Range ---------------------------------------------------------------------------------------

[[noreturn]] void fail_range(const std::string& message) {
  throw plugin::Failure(TESSERA_INVALID_ARGUMENT, message);
}

// The number of elements: max(ceil((limit - start) / delta), 0).
template <class T>
int64_t range_count(T start, T limit, T delta) {
  if (delta == 0) fail_range("expected a step other than 0, found 0");
  if constexpr (std::is_floating_point_v<T>) {
    const double count =
        std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / double{delta});
    if (!(count < static_cast<double>(kMaxElements))) {
      fail_range("expected a finite number of elements, found " + std::to_string(count));
    }
    return count > 0 ? static_cast<int64_t>(count) : 0;
  } else {
    if (delta > 0 ? limit <= start : limit >= start) return 0;
    // Unsigned, because the difference of two numbers may not fit their own type.
    const auto wide = [](T number) { return static_cast<uint64_t>(static_cast<int64_t>(number)); };
    const uint64_t distance = delta > 0 ? wide(limit) - wide(start) : wide(start) - wide(limit);
    const uint64_t step = delta > 0 ? wide(delta) : uint64_t{0} - wide(delta);
    const uint64_t count = (distance - 1) / step + 1;
    if (count > uint64_t{kMaxElements}) {
      fail_range("expected a number of elements within 64 bits, found " + std::to_string(count));
    }
    return static_cast<int64_t>(count);
  }
}

struct RangePorts {
  size_t start = 0;
  size_t limit = 0;
  size_t delta = 0;
};

template <class T>
void run_range(RunContext& run, const RangePorts& ports, std::span<const Buffer> inputs,
               const Buffer& output) {
  // Floats are computed in double, so that errors do not add up; integers wrap around.
  using Number = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  const T first = *inputs[ports.start].as<const T>();
  const T delta = *inputs[ports.delta].as<const T>();
  int64_t count = 0;
  if (output.is_present()) {
    count = output.elements();
  } else {
    count = range_count(first, *inputs[ports.limit].as<const T>(), delta);
  }
  T* to = static_cast<T*>(memory_of(run, output, {&count, 1}));
  const auto start = static_cast<Number>(first);
  const auto step = static_cast<Number>(delta);
  run.parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      to[index] = static_cast<T>(start + static_cast<Number>(index) * step);
    }
  });
}

using RunRange = void (*)(RunContext& run, const RangePorts& ports, std::span<const Buffer> inputs,
                          const Buffer& output);

RunRange find_range(int32_t data_type) {
  return find_loop<int16_t, int32_t, int64_t, float, double>(
      data_type, []<class T>() -> RunRange { return run_range<T>; });
}

void offer_range(ProposeContext& context, const Node& node) {
  const plugin::Type type = node.output(0).type();
  const RunRange range = find_range(type.data_type);
  if (range == nullptr)
    return context.refuse(node.id(), "does not count in 16-bit floating-point types");
  plugin::Candidate candidate = plugin::candidate_for(node);
  const RangePorts ports = {port_of(candidate, node.input(0)), port_of(candidate, node.input(1)),
                            port_of(candidate, node.input(2))};
  candidate.built_for.emplace();
  candidate.outputs[0].is_size_unknown = !type.is_known();
  if (type.is_known()) {
    candidate.optimistic_seconds =
        context.optimistic_seconds(0, static_cast<double>(type.dense_bytes()));
  }
  candidate.build = [=](const plugin::BuildOptions&) {
    return plugin::make_kernel(
        [=](RunContext& run, std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
          range(run, ports, inputs, outputs[0]);
        });
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

// --- ConstantOfShape -----------------------------------------------------------------------------

using Element = std::array<char, 8>;

// The dimensions are read at run time, because they may not be known before.
class FillKernel : public plugin::Kernel {
 public:
  FillKernel(Element element, int64_t element_bytes)
      : element_(element),
        element_bytes_(element_bytes),
        loops_(loops_for(find_copy_loops(), element_bytes)) {}

  void run(RunContext& run, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    char* to = outputs[0].as<char>();
    int64_t elements = 0;
    if (outputs[0].is_present()) {
      elements = outputs[0].elements();
    } else {
      const std::span<const int64_t> dims(inputs[0].as<const int64_t>(),
                                          static_cast<size_t>(inputs[0].elements()));
      elements = checked_elements(dims);
      to = static_cast<char*>(run.allocate_output(0, dims));
    }
    run.parallel_for(elements, kGrain, [&](int64_t begin, int64_t end) {
      loops_->fill(element_.data(), to + begin * element_bytes_, end - begin);
    });
  }

 private:
  static int64_t checked_elements(std::span<const int64_t> dims) {
    int64_t elements = 1;
    for (const int64_t dim : dims) {
      if (dim < 0) {
        throw plugin::Failure(TESSERA_INVALID_ARGUMENT,
                              "expected dimensions of at least 0, found " + std::to_string(dim));
      }
    }
    // If one dimension is 0, the others do not matter.
    if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
    for (const int64_t dim : dims) {
      if (__builtin_mul_overflow(elements, dim, &elements)) {
        throw plugin::Failure(TESSERA_OUT_OF_MEMORY, "no memory for so many elements");
      }
    }
    return elements;
  }

  Element element_;
  int64_t element_bytes_;
  const CopyLoops* loops_;
};

void offer_constant(ProposeContext& context, const Node& node) {
  const plugin::Type type = node.output(0).type();
  Element element = {};
  const tessera_attribute* value = node.attributes().find("value");
  const int64_t element_bytes = plugin::element_bytes(type.data_type);
  if (value != nullptr && value->tensor.data != nullptr) {
    std::memcpy(element.data(), value->tensor.data, static_cast<size_t>(element_bytes));
  }
  plugin::Candidate candidate = plugin::candidate_for(node);
  candidate.built_for.emplace();
  candidate.outputs[0].is_size_unknown = !type.is_known();
  if (type.is_known()) {
    candidate.optimistic_seconds =
        context.optimistic_seconds(0, static_cast<double>(type.dense_bytes()));
  }
  candidate.build = [=](const plugin::BuildOptions&) {
    return std::make_unique<FillKernel>(element, element_bytes);
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

// --- Shape and Size ------------------------------------------------------------------------------

void offer_shape(ProposeContext& context, const Node& node) {
  const plugin::Type type = node.input(0).type();
  if (plugin::element_bytes(type.data_type) == 0) {
    return context.refuse(node.id(), "does not take strings");
  }
  if (!node.output(0).type().is_known()) {
    return context.refuse(node.id(), "takes tensors of known rank only");
  }
  const plugin::Attributes attributes = node.attributes();
  const auto rank = static_cast<int64_t>(type.rank);
  const int64_t begin =
      attributes.has("start") ? plugin::clamped_index(attributes.get_int("start"), rank) : 0;
  const bool is_size = node.op() == "Size";
  plugin::Candidate candidate = plugin::candidate_for(node);
  candidate.built_for.emplace();
  // The dimensions are the same in all layouts.
  if (type.is_known()) candidate.inputs[0].layout = TESSERA_LAYOUT_ANY_DENSE;
  candidate.build = [=](const plugin::BuildOptions&) {
    return plugin::make_kernel(
        [=](RunContext&, std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
          int64_t* to = outputs[0].as<int64_t>();
          if (is_size) {
            *to = inputs[0].elements();
          } else {
            std::copy_n(inputs[0].dims + begin, outputs[0].elements(), to);
          }
        });
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

}  // namespace

void propose_ranges(ProposeContext& context) {
  context.for_each({"Range"}, [&](const Node& node) { offer_range(context, node); });
  context.for_each({"ConstantOfShape"}, [&](const Node& node) { offer_constant(context, node); });
  context.for_each({"Shape", "Size"}, [&](const Node& node) { offer_shape(context, node); });
}

}  // namespace tessera::native
