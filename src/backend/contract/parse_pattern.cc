// Parses the text of a pattern; pattern.cc searches for it in graphs.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

#include "backend/contract/pattern.h"
#include "tessera/error.h"

namespace tessera {
namespace {

bool is_letter(char character) { return std::isalpha(static_cast<unsigned char>(character)) != 0; }
bool is_digit(char character) { return std::isdigit(static_cast<unsigned char>(character)) != 0; }
bool is_space(char character) { return std::isspace(static_cast<unsigned char>(character)) != 0; }

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) { pattern_.text = text; }

  Pattern read() {
    do {
      if (at_end() && !pattern_.steps.empty()) break;
      read_step();
    } while (take(';'));
    if (!at_end()) fail("expected ';' or the end");
    plan_search();
    return std::move(pattern_);
  }

 private:
  // --- characters ---

  [[noreturn]] void fail_at(size_t index, const std::string& message) const {
    throw Error(ErrorKind::InvalidArgument,
                "pattern '" + std::string(text_) + "', character " + std::to_string(index + 1),
                message);
  }

  [[noreturn]] void fail(const std::string& expected) {
    const bool is_end = at_end();
    fail_at(position_, expected + ", found " +
                           (is_end ? "the end" : "'" + std::string(1, text_[position_]) + "'"));
  }

  bool at_end() {
    while (position_ < text_.size() && is_space(text_[position_])) ++position_;
    return position_ == text_.size();
  }
  char next() { return at_end() ? '\0' : text_[position_]; }
  bool take(char character) {
    if (next() != character) return false;
    ++position_;
    return true;
  }
  void expect(char character) {
    if (!take(character)) fail(std::string("expected '") + character + "'");
  }
  bool take_dots() {
    next();
    if (!text_.substr(position_).starts_with("...")) return false;
    position_ += 3;
    return true;
  }

  // A name: letters, digits, '_' and the characters of `more`; begins with a letter.
  std::string read_name(const char* what, std::string_view more = "") {
    if (!is_letter(next())) fail(std::string("expected ") + what);
    const size_t begin = position_;
    while (position_ < text_.size()) {
      const char each = text_[position_];
      if (!is_letter(each) && !is_digit(each) && each != '_' &&
          more.find(each) == std::string_view::npos) {
        break;
      }
      ++position_;
    }
    return std::string(text_.substr(begin, position_ - begin));
  }

  double read_number() {
    next();
    double value = 0;
    const char* begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || end == begin) fail("expected a number");
    position_ += static_cast<size_t>(end - begin);
    return value;
  }
  bool is_number_next() {
    const char first = next();
    return is_digit(first) || first == '-' || first == '.';
  }

  std::string read_text() {
    expect('\'');
    const size_t end = text_.find('\'', position_);
    if (end == std::string_view::npos)
      fail_at(position_ - 1, "this text has no end: expected \"'\"");
    std::string text(text_.substr(position_, end - position_));
    position_ = end + 1;
    return text;
  }

  // --- steps ---

  void read_step() {
    PatternStep step;
    // Only what follows shows whether this is a name or an op.
    next();
    const size_t begin = position_;
    std::string name = read_name("a step ('name = Op(inputs)')");
    const bool is_marked = take('!');
    if (take('=')) {
      const bool is_used = step_called(name).has_value();
      if (is_used) fail_at(begin, "there are two steps '" + name + "'");
      step.name = std::move(name);
      step.allows_outside_readers = is_marked;
    } else if (is_marked) {
      fail("expected '='");
    } else {
      position_ = begin;
    }
    begins_.push_back(begin);
    do {
      step.ops.push_back(read_op());
    } while (take('|'));
    if (take('(')) {
      read_inputs(step);
    } else {
      step.allows_more_inputs = true;
    }
    // Also catches a step that reads itself.
    const std::vector<std::string>& captures = pattern_.captures;
    if (std::ranges::find(captures, step.name) != captures.end()) {
      fail_at(begin, "step '" + step.name + "' is read before it is defined");
    }
    pattern_.steps.push_back(std::move(step));
  }

  PatternOp read_op() {
    PatternOp op;
    op.name = read_name("an op", ".-");
    if (take(':')) {
      op.domain = op.name == "ai.onnx" ? "" : op.name;
      op.name = read_name("an op");
    } else if (op.name.find_first_of(".-") != std::string::npos) {
      fail("expected ':' and an op after the domain '" + op.name + "'");
    }
    if (take('{')) {
      do {
        std::string name = read_name("an attribute");
        expect('=');
        op.attributes.emplace_back(std::move(name), read_attribute());
      } while (take(','));
      if (!take('}')) fail("expected ',' or '}'");
    }
    return op;
  }

  PatternAttribute read_attribute() {
    if (next() == '\'') return read_text();
    if (is_number_next()) return read_number();
    if (!take('[')) fail("expected a number, a text in '' or a list in []");
    if (next() == '\'') {
      std::vector<std::string> texts;
      do texts.push_back(read_text());
      while (take(','));
      if (!take(']')) fail("expected ',' or ']'");
      return texts;
    }
    std::vector<double> numbers;
    if (take(']')) return numbers;
    do numbers.push_back(read_number());
    while (take(','));
    if (!take(']')) fail("expected ',' or ']'");
    return numbers;
  }

  void read_inputs(PatternStep& step) {
    if (take(')')) return;
    do {
      if (take_dots()) {
        step.allows_more_inputs = true;
        break;
      }
      step.inputs.push_back(read_input());
    } while (take(','));
    if (!take(')')) fail(step.allows_more_inputs ? "expected ')'" : "expected ',' or ')'");
  }

  PatternInput read_input() {
    if (take('_')) return {.kind = PatternInput::Kind::Any};
    if (take('#')) return {.kind = PatternInput::Kind::Constant};
    if (is_number_next()) return {.kind = PatternInput::Kind::Number, .number = read_number()};
    const size_t begin = position_;
    const std::string name =
        read_name("an input ('_', '#', a number, the name of a step or of a value, or '...')");
    const std::optional<size_t> step = step_called(name);
    if (step)
      return {.kind = PatternInput::Kind::StepOutput, .step = *step, .output = read_output(*step)};
    if (std::isupper(static_cast<unsigned char>(name[0])) != 0) {
      fail_at(begin, "no earlier step is called '" + name +
                         "'; the name of an outside value begins with a lower-case letter");
    }
    if (next() == '.' && !text_.substr(position_).starts_with("...")) {
      fail_at(begin, "no earlier step is called '" + name + "', and only steps have outputs");
    }
    const auto found = std::ranges::find(pattern_.captures, name);
    const auto capture = static_cast<size_t>(found - pattern_.captures.begin());
    if (found == pattern_.captures.end()) pattern_.captures.push_back(name);
    return {.kind = PatternInput::Kind::Capture, .capture = capture};
  }

  // ".1" after the name of a step, or nothing.
  size_t read_output(size_t step) {
    size_t output = 0;
    if (next() == '.' && !text_.substr(position_).starts_with("...")) {
      const size_t begin = position_++;
      const char* first = text_.data() + position_;
      const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), output);
      if (error != std::errc() || output > 1000) {
        fail_at(begin, "expected the number of an output after the '.', from 0 on");
      }
      position_ += static_cast<size_t>(end - first);
    }
    std::vector<int>& reads = pattern_.steps[step].output_reads;
    if (reads.size() <= output) reads.resize(output + 1);
    ++reads[output];
    return output;
  }

  std::optional<size_t> step_called(const std::string& name) const {
    for (size_t index = 0; index < pattern_.steps.size(); ++index) {
      if (pattern_.steps[index].name == name) return index;
    }
    return std::nullopt;
  }

  // --- the order of the search ---

  // From the last step to the steps that it reads, and so on. A step that no other step reads is
  // found as a reader of a value that is known by then.
  void plan_search() {
    std::vector<bool> is_found(pattern_.steps.size(), false);
    std::vector<bool> is_known(pattern_.captures.size(), false);
    const auto find = [&](size_t step, std::optional<size_t> known_input) {
      is_found[step] = true;
      pattern_.search.push_back({step, known_input});
    };
    find(pattern_.steps.size() - 1, std::nullopt);
    size_t visited = 0;
    while (true) {
      for (; visited < pattern_.search.size(); ++visited) {
        for (const PatternInput& input : pattern_.steps[pattern_.search[visited].step].inputs) {
          if (input.kind == PatternInput::Kind::Capture) is_known[input.capture] = true;
          if (input.kind != PatternInput::Kind::StepOutput || is_found[input.step]) continue;
          find(input.step, std::nullopt);
        }
      }
      if (visited == pattern_.steps.size()) return;
      const auto [step, input] = find_reader(is_found, is_known);
      find(step, input);
    }
  }

  std::pair<size_t, size_t> find_reader(const std::vector<bool>& is_found,
                                        const std::vector<bool>& is_known) const {
    for (size_t step = pattern_.steps.size(); step-- > 0;) {
      const std::vector<PatternInput>& inputs = pattern_.steps[step].inputs;
      for (size_t index = 0; index < inputs.size() && !is_found[step]; ++index) {
        const PatternInput& input = inputs[index];
        if (input.kind == PatternInput::Kind::StepOutput && is_found[input.step]) {
          return {step, index};
        }
        if (input.kind == PatternInput::Kind::Capture && is_known[input.capture]) {
          return {step, index};
        }
      }
    }
    const auto missing = std::ranges::find(is_found, false);
    fail_at(begins_[static_cast<size_t>(missing - is_found.begin())],
            "this step has nothing to do with the last one: expected that a later step reads it, "
            "or that both read one value that has a name");
  }

  std::string_view text_;
  size_t position_ = 0;
  Pattern pattern_;
  std::vector<size_t> begins_;  // position of each step in the text
};

}  // namespace

Pattern parse_pattern(std::string_view text) { return Reader(text).read(); }

}  // namespace tessera
