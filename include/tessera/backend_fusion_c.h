// Prints fused groups as kernels in C-like languages. tessera/backend.h does not include this
// file.
//
//   const CKernel kernel = c_kernel(group, loop_nests(group, "").at(0));
//   const std::string source = c_source(group, kernel, dialect);
//   launch(source, kernel.group_items, kernel.groups);
//
// The kernel is called `fused`. Its arguments are a pointer for each port of `input_ports`, and
// then of `output_ports` (each followed by an offset in bytes if the dialect has them), and then
// `numbers` as int32. The source depends on the instructions, on which strides are 0 or 1 or equal
// to others, and on the way in which work-items walk; on sizes only as far as they decide that way.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tessera/backend_fusion_c_expression.h"  // IWYU pragma: export
#include "tessera/backend_fusion_c_kernel.h"      // IWYU pragma: export

namespace tessera::plugin {

namespace c_kernel_detail {

// Prints one kernel, part by part.
class CKernelPrinter {
 public:
  CKernelPrinter(const FusedGroup& group, const CKernel& kernel, const CDialect& dialect)
      : group_(group),
        kernel_(kernel),
        dialect_(dialect),
        expressions_(group, dialect),
        depths_(reduction_depths(group)) {
    set_varying();
  }

  std::string text() {
    text_ = "#define GROUP " + std::to_string(kernel_.group_items) + "\n" + dialect_.prelude +
            in_dialect(kFunctions, dialect_);
    if (uses(TESSERA_FLOAT16)) text_ += in_dialect(kFloat16Functions, dialect_);
    if (uses(TESSERA_BFLOAT16)) text_ += in_dialect(kBfloat16Functions, dialect_);
    print_declaration();
    text_ += " {\n";
    print_memory();
    print_row();
    const int passes = depths_.empty() ? 0 : *std::max_element(depths_.begin(), depths_.end());
    for (int pass = 0; pass <= passes; ++pass) {
      if (pass > 0) print_pass(pass);
      print_row_values(pass);
    }
    print_results();
    for (; indent_ > 1; --indent_) text_ += std::string(2 * (indent_ - 1), ' ') + "}\n";
    return text_ + "}\n";
  }

 private:
  bool uses(int32_t type) const {
    return std::any_of(group_.instructions.begin(), group_.instructions.end(),
                       [type](const Instruction& found) { return found.data_type == type; });
  }

  void line(const std::string& text) { text_ += std::string(2 * indent_, ' ') + text + "\n"; }
  void open(const std::string& text) {
    line(text + " {");
    ++indent_;
  }
  void close() {
    --indent_;
    line("}");
  }

  size_t access_of_result(size_t result) const { return group_.operands.size() + result; }

  bool varies(size_t access) const {
    return std::any_of(kernel_.reduced.begin(), kernel_.reduced.end(), [&](const LoopAxis& axis) {
      return axis.strides[kernel_.patterns[access]] != 0;
    });
  }

  // Same as varies_along_reduced_axes(), but by the axes of the loops, which are longer than 1.
  void set_varying() {
    for (const Instruction& instruction : group_.instructions) {
      bool is_varying = false;
      if (instruction.operation == TESSERA_EXPRESSION_OPERAND) {
        is_varying = varies(static_cast<size_t>(instruction.index));
      } else if (!is_reduction(instruction)) {
        for (int index = 0; index < argument_count(instruction.operation); ++index) {
          is_varying = is_varying || varying_[static_cast<size_t>(instruction.arguments[index])];
        }
      }
      varying_.push_back(is_varying);
    }
  }

  // --- Arguments and memory

  void print_declaration() {
    text_ += dialect_.kernel + " fused(";
    const std::string& byte = dialect_.types[TESSERA_UINT8];
    const auto print_ports = [&](const std::vector<int32_t>& ports, const char* name,
                                 const char* qualifier) {
      for (const int32_t port : ports) {
        const std::string port_name = name + std::to_string(port);
        if (text_.back() != '(') text_ += ", ";
        text_ += dialect_.global + qualifier + byte + "* " + port_name;
        if (!dialect_.offset_type.empty()) {
          text_ += ", " + dialect_.offset_type + " " + port_name + "_at";
        }
      }
    };
    print_ports(kernel_.input_ports, "input", "const ");
    print_ports(kernel_.output_ports, "output", "");
    for (const auto& [name, value] : kernel_.numbers) {
      text_ += (text_.back() == '(' ? "int " : ", int ") + name;
    }
    text_ += ")";
  }

  void print_pointer(const FusedAccess& access, size_t number, const char* port,
                     const std::string& qualifier) {
    const std::string type =
        dialect_.global + qualifier + expressions_.memory_type(access.data_type) + "*";
    const std::string name = port + std::to_string(access.port);
    const std::string base =
        dialect_.offset_type.empty() ? name : "(" + name + " + " + name + "_at)";
    line(type + " const x" + std::to_string(number) + " = (" + type + ")" + base +
         (kernel_.offsets[number] == 0 ? "" : " + offset" + std::to_string(number)) + ";");
  }

  void print_memory() {
    for (size_t index = 0; index < group_.operands.size(); ++index) {
      print_pointer(group_.operands[index], index, "input", "const ");
    }
    for (size_t index = 0; index < group_.results.size(); ++index) {
      print_pointer(group_.results[index], access_of_result(index), "output", "");
    }
    if (kernel_.walk != CWalk::GroupForRow) return;
    for (size_t id = 0; id < group_.instructions.size(); ++id) {
      if (!is_reduction(group_.instructions[id])) continue;
      line(dialect_.local + expressions_.type(group_.instructions[id].data_type) + " shared" +
           std::to_string(id) + "[GROUP];");
    }
  }

  // --- Indices

  // Declares the index along each axis from the number `index` of a point.
  void print_indices(const std::vector<LoopAxis>& axes, bool is_reduced, std::string index,
                     size_t count) {
    for (size_t axis = count; axis-- > 1;) {
      const std::string name = axis_name(is_reduced, axis);
      line("const int " + name + "_rest = QUOTIENT(" + index + ", " + name + ");");
      line("const int " + name + "_at = " + index + " - " + name + "_rest * " + name + ";");
      index = name + "_rest";
    }
    if (count > 0 && !axes.empty()) {
      line("const int " + axis_name(is_reduced, 0) + "_at = " + index + ";");
    }
  }

  // The sum of indices times strides; "" if all strides are 0.
  std::string position(const std::vector<LoopAxis>& axes, bool is_reduced, size_t pattern) const {
    std::string sum;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      const int64_t stride = axes[axis].strides[pattern];
      if (stride == 0) continue;
      const std::string name = axis_name(is_reduced, axis);
      sum += (sum.empty() ? "" : " + ") + name + "_at";
      if (stride != 1) sum += " * " + stride_name(pattern, name);
    }
    return sum;
  }

  void print_positions(const std::vector<LoopAxis>& axes, bool is_reduced) {
    const size_t patterns = axes.empty() ? 0 : axes[0].strides.size();
    for (size_t pattern = 0; pattern < patterns; ++pattern) {
      const std::string sum = position(axes, is_reduced, pattern);
      if (sum.empty()) continue;
      line(std::string("const int ") + (is_reduced ? "point" : "row") + std::to_string(pattern) +
           "_at = " + sum + ";");
    }
  }

  // The element that an access reaches at this row, and at this point of the row.
  std::string element(size_t access, bool is_at_point) const {
    const size_t pattern = kernel_.patterns[access];
    const std::string number = std::to_string(pattern) + "_at";
    const bool has_row = !position(kernel_.kept, false, pattern).empty();
    const bool has_point = is_at_point && !position(kernel_.reduced, true, pattern).empty();
    const std::string row = has_row ? "row" + number : "";
    const std::string point = has_point ? "point" + number : "";
    const std::string sum = row + (has_row && has_point ? " + " : "") + point;
    return "x" + std::to_string(access) + "[" + (sum.empty() ? "0" : sum) + "]";
  }

  // Begins the code of one row, whose indices and positions are then known.
  void print_row() {
    const std::vector<LoopAxis>& axes = kernel_.kept;
    if (kernel_.walk == CWalk::GroupForRow) {
      line("const int item = " + dialect_.item_number + ";");
      print_indices(axes, false, dialect_.group_number, axes.size());
    } else if (kernel_.walk == CWalk::ItemForRow) {
      line("const int row = " + dialect_.group_number + " * GROUP + " + dialect_.item_number + ";");
      open("if (row < rows)");
      print_indices(axes, false, "row", axes.size());
    } else {
      const std::string last = axis_name(false, axes.size() - 1);
      line("const int long_row = QUOTIENT(" + dialect_.group_number + ", axis_groups);");
      line("const int " + last + "_at = (" + dialect_.group_number +
           " - long_row * axis_groups) * GROUP + " + dialect_.item_number + ";");
      print_indices(axes, false, "long_row", axes.size() - 1);
      open("if (" + last + "_at < " + last + ")");
    }
    print_positions(axes, false);
  }

  // --- Values

  void print_value(size_t id, bool is_at_point) {
    const Instruction& instruction = group_.instructions[id];
    std::string text;
    if (instruction.operation == TESSERA_EXPRESSION_OPERAND) {
      text = element(static_cast<size_t>(instruction.index), is_at_point);
      if (instruction.data_type == TESSERA_BOOL) text += " != 0";
    } else {
      text = expressions_.text(instruction);
    }
    line("const " + expressions_.type(instruction.data_type) + " v" + std::to_string(id) + " = " +
         text + ";");
  }

  // Prints the values of depth `pass` that are the same for all points of the row.
  void print_row_values(int pass) {
    for (size_t id = 0; id < group_.instructions.size(); ++id) {
      if (varying_[id] || depths_[id] != pass || is_reduction(group_.instructions[id])) continue;
      print_value(id, false);
    }
  }

  // Marks the varying instructions on which marked ones depend.
  void mark_arguments(std::vector<bool>& marked) const {
    for (size_t id = marked.size(); id-- > 0;) {
      const Instruction& instruction = group_.instructions[id];
      if (!marked[id]) continue;
      for (int index = 0; index < argument_count(instruction.operation); ++index) {
        const auto argument = static_cast<size_t>(instruction.arguments[index]);
        if (varying_[argument]) marked[argument] = true;
      }
    }
  }

  // Begins a loop over the points of the row and computes the marked values there.
  void open_points(const std::vector<bool>& marked) {
    if (kernel_.walk == CWalk::GroupForRow) {
      open("for (int begin = 0; begin < row_points; begin += GROUP)");
      line("const int point = begin + item;");
      open("if (point < row_points)");
    } else {
      open("for (int point = 0; point < row_points; ++point)");
    }
    print_indices(kernel_.reduced, true, "point", kernel_.reduced.size());
    print_positions(kernel_.reduced, true);
    for (size_t id = 0; id < marked.size(); ++id) {
      if (marked[id] && varying_[id]) print_value(id, true);
    }
  }
  void close_points() {
    if (kernel_.walk == CWalk::GroupForRow) close();
    close();
  }

  bool is_float32_sum(size_t id) const {
    const Instruction& instruction = group_.instructions[id];
    return instruction.operation == TESSERA_EXPRESSION_REDUCE_SUM &&
           instruction.data_type == TESSERA_FLOAT32;
  }

  // One step of a reduction. A sum of float32, which may run through the whole row, keeps what its
  // additions lose to rounding (Knuth, The Art of Computer Programming 2, 4.2.2).
  void print_addition(size_t id) {
    const Instruction& instruction = group_.instructions[id];
    const std::string number = std::to_string(id);
    const std::string total = "total" + number;
    const std::string next = "v" + std::to_string(instruction.arguments[0]);
    if (!is_float32_sum(id)) {
      line(total + " = " + expressions_.combined(instruction, total, next) + ";");
      return;
    }
    const std::string sum = "sum" + number;
    const std::string part = "part" + number;
    line("const float " + sum + " = " + total + " + " + next + ";");
    line("const float " + part + " = " + sum + " - " + total + ";");
    line("lost" + number + " += (" + total + " - (" + sum + " - " + part + ")) + (" + next + " - " +
         part + ");");
    line(total + " = " + sum + ";");
  }

  // Computes the reductions of this depth.
  void print_pass(int depth) {
    std::vector<size_t> reductions;
    std::vector<bool> marked(group_.instructions.size(), false);
    for (size_t id = 0; id < group_.instructions.size(); ++id) {
      const Instruction& instruction = group_.instructions[id];
      if (!is_reduction(instruction) || depths_[id] != depth) continue;
      reductions.push_back(id);
      const auto argument = static_cast<size_t>(instruction.arguments[0]);
      if (varying_[argument]) marked[argument] = true;
      line(expressions_.type(instruction.data_type) + " total" + std::to_string(id) + " = " +
           expressions_.first(instruction) + ";");
      if (is_float32_sum(id)) line("float lost" + std::to_string(id) + " = 0;");
    }
    mark_arguments(marked);
    open_points(marked);
    for (const size_t id : reductions) print_addition(id);
    close_points();
    for (const size_t id : reductions) {
      if (!is_float32_sum(id)) continue;
      // If the sum is infinite, its lost part is NaN and must not be added.
      const std::string number = std::to_string(id);
      line("if (isfinite(lost" + number + ")) total" + number + " += lost" + number + ";");
    }
    print_totals(reductions);
  }

  void print_totals(const std::vector<size_t>& reductions) {
    const auto define = [&](size_t id, const std::string& text) {
      line("const " + expressions_.type(group_.instructions[id].data_type) + " v" +
           std::to_string(id) + " = " + text + ";");
    };
    if (kernel_.walk != CWalk::GroupForRow) {
      for (const size_t id : reductions) define(id, "total" + std::to_string(id));
      return;
    }
    for (const size_t id : reductions) {
      line("shared" + std::to_string(id) + "[item] = total" + std::to_string(id) + ";");
    }
    open("for (int half_group = GROUP / 2; half_group > 0; half_group /= 2)");
    line(dialect_.barrier + ";");
    open("if (item < half_group)");
    for (const size_t id : reductions) {
      const std::string shared = "shared" + std::to_string(id);
      line(shared + "[item] = " +
           expressions_.combined(group_.instructions[id], shared + "[item]",
                                 shared + "[item + half_group]") +
           ";");
    }
    close();
    close();
    line(dialect_.barrier + ";");
    for (const size_t id : reductions) define(id, "shared" + std::to_string(id) + "[0]");
  }

  // --- Results

  void print_store(size_t result, bool is_at_point) {
    const FusedAccess& access = group_.results[result];
    line(element(access_of_result(result), is_at_point) + " = v" +
         std::to_string(access.instruction) + ";");
  }

  void print_results() {
    std::vector<bool> marked(group_.instructions.size(), false);
    std::vector<size_t> of_points;
    std::vector<size_t> of_rows;
    for (size_t result = 0; result < group_.results.size(); ++result) {
      const auto id = static_cast<size_t>(group_.results[result].instruction);
      const bool is_of_point = varying_[id] || varies(access_of_result(result));
      (is_of_point ? of_points : of_rows).push_back(result);
      marked[id] = marked[id] || varying_[id];
    }
    if (!of_points.empty()) {
      mark_arguments(marked);
      open_points(marked);
      for (const size_t result : of_points) print_store(result, true);
      close_points();
    }
    if (of_rows.empty()) return;
    const bool is_group = kernel_.walk == CWalk::GroupForRow;
    if (is_group) open("if (item == 0)");
    for (const size_t result : of_rows) print_store(result, false);
    if (is_group) close();
  }

  const FusedGroup& group_;
  const CKernel& kernel_;
  const CDialect& dialect_;
  CExpressions expressions_;
  std::vector<int> depths_;
  std::vector<bool> varying_;  // by instruction
  std::string text_;
  size_t indent_ = 1;
};

}  // namespace c_kernel_detail

// The source of the kernel. Throws Failure (TESSERA_UNSUPPORTED) for operations that it does not
// know.
inline std::string c_source(const FusedGroup& group, const CKernel& kernel,
                            const CDialect& dialect) {
  return c_kernel_detail::CKernelPrinter(group, kernel, dialect).text();
}

}  // namespace tessera::plugin
