// Writes the lines of LLVM IR: names, labels, types, and the declarations of intrinsics.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::jit {

// An element type in LLVM IR. In memory a bool is a byte; in registers it is i1. 16-bit floats are
// their bits.
struct IrType {
  std::string_view memory;
  std::string_view value;
  std::string_view suffix;  // of the value, in names of intrinsics
  int bytes = 0;
  bool is_float = false;  // float32 and float64
  bool is_signed = false;
};

// Throws Failure (TESSERA_UNSUPPORTED) for types of which expressions have no elements.
const IrType& ir_type(int32_t data_type);

// "float", or "<16 x float>" with more than one lane.
std::string of_lanes(std::string_view type, int lanes);

class IrWriter {
 public:
  // Begins and ends a function without result. Allocas may be added while its body is written.
  void begin_function(std::string_view name, std::string_view parameters);
  void end_function();

  // Adds "%t1 = <right side>" and returns "%t1".
  std::string value(const std::string& right_side);
  void line(const std::string& text) { body_ += "  " + text + "\n"; }
  // The name of a new local variable; promoted to a register later.
  std::string variable(const std::string& type);
  // A variable for count_loop() that begins with a number.
  std::string counter(const std::string& first);
  // Prints body(number) in a loop over a counter from its present value, while it is below `limit`.
  template <class Body>
  void count_loop(const std::string& counter, const std::string& limit, const std::string& step,
                  const Body& body) {
    const std::string inside = new_label();
    const std::string after = new_label();
    const auto go_on = [&](const std::string& number) {
      const std::string is_inside = value("icmp slt i64 " + number + ", " + limit);
      line("br i1 " + is_inside + ", label %" + inside + ", label %" + after);
    };
    go_on(value("load i64, ptr " + counter));
    start_block(inside);
    const std::string number = value("load i64, ptr " + counter);
    body(number);
    const std::string next = value("add nuw nsw i64 " + number + ", " + step);
    line("store i64 " + next + ", ptr " + counter);
    go_on(next);
    start_block(after);
  }
  // Prints body() where `condition`, an i1, is true.
  template <class Body>
  void only_if(const std::string& condition, const Body& body) {
    const std::string inside = new_label();
    const std::string after = new_label();
    line("br i1 " + condition + ", label %" + inside + ", label %" + after);
    start_block(inside);
    body();
    line("br label %" + after);
    start_block(after);
  }
  // A pointer moved by `index` steps of `step` bytes.
  std::string advanced(const std::string& pointer, const std::string& index,
                       const std::string& step);
  std::string new_label();
  void start_block(const std::string& label) { body_ += label + ":\n"; }

  // `arguments` are pairs of type and value. "" as result type: none, and "" is returned.
  std::string call(const std::string& result, const std::string& intrinsic,
                   const std::vector<std::pair<std::string, std::string>>& arguments);
  // A vector with `scalar` in all lanes; the scalar itself for one lane.
  std::string splat(std::string_view type, const std::string& scalar, int lanes);

  // The functions, with the declarations that they need.
  std::string module_text(const std::string& head, const std::string& tail) const;

 private:
  int count_ = 0;
  std::string header_;
  std::string variables_;
  std::string body_;
  std::string functions_;
  std::set<std::string> declarations_;
};

}  // namespace tessera::jit
