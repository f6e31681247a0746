#include "api/tensor_files/npy_header.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include "base/errors/check.h"
#include "tessera/error.h"

namespace tessera {
namespace {

struct ElementCode {
  std::string_view code;
  DataType type;
};

// The first code of a type is used for writing. NumPy has no bfloat16 and no small types: it writes
// those of another package as voids, all but one.
constexpr std::array kElementCodes = {
    ElementCode{"|b1", DataType::Bool},     ElementCode{"|i1", DataType::Int8},
    ElementCode{"<i2", DataType::Int16},    ElementCode{"<i4", DataType::Int32},
    ElementCode{"<i8", DataType::Int64},    ElementCode{"|u1", DataType::UInt8},
    ElementCode{"<u2", DataType::UInt16},   ElementCode{"<u4", DataType::UInt32},
    ElementCode{"<u8", DataType::UInt64},   ElementCode{"<f2", DataType::Float16},
    ElementCode{"|V2", DataType::BFloat16}, ElementCode{"<f4", DataType::Float32},
    ElementCode{"<f8", DataType::Float64},  ElementCode{"<b1", DataType::Bool},
    ElementCode{"<i1", DataType::Int8},     ElementCode{"<u1", DataType::UInt8},
    ElementCode{"<V2", DataType::BFloat16}, ElementCode{"<f1", DataType::Float8E5M2},
};
// A small type that the file does not tell.
constexpr std::array<std::string_view, 2> kSmallCodes = {"|V1", "<V1"};

// More dimensions than NumPy supports mean that the file is damaged.
constexpr size_t kMaxRank = 64;

// Parses the subset of Python's literals that the format allows.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_type = false;
    bool has_order = false;
    bool has_dims = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = parse_string();
      expect(':');
      if (key == "descr" && !std::exchange(has_type, true)) {
        parse_type(header);
      } else if (key == "fortran_order" && !std::exchange(has_order, true)) {
        header.is_fortran_order = parse_bool();
      } else if (key == "shape" && !std::exchange(has_dims, true)) {
        header.dims = parse_dims();
      } else {
        refuse("the keys 'descr', 'fortran_order' and 'shape', once each", "'" + key + "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!at_end()) refuse("nothing after the closing brace", rest());
    if (!has_type || !has_order || !has_dims) {
      refuse("the keys 'descr', 'fortran_order' and 'shape'", "a header without one of them");
    }
    return header;
  }

 private:
  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const {
    throw Error(ErrorKind::InvalidArgument, where_,
                "the .npy header is damaged: expected " + expected + ", found " + found);
  }

  void skip_spaces() {
    while (position_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[position_]) != std::string_view::npos) {
      ++position_;
    }
  }

  bool at_end() {
    skip_spaces();
    return position_ == text_.size();
  }

  // The next characters, short enough for a message.
  std::string rest() const {
    if (position_ >= text_.size()) return "the end";
    return "'" + std::string(text_.substr(position_, 20)) + "'";
  }

  bool accept(char wanted) {
    if (at_end() || text_[position_] != wanted) return false;
    ++position_;
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) refuse(std::string("'") + wanted + "'", rest());
  }

  std::string parse_string() {
    const bool is_text = !at_end() && (text_[position_] == '\'' || text_[position_] == '"');
    if (!is_text) refuse("a string", rest());
    const char quote = text_[position_++];
    const size_t end = text_.find(quote, position_);
    if (end == std::string_view::npos) refuse("the end of a string", rest());
    std::string result(text_.substr(position_, end - position_));
    position_ = end + 1;
    return result;
  }

  void parse_type(NpyHeader& header) {
    if (!at_end() && text_[position_] == '[') {
      refuse_elements("a structured type, " + rest());
    }
    const std::string file_code = parse_string();
    std::string code = file_code;
    header.is_big_endian = code.starts_with('>');
    if (header.is_big_endian) code[0] = '<';
    if (parse_strings(code, header)) return;
    header.is_untold = std::ranges::find(kSmallCodes, code) != kSmallCodes.end();
    if (header.is_untold) return;
    const auto* const found =
        std::find_if(kElementCodes.begin(), kElementCodes.end(),
                     [&](const ElementCode& element) { return element.code == code; });
    if (found == kElementCodes.end()) {
      refuse_elements("'" + file_code.substr(0, 40) + "'");
    }
    header.type = found->type;
  }

  // Whether `code` is "<U5", of five characters, or "|S5", of five bytes.
  static bool parse_strings(const std::string& code, NpyHeader& header) {
    constexpr int64_t kMaxLength = int64_t{1} << 40;
    const bool is_wide = code.starts_with("<U");
    if (!is_wide && !code.starts_with("|S")) return false;
    int64_t length = 0;
    const char* const end = code.data() + code.size();
    const auto [stop, error] = std::from_chars(code.data() + 2, end, length);
    if (stop != end || error != std::errc() || length < 0 || length > kMaxLength) return false;
    header.type = DataType::String;
    header.character_bytes = is_wide ? 4 : 1;
    header.string_bytes = length * header.character_bytes;
    return true;
  }

  [[noreturn]] void refuse_elements(const std::string& found) const {
    throw Error(ErrorKind::InvalidArgument, where_,
                "expected booleans, integers, floating-point numbers of 16 to 64 "
                "bits, or strings (U, S), found elements of type " +
                    found);
  }

  bool parse_bool() {
    skip_spaces();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(position_, word.size()) == word) {
        position_ += word.size();
        return value;
      }
    }
    refuse("True or False", rest());
  }

  std::vector<int64_t> parse_dims() {
    std::vector<int64_t> dims;
    expect('(');
    while (!accept(')')) {
      if (dims.size() == kMaxRank) refuse("at most 64 dimensions", "more");
      dims.push_back(parse_dim());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return dims;
  }

  int64_t parse_dim() {
    skip_spaces();
    int64_t value = 0;
    const char* const begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) refuse("a dimension of at most 63 bits", rest());
    position_ += static_cast<size_t>(end - begin);
    // Python 2 wrote long integers with the suffix L.
    if (position_ < text_.size() && text_[position_] == 'L') ++position_;
    return value;
  }

  std::string_view text_;
  const std::string& where_;
  size_t position_ = 0;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text, const std::string& where) {
  return HeaderParser(text, where).parse();
}

namespace {

std::string code_of(const NpyHeader& header) {
  // NumPy cannot read "<f1".
  if (is_small(header.type)) return std::string(kSmallCodes[0]);
  if (header.type == DataType::String) return "<U" + std::to_string(header.string_bytes / 4);
  const auto* const element =
      std::find_if(kElementCodes.begin(), kElementCodes.end(),
                   [&](const ElementCode& candidate) { return candidate.type == header.type; });
  TESSERA_CHECK(element != kElementCodes.end(), "only elements with a size can be in a file");
  return std::string(element->code);
}

}  // namespace

std::string npy_header_text(const NpyHeader& header) {
  std::string shape;
  for (const int64_t dim : header.dims) {
    shape += (shape.empty() ? "" : ", ") + std::to_string(dim);
  }
  if (header.dims.size() == 1) shape += ",";
  return "{'descr': '" + code_of(header) + "', 'fortran_order': False, 'shape': (" + shape + "), }";
}

}  // namespace tessera
