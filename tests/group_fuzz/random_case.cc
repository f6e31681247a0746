#include "group_fuzz/random_case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string_view>
#include <vector>

#include "tessera/data_type.h"

namespace tessera::group_fuzz {
namespace {

using enum DataType;

constexpr int64_t kMaxElements = 1200;

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  size_t below(size_t count) { return static_cast<size_t>(engine_() % count); }
  bool is_one_of(size_t count) { return below(count) == 0; }
  template <class List>
  auto element(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  std::mt19937_64 engine_;
};

constexpr std::array kTypes = {Float32,  Float32, Float32, Float64, Float64, Float16,
                               BFloat16, Int8,    UInt8,   Int32,   Int64,   Bool,
                               Int16,    UInt16,  UInt32,  UInt64};
constexpr std::array kCastTypes = {Float32, Float32, Float64, Float16, BFloat16, Int8,
                                   UInt8,   Int32,   Int64,   Bool,    Int16};

// The number of an element type in the attribute `to` of Cast.
int onnx_number(DataType type) {
  switch (type) {
    case Float32:
      return 1;
    case UInt8:
      return 2;
    case Int8:
      return 3;
    case UInt16:
      return 4;
    case Int16:
      return 5;
    case Int32:
      return 6;
    case Int64:
      return 7;
    case Bool:
      return 9;
    case Float16:
      return 10;
    case Float64:
      return 11;
    case UInt32:
      return 12;
    case UInt64:
      return 13;
    default:
      return 16;
  }
}

// The known properties of a value.
struct Known {
  std::string text;  // as an input of a later node
  DataType type = Float32;
  std::vector<bool> is_one;  // by axis of the space: the value has a 1 there
  bool is_exact = true;      // all correct kernels give the same bits
  double bound = 5;          // of its magnitude
  bool is_positive = false;
};

class CaseMaker {
 public:
  CaseMaker(uint32_t seed, uint32_t size_seed, bool begins_with_product)
      : random_(seed), sizes_(size_seed ^ 0x9e3779b97f4a7c15U), has_product_(begins_with_product) {}

  RandomCase make() {
    rank_ = has_product_ ? 4 : 1 + random_.below(4);
    draw_sizes();
    if (has_product_) {
      add_product();
    } else {
      const DataType type = random_.element(kTypes);
      Known first;
      first.text = type_text(type) + dims_text(std::vector<bool>(rank_, false));
      first.type = type;
      first.is_one.assign(rank_, false);
      values_.push_back(std::move(first));
    }
    const size_t count = 2 + random_.below(9);
    for (size_t node = 0; node < count; ++node) add_node();
    return {std::move(text_), is_fragile_};
  }

 private:
  static bool is_float(DataType type) { return is_floating(type); }
  static bool is_wide(DataType type) { return type == Float32 || type == Float64; }

  // --- Values ------------------------------------------------------------------------------------

  void draw_sizes() {
    static constexpr std::array<int64_t, 22> kSizes = {
        1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 15, 16, 17, 23, 24, 31, 33, 40, 63, 65, 130, 257};
    int64_t elements = 1;
    for (size_t axis = rank_; axis-- > 0;) {
      int64_t size = sizes_.is_one_of(4) ? 1 + static_cast<int64_t>(sizes_.below(300))
                                         : sizes_.element(kSizes);
      if (axis + 1 < rank_ && size > 40) size = 1 + size % 40;
      size = std::min(size, std::max<int64_t>(1, kMaxElements / elements));
      elements *= size;
      dims_.insert(dims_.begin(), size);
    }
  }

  std::string type_text(DataType type) { return std::string(name(type)) + ":"; }

  std::string dims_text(const std::vector<bool>& is_one) {
    std::string text;
    for (size_t axis = 0; axis < rank_; ++axis) {
      text += (axis == 0 ? "" : "x") + std::to_string(is_one[axis] ? 1 : dims_[axis]);
    }
    return text;
  }

  Known new_input(DataType type, std::vector<bool> is_one) {
    Known value;
    // Leading axes of 1 are sometimes left out.
    std::string dims = dims_text(is_one);
    const bool is_leading_one = rank_ > 1 && is_one[0];
    if (is_leading_one && random_.is_one_of(2)) dims = dims.substr(dims.find('x') + 1);
    value.is_positive = random_.is_one_of(5);
    value.text = (random_.is_one_of(5) ? "#" : "");
    if (value.is_positive) value.text += "+";
    value.text += type_text(type) + dims;
    value.type = type;
    value.is_one = std::move(is_one);
    return value;
  }

  // A constant scalar.
  Known positive_scalar(DataType type) {
    return {"#+" + type_text(type) + "s", type, std::vector<bool>(rank_, true), true, 5, true};
  }

  std::vector<bool> random_ones() {
    std::vector<bool> is_one(rank_);
    for (size_t axis = 0; axis < rank_; ++axis) is_one[axis] = random_.is_one_of(2);
    return is_one;
  }

  const Known& pick() {
    const size_t count = values_.size();
    const size_t last = std::min<size_t>(count, 3);
    return values_[count - 1 - random_.below(random_.is_one_of(3) ? count : last)];
  }

  // Another operand of the type: an earlier value, an input of the whole size or a broadcast one,
  // or a number.
  Known other(DataType type) {
    if (random_.is_one_of(2)) {
      for (int attempt = 0; attempt < 6; ++attempt) {
        const Known& value = pick();
        if (value.type == type) return value;
      }
    }
    if (random_.is_one_of(4)) return positive_scalar(type);
    return new_input(type, random_.is_one_of(2) ? std::vector<bool>(rank_, false) : random_ones());
  }

  static std::vector<bool> joined(const std::vector<bool>& left, const std::vector<bool>& right) {
    std::vector<bool> both(left.size());
    for (size_t axis = 0; axis < left.size(); ++axis) both[axis] = left[axis] && right[axis];
    return both;
  }

  // Appends a node; its result has the facts of `made`.
  void add(std::string_view op, const std::vector<std::string>& inputs, Known made,
           std::string_view attributes = "") {
    if (nodes_ > 0) text_ += "; ";
    text_ += op;
    text_ += '(';
    for (size_t index = 0; index < inputs.size(); ++index) {
      text_ += (index == 0 ? "" : ", ") + inputs[index];
      note_input(inputs[index]);
    }
    text_ += ')';
    if (!attributes.empty()) {
      text_ += ' ';
      text_ += attributes;
    }
    made.text = "@" + std::to_string(nodes_++);
    made.bound = std::min(made.bound, 1e30);
    values_.push_back(std::move(made));
  }

  // Sets the text by which later nodes read an input of the graph that has just been declared.
  void note_input(const std::string& text) {
    if (std::string_view("@=#_{").find(text[0]) != std::string_view::npos) return;
    for (Known& value : values_) {
      if (value.text == text) value.text = "=" + std::to_string(inputs_);
    }
    ++inputs_;
  }

  // --- Nodes -------------------------------------------------------------------------------------

  void add_product() {
    const std::string rows = std::to_string(dims_[2]);
    const std::string columns = std::to_string(dims_[3]);
    const std::string outer = std::to_string(dims_[0]) + "x" + std::to_string(dims_[1]);
    const std::string inner = std::to_string(1 + sizes_.below(40));
    Known made{"", Float32, std::vector<bool>(4, false), false, 200, false};
    if (random_.is_one_of(2)) {
      add("MatMul", {outer + "x" + rows + "x" + inner, "#" + inner + "x" + columns}, made);
    } else {
      const std::string image = std::to_string(dims_[0]) + "x" + inner + "x" + rows + "x" + columns;
      add("Conv",
          {image, "#" + std::to_string(dims_[1]) + "x" + inner + "x3x3",
           "#" + std::to_string(dims_[1])},
          made, "pads=1,1,1,1");
    }
  }

  void add_node() {
    const Known x = pick();
    switch (random_.below(14)) {
      case 0:
      case 1:
        return add_cast(x);
      case 2:
      case 3:
      case 4:
        return add_comparison(x);
      case 5:
        return add_choice(x);
      case 6:
      case 7:
        return add_reduction(x);
      case 8:
      case 9:
        return add_binary(x);
      default:
        return add_unary(x);
    }
  }

  // All smaller whole numbers are numbers of the type.
  static double exact_up_to(DataType type) {
    switch (type) {
      case BFloat16:
        return 0x1p8;
      case Float16:
        return 0x1p11;
      case Float32:
        return 0x1p24;
      default:
        return 0x1p53;
    }
  }

  void add_cast(const Known& x) {
    const DataType to = random_.element(kCastTypes);
    if (to == x.type) return add_unary(x);
    const bool may_jump = is_float(x.type) && !is_float(to);
    // Conversions of numbers that do not fit are not defined.
    if (may_jump && to != Bool && (x.bound > 100 || to == UInt8)) return add_binary(x);
    if (may_jump && !allow_jump(x)) return add_unary(x);
    // Digits that a type lacks do not come back.
    if (is_float(to) && !x.is_exact && element_bytes(to) > element_bytes(x.type)) {
      return add_unary(x);
    }
    Known made = x;
    made.type = to;
    if (to == Bool) made.bound = 1;
    if (is_float(to) && x.bound > exact_up_to(to)) made.is_exact = false;
    if (is_float(x.type) && (to == Float16 || to == BFloat16) && x.bound > 1e4) return add_unary(x);
    add("Cast", {x.text}, std::move(made), "to=" + std::to_string(onnx_number(to)));
  }

  // Whether a function that jumps may be applied.
  bool allow_jump(const Known& x) {
    if (x.is_exact) return true;
    if (!is_wide(x.type)) return false;
    is_fragile_ = true;
    return true;
  }

  void add_comparison(const Known& x) {
    static constexpr std::array<std::string_view, 5> kOps = {"Equal", "Less", "LessOrEqual",
                                                             "Greater", "GreaterOrEqual"};
    const Known y = random_.is_one_of(6) ? x : other(x.type);
    const bool is_same = y.text == x.text && (x.text[0] == '@' || x.text[0] == '=');
    if (!is_same && (!allow_jump(x) || !allow_jump(y))) return add_unary(x);
    Known made{"", Bool, joined(x.is_one, y.is_one), true, 1, false};
    const std::string_view op = x.type == Bool ? kOps[0] : random_.element(kOps);
    add(op, {x.text, y.text}, std::move(made));
  }

  void add_choice(const Known& x) {
    const Known y = other(x.type);
    const Known condition = other(Bool);
    Known made = x;
    made.is_one = joined(joined(x.is_one, y.is_one), condition.is_one);
    made.is_exact = x.is_exact && y.is_exact;
    made.is_positive = x.is_positive && y.is_positive;
    made.bound = std::max(x.bound, y.bound);
    add("Where", {condition.text, x.text, y.text}, std::move(made));
  }

  void add_binary(const Known& x) {
    if (x.type == Bool) return add_logic(x);
    const Known y = other(x.type);
    Known made = x;
    made.is_one = joined(x.is_one, y.is_one);
    made.is_exact = x.is_exact && y.is_exact;
    made.is_positive = x.is_positive && y.is_positive;
    switch (random_.below(is_float(x.type) ? 6 : 9)) {
      case 0:
        made.bound = x.bound + y.bound;
        return add("Add", {x.text, y.text}, std::move(made));
      case 1:
        made.bound = x.bound + y.bound;
        made.is_positive = false;
        return add("Sub", {x.text, y.text}, std::move(made));
      case 2:
        made.bound = x.bound * y.bound;
        if (made.bound > 1e4 && is_float(x.type)) return add_unary(x);
        return add("Mul", {x.text, y.text}, std::move(made));
      case 3:
        made.bound = std::max(x.bound, y.bound);
        return add("Max", {x.text, y.text}, std::move(made));
      case 4:
        made.bound = std::max(x.bound, y.bound);
        return add("Min", {x.text, y.text}, std::move(made));
      case 5:
        return add_quotient(x, y);
      case 6:
        return add("BitwiseAnd", {x.text, y.text}, std::move(made));
      case 7:
        return add("BitwiseXor", {x.text, y.text}, std::move(made));
      default:
        return add("Mod", {x.text, positive_scalar(x.type).text}, x);
    }
  }

  void add_quotient(const Known& x, const Known& y) {
    const bool is_safe = is_float(x.type) && y.is_positive && y.is_exact && y.bound <= 5;
    const Known divisor = is_safe ? y : positive_scalar(x.type);
    Known made = x;
    made.is_one = joined(x.is_one, divisor.is_one);
    made.bound = 2 * x.bound;
    made.is_exact = x.is_exact && !is_float(x.type);
    add("Div", {x.text, divisor.text}, std::move(made));
  }

  void add_logic(const Known& x) {
    const Known y = other(Bool);
    Known made = x;
    made.is_one = joined(x.is_one, y.is_one);
    switch (random_.below(4)) {
      case 0:
        return add("And", {x.text, y.text}, std::move(made));
      case 1:
        return add("Or", {x.text, y.text}, std::move(made));
      case 2:
        return add("Xor", {x.text, y.text}, std::move(made));
      default:
        return add("Not", {x.text}, x);
    }
  }

  void add_unary(const Known& x) {
    if (x.type == Bool) return add("Not", {x.text}, x);
    if (!is_float(x.type)) {
      static constexpr std::array<std::string_view, 3> kOps = {"Abs", "Neg", "BitwiseNot"};
      const bool is_signed =
          x.type == Int8 || x.type == Int16 || x.type == Int32 || x.type == Int64;
      Known made = x;
      made.is_positive = false;
      const std::string_view op = is_signed ? random_.element(kOps) : kOps[2];
      if (op == "BitwiseNot") {
        made.bound = is_signed ? x.bound + 1 : std::exp2(8 * element_bytes(x.type));
      }
      return add(op, {x.text}, std::move(made));
    }
    switch (random_.below(3)) {
      case 0:
        return add_exact_function(x);
      case 1:
        return add_jump(x);
      default:
        return add_smooth_function(x);
    }
  }

  void add_exact_function(const Known& x) {
    static constexpr std::array<std::string_view, 3> kOps = {"Abs", "Neg", "Relu"};
    Known made = x;
    made.is_positive = false;
    add(random_.element(kOps), {x.text}, std::move(made));
  }

  void add_jump(const Known& x) {
    static constexpr std::array<std::string_view, 4> kOps = {"Floor", "Ceil", "Round", "Sign"};
    if (!x.is_exact || x.type == Float16 || x.type == BFloat16) return add_smooth_function(x);
    Known made = x;
    made.bound = x.bound + 1;
    made.is_positive = false;
    add(random_.element(kOps), {x.text}, std::move(made));
  }

  void add_smooth_function(const Known& x) {
    struct Function {
      std::string_view op;
      double bound = 0;     // of the result; 0: that of the argument
      double limit = 1e30;  // of the argument
      bool needs_exact_positive = false;
      std::string_view attributes;
    };
    static constexpr std::array<Function, 22> kFunctions = {{
        {"Sigmoid", 1},
        {"Tanh", 1},
        {"Erf", 1},
        {"Elu", 0},
        {"Celu", 0},
        {"Selu", 0},
        {"LeakyRelu", 0},
        {"HardSigmoid", 1},
        {"HardSwish", 0},
        {"Softplus", 0},
        {"Softsign", 1},
        {"ThresholdedRelu", 0},
        {"Gelu", 0},
        {"Mish", 0},
        {"Exp", 1500, 7},
        {"Sin", 1, 20},
        {"Cos", 1, 20},
        {"Atan", 1.6},
        {"Log", 5, 1e30, true},
        {"Sqrt", 0, 1e30, true},
        {"Reciprocal", 3, 1e30, true},
        {"Clip", 1},
    }};
    const Function& function = kFunctions[random_.below(kFunctions.size())];
    if (x.bound > function.limit) return add_exact_function(x);
    if (function.needs_exact_positive && !(x.is_positive && x.is_exact && x.bound <= 5)) {
      return add_exact_function(x);
    }
    // It jumps.
    if (function.op == "ThresholdedRelu" && !x.is_exact) return add_exact_function(x);
    Known made = x;
    made.is_exact = function.op == "Clip" && x.is_exact;
    made.is_positive = false;
    made.bound = function.bound == 0 ? x.bound + 2 : function.bound;
    if (function.op != "Clip") return add(function.op, {x.text}, std::move(made));
    add("Clip", {x.text, "_", positive_scalar(x.type).text}, std::move(made));
    values_.back().bound = x.bound + 2;
  }

  std::string random_axes(std::vector<bool>& is_one) {
    std::string axes;
    const bool is_last = random_.is_one_of(2);
    for (size_t axis = 0; axis < rank_; ++axis) {
      const bool is_reduced = is_last ? axis + 1 == rank_ : random_.is_one_of(2);
      if (!is_reduced) continue;
      axes += (axes.empty() ? "" : ",") + std::to_string(axis);
      is_one[axis] = true;
    }
    if (!axes.empty()) return axes;
    is_one[0] = true;
    return "0";
  }

  void add_reduction(const Known& x) {
    if (x.type == Bool) return add_logic(x);
    Known made = x;
    if (is_float(x.type) && random_.is_one_of(3) && x.bound <= 50) {
      made.is_exact = false;
      made.bound = random_.is_one_of(2) ? 1 : 60;
      const std::string axis =
          "axis=" + std::to_string(random_.is_one_of(2) ? rank_ - 1 : random_.below(rank_));
      const std::string_view op = made.bound == 1 ? "Softmax" : "LogSoftmax";
      return add(op, {x.text}, std::move(made), axis);
    }
    // Both have float16 sums of a few digits.
    const bool is_short = x.type == Float16 || x.type == BFloat16;
    static constexpr std::array<std::string_view, 7> kFloatOps = {
        "ReduceMax", "ReduceMin", "ReduceMean",     "ReduceSum",
        "ReduceL1",  "ReduceL2",  "ReduceSumSquare"};
    const bool can_sum = x.type == Int32 || x.type == Int64 || (is_float(x.type) && !is_short);
    const bool can_compare = can_sum || x.type == Int8 || x.type == UInt8 || is_short;
    if (!can_compare || x.bound > 1e3) return add_binary(x);
    const size_t count = !can_sum ? 2 : is_float(x.type) ? kFloatOps.size() : 4;
    const std::string_view op = kFloatOps[random_.below(count)];
    if (op == "ReduceMean" && !is_float(x.type)) return add_binary(x);
    const std::string axes = "{" + random_axes(made.is_one) + "}";
    const bool is_choice = op == "ReduceMax" || op == "ReduceMin";
    made.is_exact = x.is_exact && (is_choice || !is_float(x.type));
    made.is_positive = false;
    if (!is_choice) made.bound = 1e4 * x.bound * x.bound;
    add(op, {x.text, axes}, std::move(made), "keepdims=1");
  }

  Random random_;
  Random sizes_;
  bool has_product_;
  size_t rank_ = 1;
  std::vector<int64_t> dims_;
  std::vector<Known> values_;
  std::string text_;
  int nodes_ = 0;
  int inputs_ = 0;  // of the graph
  bool is_fragile_ = false;
};

}  // namespace

RandomCase random_case(uint32_t seed, uint32_t size_seed, bool begins_with_product) {
  return CaseMaker(seed, size_seed, begins_with_product).make();
}

}  // namespace tessera::group_fuzz
