// The table of all options of Model::bind(). From it come the flags of the command line (cli), the
// keywords, signature and text of Python's bind() (python), the checks of values, what the key of a
// stored plan holds of options (cache_ingredients.h), and docs/options.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/bind_options.h"

namespace tessera {

struct Graph;
struct ModelStructure;

// A field of BindOptions or of one of its groups.
template <class T>
struct Field {
  const T& (*get)(const BindOptions& options);
  T& (*edit)(BindOptions& options);
};

// The types that options have. Command line and Python read each of them in one function.
using TypedField = std::variant<
    Field<bool>, Field<std::optional<Optimize>>, Field<int>, Field<int64_t>, Field<double>,
    Field<std::string>, Field<std::filesystem::path>, Field<Precision>, Field<NanMode>,
    Field<Accuracy>, Field<std::vector<std::string>>, Field<std::vector<Exclusion>>,
    Field<std::vector<Pin>>, Field<std::vector<StatePair>>,
    Field<std::map<std::string, std::string>>, Field<std::map<std::string, std::vector<int64_t>>>,
    Field<std::map<std::string, std::vector<SizeRange>>>,
    Field<std::vector<std::map<std::string, std::vector<int64_t>>>>,
    Field<std::map<std::string, Tensor>>, Field<std::function<bool(const TuneProgress&)>>>;

struct OptionField {
  std::string_view group;  // of BindOptions: "run"; "" for what is not in a group
  TypedField typed;
};

// The commands that bind a model, as bits. CacheCommand: `cache why-miss` and its like.
enum CommandBits : uint16_t {
  kRunCommand = 1,
  kBenchCommand = 2,
  kExplainCommand = 4,
  kInspectCommand = 8,
  kTuneCommand = 16,
  kVerifyCommand = 32,
  kCacheCommand = 64,
  kDiffCommand = 128,
  kBundleCommand = 256,
};

// A flag of the command line.
struct Flag {
  std::string_view name = {};      // "--threads"; "": none
  std::string_view value = {};     // what stands for its value in help; "" if it takes none
  std::string_view help = {};      // one sentence or two
  std::string_view heading = {};   // what help lists it under
  uint16_t commands = 0;           // CommandBits that have it; others may add it themselves
  std::string_view negation = {};  // "--no-optimize", which sets false; "": none
  std::string_view negation_help = {};
  bool is_repeatable = false;
  uint32_t max = std::numeric_limits<int>::max();  // of a whole number
};

// Numbers from `min` on.
struct Range {
  double min = 0;
  bool excludes_min = false;
  std::string_view expected;  // for errors: "0 (no limit) or more"
};

// The options of one bind and its graph, from which ingredients are written.
struct IngredientSource {
  const Graph& loaded;
  const ModelStructure& structure;
  const BindOptions& options;
  const std::vector<std::string>& backends;  // that were asked for by name
  int threads = 0;                           // that it runs on
};

// How a stored plan depends on an option. Names, positions and texts are part of the file format.
struct OptionIngredient {
  int position = 0;                                         // in the key, from 1 on; 0: none
  std::string_view name = {};                               // "strict storage"
  std::string (*write)(const IngredientSource&) = nullptr;  // null: as its type is written
};

struct BindOption {
  std::string_view name;     // of the field: "keeps_denormals"
  std::string_view keyword;  // of Python's bind(): "keep_denormals"; "": none
  OptionField field;
  std::string_view help;  // for Python and docs/options.md
  Flag flag = {};
  std::span<const std::string_view> choices = {};  // names of enumerators; of a bool: off, on
  std::optional<Range> range = {};
  void (*check)(const BindOptions& options) = nullptr;  // throws InvalidArgument; null: all is fine
  OptionIngredient ingredient = {};
};

// In the order in which help lists flags.
std::span<const BindOption> bind_options();

// The option whose field is called `name`, which must exist.
const BindOption& bind_option(std::string_view name);

// "run.nan"
std::string path_of(const BindOption& option);

// As Python writes it: "False", "10.0", "'cpu'", "()".
std::string default_text(const BindOption& option);

// Throws InvalidArgument for the first option whose value cannot be.
void check_options(const BindOptions& options);

}  // namespace tessera
