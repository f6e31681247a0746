// The binary ops with broadcasting, one row each in kBinaryOps. Before version 7 only the right
// operand was broadcast, and only if attribute `broadcast` was set. binary_loops.cc has the
// computations, shape_arithmetic.h the rules for elements of shapes.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "ops/broadcast.h"
#include "ops/convert_elements.h"
#include "ops/elementwise/binary_loops.h"
#include "ops/shape_arithmetic.h"

namespace tessera::ops {
namespace {

constexpr int kFirstNumpyVersion = 7;

// --- Shapes --------------------------------------------------------------------------------------

// The dimensions of `right` aligned with those of `left`, in the form before version 7: padded with
// ones on both sides. nullopt if they do not fit at `axis`. `Dims` is a vector of Dim or of
// int64_t.
template <class Dims>
std::optional<Dims> aligned(const Attributes& attributes, size_t left_rank, const Dims& right) {
  using Length = typename Dims::value_type;
  if (right.size() > left_rank) return std::nullopt;
  auto axis = static_cast<int64_t>(left_rank - right.size());
  const auto last_axis = axis;
  if (const int64_t* given = attributes.find_int("axis")) {
    axis = *given;
    if (axis < 0 && axis >= -static_cast<int64_t>(left_rank)) {
      axis += static_cast<int64_t>(left_rank);
    }
    // A single element is broadcast whatever its axis.
    const bool is_single =
        std::all_of(right.begin(), right.end(), [](const Length& dim) { return dim == Length(1); });
    if (is_single) axis = last_axis;
  }
  if (axis < 0 || axis > last_axis) return std::nullopt;
  Dims shape(left_rank, Length(1), right.get_allocator());
  std::copy(right.begin(), right.end(), shape.begin() + axis);
  return shape;
}

std::optional<Shape> infer_old_shape(const InferContext& context) {
  const Shape* left = context.shape(0);
  const Shape* right = context.shape(1);
  if (left == nullptr || right == nullptr) {
    return left != nullptr ? std::optional(*left) : std::nullopt;
  }
  const Attributes& attributes = context.node().attributes;
  const bool can_stretch = attributes.get_int("broadcast") != 0;
  bool fits = left->size() == right->size();
  if (can_stretch) {
    const std::optional<Shape> shape = aligned(attributes, left->size(), *right);
    fits = shape && can_broadcast_to(*shape, *left);
  }
  for (size_t index = 0; !can_stretch && fits && index < left->size(); ++index) {
    const Dim& dim = (*left)[index];
    fits = dim == (*right)[index] || !dim.is_known() || !(*right)[index].is_known();
  }
  if (!fits) {
    const int64_t* axis = attributes.find_int("axis");
    context.fail_input(
        1, (can_stretch ? "expected a shape that broadcasts to " + text(*left) + " from axis " +
                              (axis ? std::to_string(*axis) : "(last)")
                        : "expected shape " + text(*left) + " (attribute 'broadcast' is 0)") +
               ", found " + text(*right));
  }
  return *left;
}

// --- Elements of shapes --------------------------------------------------------------------------

using PairFunction = std::optional<Dim> (*)(const Dim& left, const Dim& right);

template <class Predicate>
std::optional<Dim> apply_predicate(const Dim& left, const Dim& right, const Predicate& predicate) {
  if (!left.is_known() || !right.is_known()) return std::nullopt;
  return Dim(predicate(left.value(), right.value()) ? 1 : 0);
}

const std::map<std::string, PairFunction> kElementFunctions = {
    {"Add", add_elements},
    {"Sub", subtract_elements},
    {"Mul", multiply_elements},
    {"Div", divide_elements},
    {"Equal", [](const Dim& l, const Dim& r) { return std::optional(equal_elements(l, r)); }},
    {"Less",
     [](const Dim& l, const Dim& r) {
       return apply_predicate(l, r, [](int64_t left, int64_t right) { return left < right; });
     }},
    {"LessOrEqual",
     [](const Dim& l, const Dim& r) {
       return apply_predicate(l, r, [](int64_t left, int64_t right) { return left <= right; });
     }},
    {"Greater",
     [](const Dim& l, const Dim& r) {
       return apply_predicate(l, r, [](int64_t left, int64_t right) { return left > right; });
     }},
    {"GreaterOrEqual",
     [](const Dim& l, const Dim& r) {
       return apply_predicate(l, r, [](int64_t left, int64_t right) { return left >= right; });
     }},
    {"And",
     [](const Dim& l, const Dim& r) {
       return apply_predicate(l, r,
                              [](int64_t left, int64_t right) { return left != 0 && right != 0; });
     }},
    {"Or",
     [](const Dim& l, const Dim& r) {
       return apply_predicate(l, r,
                              [](int64_t left, int64_t right) { return left != 0 || right != 0; });
     }},
};

// --- Rules ---------------------------------------------------------------------------------------

void infer_binary_of(InferContext& context, DataType result) {
  const bool is_old = context.version() < kFirstNumpyVersion;
  context.set_output(0, result, is_old ? infer_old_shape(context) : broadcast_inputs(context));
  // Old models compute shapes in other ways, so alignment by `axis` is not supported here.
  const auto function = kElementFunctions.find(context.node().op);
  if (is_old || function == kElementFunctions.end()) return;
  set_elementwise_elements(context, [&](const std::vector<Dim>& arguments) {
    return function->second(arguments[0], arguments[1]);
  });
}

void infer_binary(InferContext& context) { infer_binary_of(context, context.element(0)); }

void infer_predicate(InferContext& context) { infer_binary_of(context, DataType::Bool); }

void infer_mod(InferContext& context) {
  constexpr int kFirstFloatingVersion = 28;  // older versions need fmod=1 for floats
  const int64_t fmod = context.node().attributes.get_int("fmod");
  if (fmod != 0 && fmod != 1) {
    context.fail("attribute 'fmod': expected 0 or 1, found " + std::to_string(fmod));
  }
  if (fmod == 0 && is_floating(context.element(0)) && context.version() < kFirstFloatingVersion) {
    context.fail("attribute 'fmod': expected 1 for elements of " +
                 std::string(name(context.element(0))) + ", found 0");
  }
  infer_binary(context);
  const auto rest = fmod == 0 ? modulo_elements : remainder_elements;
  set_elementwise_elements(context, [rest](const std::vector<Dim>& arguments) {
    return rest(arguments[0], arguments[1]);
  });
}

void infer_shift(InferContext& context) {
  const std::string& direction = context.node().attributes.get_string("direction");
  if (direction != "LEFT" && direction != "RIGHT") {
    context.fail("attribute 'direction': expected 'LEFT' or 'RIGHT', found '" + direction + "'");
  }
  infer_binary(context);
}

// --- Kernel --------------------------------------------------------------------------------------

// One operand or the result of a run: its address, and a buffer for a block of it, converted to the
// type of the computation.
struct Operand {
  DataType type;
  std::byte* bytes;  // const for inputs
  int64_t step;

  std::byte* at(int64_t index) const { return bytes + index * element_bytes(type); }
};

// Computes a run whose element types differ from those of the loop.
void run_converted(const KernelCall& call, const Computation& computation, const Operand& left,
                   const Operand& right, const Operand& result, const BroadcastLoop::Run& run) {
  // As large as the largest element type.
  std::array<uint64_t, kConvertBlock> left_block;
  std::array<uint64_t, kConvertBlock> right_block;
  std::array<uint64_t, kConvertBlock> result_block;
  for (int64_t start = 0; start < run.length; start += kConvertBlock) {
    const int64_t count = std::min(kConvertBlock, run.length - start);
    convert_elements(left.type, left.at(run.inputs[0] + start * left.step), computation.operand,
                     left_block.data(), left.step == 0 ? 1 : count);
    convert_elements(right.type, right.at(run.inputs[1] + start * right.step), computation.operand,
                     right_block.data(), right.step == 0 ? 1 : count);
    computation.loop(call, {left_block.data(), left.step, right_block.data(), right.step,
                            result_block.data(), count});
    convert_elements(computation.result, result_block.data(), result.type,
                     result.at(run.output + start), count);
  }
}

std::pmr::vector<int64_t> right_dims(const KernelCall& call) {
  const TensorView& right = call.inputs[1];
  std::pmr::vector<int64_t> dims(right.dims.begin(), right.dims.end(), &call.scratch);
  const bool is_old = call.node.version < kFirstNumpyVersion;
  // Without broadcasting, the dimensions are those of the left operand, whatever `axis` says.
  if (!is_old || call.node.attributes.get_int("broadcast") == 0) return dims;
  return *aligned(call.node.attributes, call.inputs[0].dims.size(), dims);
}

void run_binary(const KernelCall& call) {
  const TensorView& left = call.inputs[0];
  const TensorView& right = call.inputs[1];
  const MutableTensorView& output = call.outputs[0];
  const Computation computation = binary_computation(call.node, left.type, right.type);
  const std::pmr::vector<int64_t> stretched = right_dims(call);
  const BroadcastLoop loop(output.dims, {left.dims, stretched}, &call.scratch);
  const auto operand = [&](const TensorView& input, size_t index) {
    auto* bytes = static_cast<std::byte*>(const_cast<void*>(input.data));
    return Operand{input.type, bytes, loop.step(index)};
  };
  const Operand left_operand = operand(left, 0);
  const Operand right_operand = operand(right, 1);
  const Operand result = {output.type, static_cast<std::byte*>(output.data), 1};
  const bool is_direct = computation.operand == left.type && computation.operand == right.type &&
                         computation.result == output.type;
  call.pool.parallel_for(output.elements, kElementGrain, [&](int64_t begin, int64_t end) {
    loop.for_each_run(begin, end, [&](const BroadcastLoop::Run& run) {
      if (!is_direct) {
        return run_converted(call, computation, left_operand, right_operand, result, run);
      }
      computation.loop(
          call, {left_operand.at(run.inputs[0]), left_operand.step, right_operand.at(run.inputs[1]),
                 right_operand.step, result.at(run.output), run.length});
    });
  });
}

// --- Schemas -------------------------------------------------------------------------------------

struct BinaryOp {
  const char* name;
  std::vector<int> versions;
  TypeSet types;
  void (*infer)(InferContext& context);
  uint32_t traits = kNoTrait;  // in addition to kElementwise
};

const BinaryOp kBinaryOps[] = {
    {"Add", {6, 7, 13, 14}, kNumericTypes, infer_binary, kBoundsMagnitude},
    {"And", {1, 7}, kBoolType, infer_predicate},
    {"BitShift", {11, 28}, kIntegerTypes, infer_shift},
    {"BitwiseAnd", {18}, kIntegerTypes, infer_binary},
    {"BitwiseOr", {18}, kIntegerTypes, infer_binary},
    {"BitwiseXor", {18}, kIntegerTypes, infer_binary},
    {"Div", {6, 7, 13, 14}, kNumericTypes, infer_binary},
    {"Equal", {1, 7, 11, 13, 19}, kAllTypesAndStrings, infer_predicate},
    {"Greater", {1, 7, 9, 13}, kNumericTypes, infer_predicate},
    {"GreaterOrEqual", {12, 16}, kNumericTypes, infer_predicate},
    {"Less", {1, 7, 9, 13}, kNumericTypes, infer_predicate},
    {"LessOrEqual", {12, 16}, kNumericTypes, infer_predicate},
    {"Mod", {10, 13, 28}, kNumericTypes, infer_mod},
    {"Mul", {6, 7, 13, 14}, kNumericTypes, infer_binary, kBoundsMagnitude},
    {"Or", {1, 7}, kBoolType, infer_predicate},
    {"Pow", {1, 7, 12, 13, 15}, kFloatTypes | kIndexTypes, infer_binary},
    {"Sub", {6, 7, 13, 14}, kNumericTypes, infer_binary},
    {"Xor", {1, 7}, kBoolType, infer_predicate},
};

Op binary_op(const BinaryOp& row) {
  const bool is_predicate = row.infer == infer_predicate;
  Op op = {.name = row.name,
           .versions = row.versions,
           .inputs = {{"A", "T"}, {"B", "T"}},
           .outputs = {{"C", is_predicate ? "T1" : "T"}},
           .type_variables = {{"T", row.types}},
           .traits = kElementwise | row.traits,
           .infer = row.infer,
           .kernel = run_binary};
  if (is_predicate) op.type_variables.push_back({"T1", kBoolType});
  if (row.versions.front() < kFirstNumpyVersion) {
    const int last = kFirstNumpyVersion - 1;
    op.attributes = {{"axis", AttributeKind::Int, std::nullopt, 1, last},
                     {"broadcast", AttributeKind::Int, int64_t{0}, 1, last}};
  }
  return op;
}

}  // namespace

std::vector<Op> binary_ops() {
  std::vector<Op> ops;
  for (const BinaryOp& row : kBinaryOps) {
    Op op = binary_op(row);
    if (op.name == "Mod") op.attributes = {{"fmod", AttributeKind::Int, int64_t{0}}};
    if (op.name == "Pow" || op.name == "BitShift") {
      op.inputs = {{"X", "T"}, {"Y", op.name == "Pow" ? "T1" : "T"}};
      op.outputs = {{"Z", "T"}};
    }
    if (op.name == "Pow") op.type_variables.push_back({"T1", kNumericTypes});
    if (op.name == "BitShift") {
      op.attributes = {{"direction", AttributeKind::String, std::nullopt, 1, kAnyVersion, true}};
    }
    ops.push_back(std::move(op));
  }
  return ops;
}

}  // namespace tessera::ops
