// Chains of post-operations: what a primitive can compute on its result in the same pass, unary
// functions and arithmetic with further operands.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/eltwise.h"
#include "base/formats.h"
#include "base/primitive.h"
#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

// A unary function that models decompose into several nodes (Swish as Mul and Sigmoid, Gelu with
// Erf or Tanh) and that oneDNN computes as one (composite.cc). `function` of value `input` gives
// value `output`. No other node reads the values between.
struct Composite {
  Eltwise function;
  int32_t input = -1;
  int32_t output = -1;
  std::vector<int32_t> nodes;  // ascending
};

// All composites in `graph` that are exact enough (accuracy.h), grouped by their input, the largest
// first. With TESSERA_NAN_EXACT only those that keep NaN.
std::vector<Composite> find_composites(const plugin::Graph& graph, int32_t nan);

// Up to version 6, attributes say how operands broadcast.
constexpr int32_t kFirstBroadcastingVersion = 7;

// One post-operation: a unary function, or, if `operand` is a value, arithmetic with it on the
// right.
struct PostOperation {
  Eltwise function;
  dnnl::algorithm arithmetic = dnnl::algorithm::undef;
  int32_t operand = -1;
};

// The post-operations of one node, or of several nodes that are one function.
struct ChainStep {
  std::vector<int32_t> nodes;
  std::vector<PostOperation> operations;
  int32_t result = -1;  // value
};

// The number of operations of the steps that read the value.
int64_t count_reads(const std::vector<ChainStep>& steps, int32_t value);

// Composite functions of a graph, by the value that they read. Context::chains() holds them.
class Chains {
 public:
  // `nan` (TESSERA_NAN_...) says how the steps must treat NaN.
  Chains(const plugin::Graph& graph, int32_t nan);

  // The steps that can follow `value`, as long as each one alone reads the result before it. Every
  // operand broadcasts to `value`, and every result has its type.
  std::vector<ChainStep> after(const plugin::Value& value) const;

  const std::vector<Composite>& composites() const { return composites_; }

 private:
  std::optional<ChainStep> step_after(const plugin::Value& value, bool follows_matmul) const;

  plugin::Graph graph_;
  int32_t nan_;
  std::vector<Composite> composites_;
  std::unordered_map<int32_t, std::vector<size_t>> from_value_;  // composites by their input
};

// The algorithm of oneDNN for an op of two or more inputs ("Add", "Sum", "Max", ...).
std::optional<dnnl::algorithm> arithmetic_of(std::string_view op);

// Whether the algorithm gives the other operand for NaN.
bool loses_nan(dnnl::algorithm arithmetic);

// `dims` with leading ones, up to `rank` axes.
std::vector<int64_t> with_rank(std::vector<int64_t> dims, size_t rank);

// How a primitive sees the axes of a value: axis i merges the next groups[i] axes of the value. A
// group of no axes is {1}.
struct AxisView {
  std::vector<size_t> groups;

  // The sizes of a tensor that broadcasts to `full`, seen with these axes; nullopt if a group
  // broadcasts only in part.
  std::optional<std::vector<int64_t>> of(const std::vector<int64_t>& dims,
                                         const std::vector<int64_t>& full) const;
};

// Axes without merging.
AxisView plain_view(size_t rank);

// The layout of the result of a primitive, and the axes with which the primitive sees it.
struct ResultView {
  std::vector<int64_t> dims;  // of the value
  AxisView axes;              // row-major only; in the other formats the axes are as they are
  Format format = Format::RowMajor;
};

// How a primitive that sees `value` with the sizes `dims` reads it in `format`; nullopt if it
// cannot.
struct OperandForm {
  dnnl::memory::desc stored;
  dnnl::memory::desc wanted;
  const char* layout = nullptr;  // null: a constant, packed from `stored` to `wanted`
};
std::optional<OperandForm> operand_form(const plugin::Value& value,
                                        const std::vector<int64_t>& dims, Format format);

// Tells `offer` which tensor `argument` reads.
void read_operand(PrimitiveOffer& offer, int argument, const plugin::Value& value,
                  const OperandForm& form);

// The post-operations of a primitive, and their operands.
class PostOperations {
 public:
  explicit PostOperations(const plugin::Graph& graph) : graph_(graph) {}

  void append(const Eltwise& function);
  // False if a primitive with the result `view` cannot read the operand; then nothing is appended.
  bool append(const PostOperation& operation, const ResultView& view);
  bool append(const ChainStep& step, const ResultView& view);
  // The primitive adds to the content of its output: `operand`, of the type of the result.
  void append_sum(int32_t operand);

  const dnnl::post_ops& operations() const { return operations_; }
  // Whether a function must not be computed by the portable code of the library: its Sigmoid loses
  // NaN, its PReLU takes up to 80 times as long as a whole convolution.
  bool needs_compiled_code() const { return needs_compiled_code_; }
  // Equal for operations that the library treats as equal.
  const std::string& key() const { return key_; }
  // Tells `offer`, whose last output is the result, which tensors the operations read.
  void read_operands(PrimitiveOffer& offer) const;

 private:
  struct Operand {
    int argument = 0;
    int32_t value = -1;
    OperandForm form;
  };

  plugin::Graph graph_;
  dnnl::post_ops operations_;
  std::string key_;
  bool needs_compiled_code_ = false;
  std::vector<Operand> operands_;
  std::vector<int> slopes_;  // DNNL_ARG_ of PReLUs, which read a zero
  int32_t summed_ = -1;
};

}  // namespace tessera::onednn
