// Einsum as products of two operands at a time, which have kernels in all libraries, with
// ReduceSum, Transpose and Reshape around them.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ops/matmul/einsum_equation.h"
#include "ops/shape_rules.h"
#include "rewrite/lower_functions.h"

namespace tessera {
namespace {

using Indices = std::vector<int>;

bool contains(const Indices& indices, int index) {
  return std::ranges::find(indices, index) != indices.end();
}

bool is_distinct(const Indices& indices) {
  return std::set<int>(indices.begin(), indices.end()).size() == indices.size();
}

Indices joined(std::initializer_list<Indices> parts) {
  Indices all;
  for (const Indices& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// An operand, and the index of each of its axes.
struct Operand {
  ValueId value;
  Indices indices;
};

// The indices of a product by what they are there. None belongs to one operand alone and is summed
// over.
struct Roles {
  Indices batch;    // of both and the result
  Indices rows;     // of the left and the result
  Indices columns;  // of the right and the result
  Indices depth;    // of both, summed over
};

Roles roles_of(const Indices& left, const Indices& right, const Indices& result) {
  Roles roles;
  for (const int index : result) {
    const bool is_left = contains(left, index);
    const bool is_right = contains(right, index);
    (is_left && is_right ? roles.batch : is_left ? roles.rows : roles.columns).push_back(index);
  }
  std::ranges::copy_if(left, std::back_inserter(roles.depth),
                       [&](int index) { return !contains(result, index); });
  return roles;
}

// The target of a Reshape: the batch stays, then each group is one axis if it is merged, or becomes
// its axes again. nullopt if more than one length is unknown.
struct Group {
  Shape lengths;
  bool is_merged = false;
};

std::optional<std::vector<int64_t>> target_of(size_t batch, const std::vector<Group>& groups) {
  std::vector<int64_t> target(batch, 0);
  for (const Group& group : groups) {
    Shape lengths = group.lengths;
    if (group.is_merged) lengths = {ops::product(group.lengths)};
    for (const Dim& length : lengths) target.push_back(length.is_known() ? length.value() : -1);
  }
  if (std::ranges::count(target, -1) > 1) return std::nullopt;
  return target;
}

class EinsumLowering {
 public:
  explicit EinsumLowering(NodeBuilder& builder) : builder_(builder) {}

  bool write() {
    if (!read()) return false;
    Operand result = std::exchange(operands_.front(), {});
    operands_.erase(operands_.begin());
    while (!operands_.empty()) {
      const auto next = next_for(result);
      if (next == operands_.end()) return false;
      Operand other = std::move(*next);
      operands_.erase(next);
      std::optional<Operand> product = multiply(std::move(result), std::move(other));
      if (!product) return false;
      result = *std::move(product);
    }
    result = summed(std::move(result), output_);
    give_as(builder_, 0, transposed(result, output_),
            builder_.element_of(builder_.replaced().inputs[0]));
    return true;
  }

 private:
  // False if the equation has a form, or the operands a type or lengths, that are left to the op.
  bool read() {
    std::vector<int64_t> ranks;
    const std::vector<ValueId>& inputs = builder_.replaced().inputs;
    for (const ValueId id : inputs) {
      ranks.push_back(builder_.rank_of(id));
      if (ranks.back() < 0) return false;
    }
    for (const char* op : {"MatMul", "ReduceSum"}) {
      if (!builder_.has_type(op, builder_.element_of(inputs[0]))) return false;
    }
    ops::EinsumEquation equation;
    const std::string& text = builder_.replaced().attributes.get_string("equation");
    if (!ops::read_einsum(text, ranks, equation).empty()) return false;
    for (size_t index = 0; index < inputs.size(); ++index) {
      operands_.push_back({widened(builder_, inputs[index]),
                           {equation.operands[index].begin(), equation.operands[index].end()}});
      if (!is_distinct(operands_.back().indices) || !read_lengths(operands_.back())) return false;
    }
    output_.assign(equation.output.begin(), equation.output.end());
    return true;
  }

  // Notes the length of each index; false if one is 0 or differs from that of another operand.
  bool read_lengths(const Operand& operand) {
    const Shape& shape = *builder_.type_of(operand.value).shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == Dim(0)) return false;
      const int index = operand.indices[axis];
      if (!lengths_.try_emplace(index, shape[axis]).second && lengths_.at(index) != shape[axis]) {
        return false;
      }
    }
    return true;
  }

  // The operand that is multiplied next: one with a common index, because products of others may be
  // much larger than all operands. Of the last two, any.
  std::vector<Operand>::iterator next_for(const Operand& left) {
    const auto found = std::ranges::find_if(operands_, [&](const Operand& operand) {
      return std::ranges::any_of(operand.indices,
                                 [&](int index) { return contains(left.indices, index); });
    });
    return found == operands_.end() && operands_.size() == 1 ? operands_.begin() : found;
  }

  // Whether an index is in the output, or in an operand that is not multiplied yet.
  bool is_needed(int index) const {
    return contains(output_, index) || std::ranges::any_of(operands_, [&](const Operand& operand) {
             return contains(operand.indices, index);
           });
  }

  std::optional<Operand> multiply(Operand left, Operand right) {
    Indices kept;
    for (const Indices& indices : {output_, left.indices, right.indices}) {
      for (const int index : indices) {
        const bool is_of_both = contains(left.indices, index) || contains(right.indices, index);
        if (is_of_both && is_needed(index) && !contains(kept, index)) kept.push_back(index);
      }
    }
    left = summed(std::move(left), joined({kept, right.indices}));
    right = summed(std::move(right), joined({kept, left.indices}));
    // Then the result need not be transposed.
    if (!kept.empty() && !contains(right.indices, kept.back())) std::swap(left, right);
    return product_of(left, right, roles_of(left.indices, right.indices, kept));
  }

  // The sum over all indices that are not in `kept`.
  Operand summed(Operand operand, const Indices& kept) {
    std::vector<int64_t> axes;
    Indices left;
    for (size_t axis = 0; axis < operand.indices.size(); ++axis) {
      if (contains(kept, operand.indices[axis])) {
        left.push_back(operand.indices[axis]);
      } else {
        axes.push_back(static_cast<int64_t>(axis));
      }
    }
    if (axes.empty()) return operand;
    return {builder_.add("ReduceSum", {operand.value, builder_.integers(axes)},
                         attribute_list({{"keepdims", int64_t{0}}})),
            left};
  }

  std::optional<Operand> product_of(const Operand& left, const Operand& right, const Roles& roles) {
    const auto is_single = [](const Indices& indices) { return indices.size() == 1; };
    // MatMul takes any number of axes of rows if the right side is one matrix.
    const bool keeps_rows = roles.batch.empty() && !roles.rows.empty() &&
                            is_single(roles.columns) && is_single(roles.depth);
    const bool is_plain = is_single(roles.depth) && (keeps_rows || is_single(roles.rows));
    const bool is_right_plain = is_single(roles.depth) && is_single(roles.columns);
    const bool is_result_plain = is_single(roles.columns) && (keeps_rows || is_single(roles.rows));
    const size_t batch = roles.batch.size();
    const Shape rows = shape_of(roles.rows);
    const Shape columns = shape_of(roles.columns);
    const Shape depth = shape_of(roles.depth);
    const auto left_target = target_of(batch, {{rows, true}, {depth, true}});
    const auto right_target = target_of(batch, {{depth, true}, {columns, true}});
    const auto result_target = target_of(batch, {{rows, false}, {columns, false}});
    if ((!is_plain && !left_target) || (!is_right_plain && !right_target) ||
        (!is_result_plain && !result_target)) {
      return std::nullopt;
    }
    ValueId a = transposed(left, joined({roles.batch, roles.rows, roles.depth}));
    if (!is_plain) a = reshaped(a, *left_target);
    ValueId b = transposed(right, joined({roles.batch, roles.depth, roles.columns}));
    if (!is_right_plain) b = reshaped(b, *right_target);
    ValueId result = builder_.add("MatMul", {a, b});
    builder_.keep_name(result);
    if (!is_result_plain) result = reshaped(result, *result_target);
    return Operand{result, joined({roles.batch, roles.rows, roles.columns})};
  }

  Shape shape_of(const Indices& indices) const {
    Shape shape;
    for (const int index : indices) shape.push_back(lengths_.at(index));
    return shape;
  }

  ValueId transposed(const Operand& from, const Indices& to) {
    if (from.indices == to) return from.value;
    std::vector<int64_t> axes;
    for (const int index : to) {
      axes.push_back(std::ranges::find(from.indices, index) - from.indices.begin());
    }
    return builder_.add("Transpose", {from.value}, attribute_list({{"perm", axes}}));
  }

  ValueId reshaped(ValueId from, const std::vector<int64_t>& target) {
    return builder_.add("Reshape", {from, builder_.integers(target)});
  }

  NodeBuilder& builder_;
  std::vector<Operand> operands_;  // that are not multiplied yet
  Indices output_;
  std::map<int, Dim> lengths_;  // by index
};

bool write_einsum(NodeBuilder& builder) { return EinsumLowering(builder).write(); }

constexpr FunctionLowering kEinsum[] = {{"", "Einsum", write_einsum}};

}  // namespace

std::span<const FunctionLowering> einsum_lowerings() { return kEinsum; }

}  // namespace tessera
