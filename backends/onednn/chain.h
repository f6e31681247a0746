// What can be computed behind a primitive in the same pass over its result, as post-operations:
// functions of one variable, and sums, products and so on with further operands.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "composite.h"
#include "dnnl.hpp"
#include "eltwise.h"
#include "formats.h"
#include "primitive.h"
#include "tessera/backend.h"

namespace tessera::onednn {

// One post-operation: a function, or (where `operand` is a value) an arithmetic with an operand on
// the right.
struct PostOperation {
  Eltwise function;
  dnnl::algorithm arithmetic = dnnl::algorithm::undef;
  int32_t operand = -1;
};

// What one node, or several that are one function, do with the value before.
struct ChainStep {
  std::vector<int32_t> nodes;
  std::vector<PostOperation> operations;
  int32_t result = -1;  // value
};

// How many of the steps' operations read that value.
int64_t count_reads(const std::vector<ChainStep>& steps, int32_t value);

// The functions of a graph that several nodes write out, by what they read. Context::chains() has
// them.
class Chains {
 public:
  // `nan` is TESSERA_NAN_: what the steps may do with it.
  Chains(const plugin::Graph& graph, int32_t nan);

  // What may follow `value`, as far as each step alone reads what comes before it. Every operand
  // broadcasts to `value`, and every result has its type.
  std::vector<ChainStep> after(const plugin::Value& value) const;

  const std::vector<Composite>& composites() const { return composites_; }

 private:
  std::optional<ChainStep> step_after(const plugin::Value& value, bool is_behind_product) const;

  plugin::Graph graph_;
  int32_t nan_;
  std::vector<Composite> composites_;
  std::unordered_map<int32_t, std::vector<size_t>> from_value_;  // composites by their input
};

// The arithmetic of oneDNN for an op of two or more inputs ("Add", "Sum", "Max"...).
std::optional<dnnl::algorithm> arithmetic_of(std::string_view op);

// Whether that gives the other operand for NaN.
bool loses_nan(dnnl::algorithm arithmetic);

// Whether `operand` broadcasts to `type` without changing it, both known float32.
bool broadcasts_to(const plugin::Type& operand, const plugin::Type& type);

// `dims` with ones in front, up to `rank` axes.
std::vector<int64_t> with_rank(std::vector<int64_t> dims, size_t rank);

// How a primitive sees the axes of a value: axis i is the product of the value's next groups[i]
// axes. Axes of no group at all are {1}.
struct AxisView {
  std::vector<size_t> groups;

  // A tensor that broadcasts to `full`, seen so; nullopt where a group is broadcast only in part.
  std::optional<std::vector<int64_t>> of(const std::vector<int64_t>& dims,
                                         const std::vector<int64_t>& full) const;
};

// The axes as they are.
AxisView plain_view(size_t rank);

// How the result of a primitive lies in memory, and what it is seen as.
struct ResultView {
  std::vector<int64_t> dims;  // of the value
  AxisView axes;              // row-major only; in the other formats the axes are as they are
  Format format = Format::RowMajor;
};

// How `value` is read in `format` by something that sees it with the sizes `dims`; nullopt where it
// cannot be.
struct OperandForm {
  dnnl::memory::desc stored;
  dnnl::memory::desc wanted;
  const char* layout = nullptr;  // null: a constant, packed from `stored` to `wanted`
};
std::optional<OperandForm> operand_form(const plugin::Value& value,
                                        const std::vector<int64_t>& dims, Format format);

// Names to `offer` what `argument` reads.
void read_operand(PrimitiveOffer& offer, int argument, const plugin::Value& value,
                  const OperandForm& form);

// The post-operations of a primitive, and what they read.
class PostOperations {
 public:
  explicit PostOperations(const plugin::Graph& graph) : graph_(graph) {}

  void append(const Eltwise& function);
  // False where a primitive with such a result cannot read the operand; then nothing is appended.
  bool append(const PostOperation& operation, const ResultView& view);
  bool append(const ChainStep& step, const ResultView& view);
  // The primitive adds to what its output holds: `operand`, of the result's type.
  void append_sum(int32_t operand);

  const dnnl::post_ops& operations() const { return operations_; }
  // Whether there is a function that the library's portable code is no use for: its Sigmoid loses
  // NaN, its PReLU takes up to 80 times as long as the whole convolution before it.
  bool needs_compiled_code() const { return needs_compiled_code_; }
  // Equal for operations that are equal to the library.
  const std::string& key() const { return key_; }
  // Names to `offer`, whose last output is the result, what the operations read.
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
