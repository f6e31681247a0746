// The rows of the table behind fusion_role.h, and declarations for the functions that lower nodes.
// Each lower_*.cc has the rows of one family of ops.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/lowering/fusion_role.h"
#include "ops/op.h"

namespace tessera::codegen {

// How far a result may be from that of the op's reference kernel, if both add up the elements of
// reductions in float64.
struct ErrorBound {
  double ulp = 0;    // 0: equal bits
  double least = 0;  // errors of results below this magnitude are measured in ulp of it
};

// A node that is being lowered.
struct Lowering {
  const Graph& graph;
  const Node& node;
  const NodeArguments& arguments;
  ExpressionBuilder& builder;
  bool has_reduction = false;  // whether more than one element is reduced to one

  DataType input_type(size_t index) const;
  DataType output_type() const;
  bool has_input(size_t index) const;
  // The element of an input.
  InstructionId input(size_t index) const;
  // Same as input(), in the type of the computation: 16-bit floats become float32.
  InstructionId number(size_t index) const;
  int64_t reduced_elements() const;
  // `x` itself if it is the only element.
  InstructionId reduce(Operation reduction, InstructionId x) const;
};

struct FusionRow {
  std::string_view op;
  FusionKind kind = FusionKind::None;
  ops::TypeSet types;  // of input 0
  // Appends the instructions of output 0. A result of another type than the output is converted as
  // Cast does. Null for ops that move elements.
  InstructionId (*lower)(const Lowering& lowering) = nullptr;
  // Sets `input_dims`, `reduced_axes`, `slices` and `concat_axis` of a role whose types and space
  // are known. Returns why the node has no role, or "".
  std::string (*place)(const Graph& graph, const Node& node, FusionRole& role) = nullptr;
  // 16-bit floats: 1 ulp of their type if `float32` allows any error.
  ErrorBound float32 = {};
  ErrorBound float64 = {};
  int since = 1;  // the versions of the op
  int until = ops::kAnyVersion;
};

std::span<const FusionRow> activation_rows();
std::span<const FusionRow> binary_rows();
std::span<const FusionRow> cast_rows();
std::span<const FusionRow> normalization_rows();
std::span<const FusionRow> part_rows();
std::span<const FusionRow> power_rows();
std::span<const FusionRow> reduction_rows();
std::span<const FusionRow> selection_rows();
std::span<const FusionRow> unary_rows();

// All rows.
std::vector<FusionRow> fusion_rows();

// --- Dimensions ----------------------------------------------------------------------------------

// The dimensions of a value whose type is known; 1 for a scalar.
std::vector<int64_t> dims_of(const Graph& graph, ValueId value);
// `dims` with ones in front up to `rank`.
std::vector<int64_t> padded(std::vector<int64_t> dims, size_t rank);

// Rules for FusionRow::place. All inputs are broadcast as in NumPy.
std::string place_broadcast(const Graph& graph, const Node& node, FusionRole& role);
// Input 0 is read element by element; the others are not.
std::string place_first(const Graph& graph, const Node& node, FusionRole& role);
// Two inputs, of which the right one is aligned as the attributes say (before version 7).
std::string place_aligned(const Graph& graph, const Node& node, FusionRole& role);

// --- Constants -----------------------------------------------------------------------------------

// The elements of a constant of at most 64 elements; nullopt for others, and for values that are
// known only in a run.
std::optional<Tensor> small_constant(const Graph& graph, ValueId value);
// The single element of such a constant: rounded to float64, or of an integer.
std::optional<double> constant_number(const Graph& graph, ValueId value);
std::optional<int64_t> constant_integer(const Graph& graph, ValueId value);

// --- Types ---------------------------------------------------------------------------------------

bool is_half(DataType type);            // float16, bfloat16
DataType computed_type(DataType type);  // float32 for 16-bit floats, else `type`

// `x` in another type, by the rules of ops/convert_elements.h.
InstructionId converted(ExpressionBuilder& builder, InstructionId x, DataType to);

}  // namespace tessera::codegen
