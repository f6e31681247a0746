// Einsum: sums of products of elements of any number of inputs, over the indices that an equation
// names and its result does not.
#include <algorithm>
#include <limits>
#include <map>
#include <memory_resource>
#include <vector>

#include "base/containers/small_vector.h"
#include "ops/broadcast.h"
#include "ops/matmul/dense_operand.h"
#include "ops/matmul/einsum_equation.h"
#include "ops/op.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

const std::string& equation_of(const Node& node) { return node.attributes.get_string("equation"); }

void infer_einsum(InferContext& context) {
  context.set_output(0, context.element(0));
  std::vector<int64_t> ranks;
  for (size_t index = 0; index < context.input_count(); ++index) {
    if (context.shape(index) == nullptr) return;
    ranks.push_back(static_cast<int64_t>(context.shape(index)->size()));
  }
  const std::string& text = equation_of(context.node());
  EinsumEquation equation;
  const std::string wrong = read_einsum(text, ranks, equation);
  if (!wrong.empty()) context.fail("equation '" + text + "': " + wrong);
  std::map<int, Dim> lengths;
  for (size_t operand = 0; operand < ranks.size(); ++operand) {
    const Shape& shape = *context.shape(operand);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const auto [length, is_new] =
          lengths.try_emplace(equation.operands[operand][axis], shape[axis]);
      if (is_new) continue;
      const std::optional<Dim> both = broadcast(length->second, shape[axis]);
      if (!both) {
        context.fail_input(operand, "equation '" + text + "': expected length " +
                                        length->second.text() + " or 1 of axis " +
                                        std::to_string(axis) +
                                        ", like its index elsewhere, found " + shape[axis].text());
      }
      length->second = *both;
    }
  }
  Shape output;
  for (const int index : equation.output) output.push_back(lengths.at(index));
  context.set_output(0, context.element(0), std::move(output));
}

// A loop for each index: those of the result first.
struct Loops {
  explicit Loops(std::pmr::memory_resource* memory)
      : indices(memory), lengths(memory), steps(memory) {}

  std::pmr::vector<int> indices;
  std::pmr::vector<int64_t> lengths;
  std::pmr::vector<int64_t> steps;  // in elements, [operand, loop]; 0 where it is broadcast
  size_t results = 0;               // loops over the result

  size_t count() const { return indices.size(); }
  size_t loop_of(int index) const {
    return static_cast<size_t>(std::ranges::find(indices, index) - indices.begin());
  }
  int64_t terms() const {
    int64_t product = 1;
    for (size_t loop = results; loop < count(); ++loop) product *= lengths[loop];
    return product;
  }
};

Loops loops_of(const KernelCall& call) {
  std::pmr::vector<int64_t> ranks(&call.scratch);
  for (const TensorView& input : call.inputs) ranks.push_back(input.rank());
  EinsumEquation equation(&call.scratch);
  const std::string wrong = read_einsum(equation_of(call.node), ranks, equation);
  TESSERA_CHECK(wrong.empty(), "the rule has read the equation");
  Loops loops(&call.scratch);
  loops.indices.assign(equation.output.begin(), equation.output.end());
  loops.results = loops.indices.size();
  for (const auto& operand : equation.operands) {
    for (const int index : operand) {
      if (loops.loop_of(index) == loops.count()) loops.indices.push_back(index);
    }
  }
  loops.lengths.assign(loops.count(), 1);
  loops.steps.assign(call.inputs.size() * loops.count(), 0);
  for (size_t operand = 0; operand < call.inputs.size(); ++operand) {
    const std::span<const int64_t> dims = call.inputs[operand].dims;
    int64_t stride = 1;
    for (size_t axis = dims.size(); axis-- > 0; stride *= dims[axis]) {
      if (dims[axis] == 1) continue;
      const size_t loop = loops.loop_of(equation.operands[operand][axis]);
      loops.lengths[loop] = dims[axis];
      loops.steps[operand * loops.count() + loop] += stride;
    }
  }
  return loops;
}

// The elements of all operands that a term multiplies.
template <class T, class Sum>
class Terms {
 public:
  Terms(const KernelCall& call, const Loops& loops)
      : call_(call), loops_(loops), places_(loops.count()), positions_(call.inputs.size()) {}

  // Moves to the first term of a result.
  void begin(int64_t result) {
    std::ranges::fill(places_.values(), 0);
    std::ranges::fill(positions_.values(), 0);
    for (size_t loop = loops_.results; loop-- > 0;) {
      move(loop, result % loops_.lengths[loop]);
      result /= loops_.lengths[loop];
    }
  }

  void next() {
    for (size_t loop = loops_.count(); loop-- > loops_.results;) {
      int64_t& place = places_.values()[loop];
      if (++place < loops_.lengths[loop]) return move(loop, 1);
      move(loop, 1 - loops_.lengths[loop]);
      place = 0;
    }
  }

  Sum product() {
    Sum product = 1;
    for (size_t operand = 0; operand < call_.inputs.size(); ++operand) {
      const T* elements = static_cast<const T*>(call_.inputs[operand].data);
      product *= widen<Sum>(elements[positions_.values()[operand]]);
    }
    return product;
  }

 private:
  void move(size_t loop, int64_t distance) {
    for (size_t operand = 0; operand < call_.inputs.size(); ++operand) {
      positions_.values()[operand] += distance * loops_.steps[operand * loops_.count() + loop];
    }
  }

  const KernelCall& call_;
  const Loops& loops_;
  SmallVector<int64_t, 16> places_;
  SmallVector<int64_t> positions_;
};

template <class T, class Sum>
void sum_products(const KernelCall& call, const Loops& loops) {
  T* output = static_cast<T*>(call.outputs[0].data);
  const int64_t terms = loops.terms();
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(terms, 1));
  call.pool.parallel_for(call.outputs[0].elements, grain, [&](int64_t begin, int64_t end) {
    Terms<T, Sum> each(call, loops);
    for (int64_t result = begin; result < end; ++result) {
      each.begin(result);
      Sum sum = 0;
      for (int64_t term = 0; term < terms; ++term) {
        sum += each.product();
        each.next();
      }
      output[result] = narrow<T>(sum);
    }
  });
}

void run_einsum(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const Loops loops = loops_of(call);
  visit_numeric(call.outputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    // Integers wrap around.
    using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
    sum_products<T, Sum>(call, loops);
  });
}

// A multiplication and an addition for each combination of indices. Few and small inputs can make
// more of them than a number holds.
int64_t einsum_flops(const Node& node, std::span<const Type> inputs, std::span<const Type>) {
  std::vector<int64_t> ranks;
  for (const Type& type : inputs) ranks.push_back(static_cast<int64_t>(type.shape->size()));
  EinsumEquation equation;
  if (!read_einsum(equation_of(node), ranks, equation).empty()) return 0;
  std::map<int, int64_t> lengths;
  for (size_t operand = 0; operand < inputs.size(); ++operand) {
    const std::vector<int64_t> dims = dims_from(*inputs[operand].shape);
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      int64_t& length = lengths.try_emplace(equation.operands[operand][axis], 1).first->second;
      if (dims[axis] != 1) length = dims[axis];
    }
  }
  int64_t flops = 2;
  for (const auto& [index, length] : lengths) {
    if (__builtin_mul_overflow(flops, length, &flops)) return std::numeric_limits<int64_t>::max();
  }
  return flops;
}

}  // namespace

std::vector<Op> einsum_ops() {
  return {{.name = "Einsum",
           .versions = {12, 28},
           .inputs = {{"Inputs", "T", Arity::Variadic}},
           .outputs = {{"Output", "T"}},
           .type_variables = {{"T", kNumericTypes}},
           .attributes = {{"equation", AttributeKind::String, std::nullopt, 1, kAnyVersion, true}},
           .traits = kBoundsMagnitude,
           .infer = infer_einsum,
           .flops = einsum_flops,
           .kernel = run_einsum}};
}

}  // namespace tessera::ops
