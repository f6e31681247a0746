#include "python/bind_options.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <sstream>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/options/option_table.h"
#include "base/errors/likely_name.h"
#include "python/executor.h"
#include "tessera/error.h"

namespace nb = nanobind;

namespace tessera::python {
namespace {

// A value in an error, which may be as long as a model's list of names.
std::string shortened(std::string text) {
  constexpr size_t kMaxLetters = 200;
  if (text.size() <= kMaxLetters) return text;
  text.resize(kMaxLetters);
  return text + "...";
}

using Shapes = std::map<std::string, std::vector<int64_t>>;
using Layouts = std::map<std::string, std::string>;
using Ranges = std::map<std::string, std::vector<SizeRange>>;
using ShapeSets = std::vector<Shapes>;
using Progress = std::function<bool(const TuneProgress&)>;

// Columns of the lines of help(Model.bind).
constexpr size_t kColumns = 100;

// The name in Python of each type of option.
const char* type_text(const Field<bool>& /*field*/) { return "bool"; }
const char* type_text(const Field<std::optional<Optimize>>& /*field*/) {
  return "bool | str | None";
}
const char* type_text(const Field<int>& /*field*/) { return "int"; }
const char* type_text(const Field<int64_t>& /*field*/) { return "int"; }
const char* type_text(const Field<double>& /*field*/) { return "float"; }
const char* type_text(const Field<std::string>& /*field*/) { return "str"; }
const char* type_text(const Field<std::filesystem::path>& /*field*/) { return "str | os.PathLike"; }
const char* type_text(const Field<std::vector<std::string>>& /*field*/) {
  return "collections.abc.Sequence[str]";
}
const char* type_text(const Field<std::vector<Exclusion>>& /*field*/) {
  return "collections.abc.Sequence[Exclusion]";
}
const char* type_text(const Field<std::vector<Pin>>& /*field*/) {
  return "collections.abc.Sequence[Pin]";
}
const char* type_text(const Field<std::vector<StatePair>>& /*field*/) {
  return "collections.abc.Sequence[tuple[str, str]]";
}
const char* type_text(const Field<Layouts>& /*field*/) {
  return "collections.abc.Mapping[str, str] | None";
}
const char* type_text(const Field<Shapes>& /*field*/) {
  return "collections.abc.Mapping[str, collections.abc.Sequence[int | range]] | "
         "collections.abc.Sequence[collections.abc.Mapping[str, collections.abc.Sequence[int]]] | "
         "None";
}
// No keyword of Python: `shapes` has what these say.
const char* type_text(const Field<Ranges>& /*field*/) { return ""; }
const char* type_text(const Field<ShapeSets>& /*field*/) { return ""; }
const char* type_text(const Field<std::map<std::string, Tensor>>& /*field*/) {
  return "collections.abc.Mapping[str, numpy.typing.ArrayLike]";
}
const char* type_text(const Field<Progress>& /*field*/) {
  return "collections.abc.Callable[[tessera.descriptions.TuneProgress], object] | None";
}
template <class Enum>
  requires std::is_enum_v<Enum>
const char* type_text(const Field<Enum>& /*field*/) {
  return "str";
}

std::string type_text_of(const BindOption& option) {
  return std::visit([](const auto& field) { return type_text(field); }, option.field.typed);
}

// What errors expect. `shapes` have too many forms for their type to be read.
std::string expected_text(const BindOption& option) {
  if (option.name == "shapes") {
    return "a dictionary of shapes by input, such as {'x': (1, range(1, 513))}, or a list of such "
           "dictionaries (an input that is left out keeps its sizes open)";
  }
  constexpr std::string_view kModule = "collections.abc.";
  std::string text = type_text_of(option);
  for (size_t at = 0; (at = text.find(kModule, at)) != std::string::npos;) {
    text.erase(at, kModule.size());
  }
  return text;
}

// Each function reads a value of Python; false if it has another type.

template <class T>
bool read(const BindOption& /*option*/, nb::handle given, T& value) {
  return nb::try_cast<T>(given, value);
}

template <class Value>
bool read(const BindOption& /*option*/, nb::handle given, std::map<std::string, Value>& values) {
  return given.is_none() || nb::try_cast(given, values);
}

bool read(const BindOption& /*option*/, nb::handle given, std::map<std::string, Tensor>& tensors) {
  tensors = dense_by_name(given);
  return true;
}

bool read(const BindOption& /*option*/, nb::handle given, std::vector<StatePair>& pairs) {
  std::vector<std::pair<std::string, std::string>> names;
  if (!nb::try_cast(given, names)) return false;
  for (auto& [input, output] : names) pairs.push_back({std::move(input), std::move(output)});
  return true;
}

// A size, or a range of sizes. Throws InvalidArgument for a range that has no sizes, or negative
// ones.
bool read_sizes(nb::handle given, SizeRange& sizes) {
  if (nb::try_cast(given, sizes.low)) {
    sizes.high = sizes.low;
    return true;
  }
  if (!PyRange_Check(given.ptr())) return false;
  int64_t stop = 0;
  if (!nb::try_cast(given.attr("start"), sizes.low) || !nb::try_cast(given.attr("stop"), stop) ||
      !nb::try_cast(given.attr("step"), sizes.step)) {
    throw Error(ErrorKind::InvalidArgument, "shapes",
                "expected a range whose numbers fit 64 bits, found " +
                    nb::cast<std::string>(nb::repr(given)));
  }
  if (sizes.step < 1 || stop <= sizes.low || sizes.low < 0) {
    throw Error(ErrorKind::InvalidArgument, "shapes",
                "expected a range of at least one size, upwards from 0 or more, such as range(1, "
                "513), found " +
                    nb::cast<std::string>(nb::repr(given)));
  }
  sizes.high = stop - 1 - (stop - 1 - sizes.low) % sizes.step;
  return true;
}

bool read(const BindOption& /*option*/, nb::handle /*given*/, Ranges& /*ranges*/) { return false; }
bool read(const BindOption& /*option*/, nb::handle /*given*/, ShapeSets& /*sets*/) { return false; }

// Reads what `shapes` of Python says into three options: shapes, ranges of sizes, or a list of
// shapes. False if it has another type.
bool read_shapes(nb::handle given, BindOptions& options) {
  if (given.is_none() || nb::try_cast(given, options.shapes)) return true;
  if (nb::isinstance<nb::list>(given) || nb::isinstance<nb::tuple>(given)) {
    if (!nb::try_cast(given, options.more_shapes) || options.more_shapes.empty()) return false;
    options.shapes = options.more_shapes.front();
    options.more_shapes.erase(options.more_shapes.begin());
    return true;
  }
  std::map<std::string, nb::object> by_name;
  if (!nb::try_cast(given, by_name)) return false;
  for (const auto& [name, sizes] : by_name) {
    if (nb::try_cast(sizes, options.shapes[name])) continue;
    options.shapes.erase(name);
    std::vector<nb::object> each;
    if (!nb::try_cast(sizes, each)) return false;
    std::vector<SizeRange>& ranges = options.shape_ranges[name];
    for (const nb::object& one : each) {
      if (!read_sizes(one, ranges.emplace_back())) return false;
    }
  }
  return true;
}

// bind() calls it through PythonProgress.
bool read(const BindOption& /*option*/, nb::handle given, Progress& /*callable*/) {
  return given.is_none() || PyCallable_Check(given.ptr()) != 0;
}

template <class Enum>
  requires std::is_enum_v<Enum>
bool read(const BindOption& option, nb::handle given, Enum& value) {
  std::string text;
  if (!nb::try_cast(given, text)) return false;
  const auto found = std::find(option.choices.begin(), option.choices.end(), text);
  if (found == option.choices.end()) {
    std::string expected;
    for (const std::string_view choice : option.choices) {
      expected += (expected.empty() ? "'" : " or '") + std::string(choice) + "'";
    }
    throw Error(ErrorKind::InvalidArgument, std::string(option.keyword),
                "expected " + expected + ", found '" + text + "'");
  }
  value = static_cast<Enum>(found - option.choices.begin());
  return true;
}

bool read(const BindOption& option, nb::handle given, std::optional<Optimize>& value) {
  bool is_on = false;
  if (given.is_none()) return true;
  if (nb::try_cast(given, is_on)) {
    value = is_on ? Optimize::Now : Optimize::Off;
    return true;
  }
  return read(option, given, value.emplace());
}

void read_option(const BindOption& option, nb::handle given, BindOptions& options) {
  const bool is_read =
      option.name == "shapes"
          ? read_shapes(given, options)
          : std::visit([&](const auto& field) { return read(option, given, field.edit(options)); },
                       option.field.typed);
  if (is_read) return;
  const std::string type = expected_text(option);
  const bool is_too_large = type == "int" && PyLong_Check(given.ptr()) != 0;
  const std::string message = "bind(): " + std::string(option.keyword) + ": expected " +
                              (is_too_large ? "a smaller int" : type) + ", found " +
                              shortened(nb::cast<std::string>(nb::repr(given)));
  throw nb::type_error(message.c_str());
}

const BindOption& option_of(const std::string& keyword) {
  std::vector<std::string> known;
  for (const BindOption& option : bind_options()) {
    if (option.keyword.empty()) continue;
    if (option.keyword == keyword) return option;
    known.emplace_back(option.keyword);
  }
  const std::string message =
      "bind() got an unexpected keyword argument '" + keyword + "'" + did_you_mean(keyword, known);
  throw nb::type_error(message.c_str());
}

// Breaks the text into lines, of which the second and later ones are indented.
std::string wrapped(const std::string& text) {
  std::istringstream words(text);
  std::string lines;
  size_t column = 0;
  for (std::string word; words >> word;) {
    const bool fits = column + 1 + word.size() <= kColumns;
    if (column > 0) lines += fits ? " " : "\n    ";
    column = column > 0 && !fits ? 4 + word.size() : column + (column > 0 ? 1 : 0) + word.size();
    lines += word;
  }
  return lines + "\n";
}

}  // namespace

BindOptions read_bind_options(nb::handle shapes, const nb::kwargs& keywords) {
  BindOptions options;
  read_option(bind_option("shapes"), shapes, options);
  for (const auto& [keyword, value] : keywords) {
    read_option(option_of(nb::cast<std::string>(keyword)), value, options);
  }
  return options;
}

std::string bind_parameters() {
  std::string parameters;
  for (const BindOption& option : bind_options()) {
    if (option.keyword.empty()) continue;
    parameters += (parameters.empty() ? "" : ", ") + std::string(option.keyword) + ": " +
                  type_text_of(option) + " = " + default_text(option);
    if (option.name == "shapes") parameters += ", *";
  }
  return parameters;
}

std::string bind_signature() { return "def bind(self, " + bind_parameters() + ") -> Executor"; }

std::string bind_text() {
  std::string text = "Plans for the given shapes and gives an Executor.\n\n";
  for (const BindOption& option : bind_options()) {
    if (option.keyword.empty()) continue;
    text += wrapped(std::string(option.keyword) + ": " + std::string(option.help));
  }
  return text + R"(
If shapes that the model leaves open are not given, the first run decides, and plans for its inputs.

Raises InvalidArgument (an unknown name, a shape that contradicts the model), InvalidModel (shapes that do not fit together) or OutOfMemory (found before anything
is allocated, or no plan fits into memory_budget_bytes).

    pins = [tessera.Pin("conv1", "reference")]
    executor = model.bind({"tokens": (1, 128)}, threads=2, pins=pins))";
}

}  // namespace tessera::python
