#include "ir_writer.h"

#include "tessera/backend.h"

namespace tessera::jit {

using plugin::Failure;

const IrType& ir_type(int32_t data_type) {
  static constexpr IrType kTypes[] = {
      {},
      {"i8", "i1", "i1", 1, false, false},         // bool
      {"i8", "i8", "i8", 1, false, true},          // int8
      {"i16", "i16", "i16", 2, false, true},       // int16
      {"i32", "i32", "i32", 4, false, true},       // int32
      {"i64", "i64", "i64", 8, false, true},       // int64
      {"i8", "i8", "i8", 1, false, false},         // uint8
      {"i16", "i16", "i16", 2, false, false},      // uint16
      {"i32", "i32", "i32", 4, false, false},      // uint32
      {"i64", "i64", "i64", 8, false, false},      // uint64
      {"i16", "i16", "i16", 2, false, false},      // float16
      {"i16", "i16", "i16", 2, false, false},      // bfloat16
      {"float", "float", "f32", 4, true, true},    // float32
      {"double", "double", "f64", 8, true, true},  // float64
  };
  if (data_type < TESSERA_BOOL || data_type > TESSERA_FLOAT64) {
    throw Failure(TESSERA_UNSUPPORTED, "has no compiled kernels for this element type");
  }
  return kTypes[data_type];
}

std::string of_lanes(std::string_view type, int lanes) {
  if (lanes == 1) return std::string(type);
  return "<" + std::to_string(lanes) + " x " + std::string(type) + ">";
}

void IrWriter::begin_function(std::string_view name, std::string_view parameters) {
  header_ =
      "define void @" + std::string(name) + "(" + std::string(parameters) + ") #0 {\nentry:\n";
  variables_.clear();
  body_.clear();
}

void IrWriter::end_function() { functions_ += header_ + variables_ + body_ + "  ret void\n}\n\n"; }

std::string IrWriter::value(const std::string& right_side) {
  std::string name = "%t" + std::to_string(count_++);
  body_ += "  " + name + " = " + right_side + "\n";
  return name;
}

std::string IrWriter::variable(const std::string& type) {
  std::string name = "%t" + std::to_string(count_++);
  variables_ += "  " + name + " = alloca " + type + "\n";
  return name;
}

std::string IrWriter::counter(const std::string& first) {
  std::string counter = variable("i64");
  line("store i64 " + first + ", ptr " + counter);
  return counter;
}

std::string IrWriter::advanced(const std::string& pointer, const std::string& index,
                               const std::string& step) {
  const std::string offset = value("mul nsw i64 " + index + ", " + step);
  return value("getelementptr i8, ptr " + pointer + ", i64 " + offset);
}

std::string IrWriter::new_label() { return "b" + std::to_string(count_++); }

std::string IrWriter::call(const std::string& result, const std::string& intrinsic,
                           const std::vector<std::pair<std::string, std::string>>& arguments) {
  std::string given;
  std::string types;
  for (const auto& [type, argument] : arguments) {
    given += (given.empty() ? "" : ", ") + type + " " + argument;
    types += (types.empty() ? "" : ", ") + type;
  }
  const std::string returned = result.empty() ? "void" : result;
  declarations_.insert("declare " + returned + " @" + intrinsic + "(" + types + ")\n");
  const std::string text = "call " + returned + " @" + intrinsic + "(" + given + ")";
  if (!result.empty()) return value(text);
  line(text);
  return "";
}

std::string IrWriter::splat(std::string_view type, const std::string& scalar, int lanes) {
  if (lanes == 1) return scalar;
  const std::string vector = of_lanes(type, lanes);
  const std::string first =
      value("insertelement " + vector + " poison, " + std::string(type) + " " + scalar + ", i64 0");
  return value("shufflevector " + vector + " " + first + ", " + vector + " poison, " +
               of_lanes("i32", lanes) + " zeroinitializer");
}

std::string IrWriter::module_text(const std::string& head, const std::string& tail) const {
  std::string text = head + functions_;
  for (const std::string& declaration : declarations_) text += declaration;
  return text + tail;
}

}  // namespace tessera::jit
