// `tessera diff`: which steps of two plans differ, and what that costs.
#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>
#include <string_view>

#include "cli/arguments/command_line.h"
#include "cli/commands/bound_model.h"
#include "cli/commands/command.h"
#include "cli/commands/measure_steps.h"
#include "cli/inputs/model_source.h"
#include "cli/plans/diff_report.h"

namespace tessera::cli {
namespace {

constexpr CommandBits kBits = kDiffCommand;

struct DiffArguments {
  std::string first;
  std::optional<std::string> second;  // the same as `first` if it was not given
  std::optional<std::string> first_options;
  std::optional<std::string> second_options;
  std::string model;      // the model to which plans of caches belong
  ModelArguments common;  // of both sides
  std::optional<std::string> runs;
  bool is_json = false;
};

// The kind of a file, told by its first bytes: an ONNX model begins with neither of the others.
enum class SourceKind : uint8_t { Model, Cache, Explained };

// One side of the comparison, as the user gave it.
struct Side {
  const char* name;    // "A"
  const char* option;  // "--a"
  std::string source;
  std::string options;  // of this side alone
  SourceKind kind = SourceKind::Model;
  std::string text;  // the output of explain
};

SourceKind kind_of_text(std::string_view text) {
  if (text.starts_with("TESSERA\x1a")) return SourceKind::Cache;
  const size_t begin = text.find_first_not_of(" \t\r\n");
  // No field of ONNX's ModelProto has a key like '{'.
  return begin != std::string_view::npos && text[begin] == '{' ? SourceKind::Explained
                                                               : SourceKind::Model;
}

// Sets kind and text. Reads the source once, because a shell's <(...) is a pipe.
void look_at(Side& side) {
  constexpr std::streamsize kHeadBytes = 64;
  if (side.source == "-") return;
  const auto refuse = [&](const std::string& message) {
    throw Error(ErrorKind::InvalidArgument, std::string(side.name) + " '" + side.source + "'",
                message);
  };
  std::error_code unknown;
  const std::filesystem::file_status status = std::filesystem::status(side.source, unknown);
  if (!std::filesystem::exists(status)) refuse("expected a file, found none");
  if (std::filesystem::is_directory(status)) refuse("expected a file, found a folder");
  std::ifstream stream(side.source, std::ios::binary);
  std::string text(kHeadBytes, '\0');
  stream.read(text.data(), kHeadBytes);
  text.resize(static_cast<size_t>(stream.gcount()));
  side.kind = kind_of_text(text);
  if (side.kind == SourceKind::Explained) {
    text.append(std::istreambuf_iterator<char>(stream), {});
    if (stream.bad()) refuse("cannot be read");
    side.text = std::move(text);
  } else if (!std::filesystem::is_regular_file(status)) {
    refuse(
        "expected a file, or a pipe with the output of 'tessera explain --json', found a pipe with "
        "something else");
  }
}

// Options of `own` replace those of `common`; those that may be repeated add up.
void merge(const std::vector<std::string>& own, std::vector<std::string>& common) {
  common.insert(common.end(), own.begin(), own.end());
}

GivenOption merged(const GivenOption& common, const GivenOption& own) {
  if (own == GivenOption{}) return common;
  GivenOption both = own;
  both.values = common.values;
  merge(own.values, both.values);
  return both;
}

ModelArguments merged(ModelArguments both, const ModelArguments& own) {
  merge(own.inputs, both.inputs);
  merge(own.shapes, both.shapes);
  merge(own.bind.backend_paths, both.bind.backend_paths);
  if (own.seed) both.seed = own.seed;
  both.is_strict |= own.is_strict;
  both.copies_weights |= own.copies_weights;
  both.strict_stamps |= own.strict_stamps;
  for (size_t index = 0; index < both.bind.given.size(); ++index) {
    both.bind.given[index] = merged(both.bind.given[index], own.bind.given[index]);
  }
  return both;
}

// One side that is bound here, with its options.
class BoundSide {
 public:
  BoundSide(const ModelArguments& arguments, const std::string& cache)
      : request_(arguments, MissingInputs::AreRandom),
        loaded_(load(request_, cache)),
        bound_(request_.bind(loaded_, Clock::now())) {
    const std::filesystem::path& used = bound_.executor.cache_report().file;
    std::error_code unknown;
    if (!cache.empty() && !std::filesystem::equivalent(used, cache, unknown)) {
      throw Error(
          ErrorKind::InvalidArgument, "cache '" + cache + "'",
          "expected a plan for this model, these shapes, options and threads, found none: " +
              bound_.executor.cache_report().reason + "; 'tessera cache show' lists what it has");
    }
  }

  ExplainReport describe() const { return describe_bound(loaded_, bound_, request_); }
  BoundModel& bound() { return bound_; }
  Progress& progress() const { return request_.progress(); }

 private:
  static LoadedModel load(const ModelRequest& request, const std::string& cache) {
    LoadedModel loaded = request.load(Clock::now(), /*keeps_all_values=*/false);
    if (!cache.empty()) loaded.model.load_cache(cache);
    return loaded;
  }

  ModelRequest request_;
  LoadedModel loaded_;
  BoundModel bound_;
};

// The model and options to bind.
ModelArguments arguments_of(const Side& side, const DiffArguments& arguments) {
  ModelArguments own;
  if (!side.options.empty()) {
    parse_option_text(side.option, side.options, [&](CommandOptions options) {
      add_load_options(options, kBits, own, MissingInputs::AreRandom);
    });
  }
  ModelArguments all = merged(arguments.common, own);
  all.model = side.source;
  if (side.kind == SourceKind::Cache) {
    all.model = arguments.model;
    // Only the plan in the cache is wanted, not a new one, even if the environment says that binds
    // read no caches.
    all.bind["optimize"].is_set = true;
    all.bind["frozen"].is_set = true;
  }
  return all;
}

void check_sides(std::span<const Side> sides, const DiffArguments& arguments) {
  for (const Side& side : sides) {
    if (side.kind == SourceKind::Explained && !side.options.empty()) {
      throw Error(ErrorKind::InvalidArgument, side.option,
                  "expected a model or a cache to bind with these options, found the output of "
                  "'tessera explain --json': '" +
                      side.source + "'");
    }
    if (side.kind == SourceKind::Cache && arguments.model.empty()) {
      throw Error(ErrorKind::InvalidArgument, "cache '" + side.source + "'",
                  "expected --model MODEL, the model that its plan is for, found none");
    }
  }
  const auto count = [&](SourceKind kind) { return std::ranges::count(sides, kind, &Side::kind); };
  if (count(SourceKind::Explained) == 2 &&
      (arguments.common != ModelArguments{} || arguments.runs)) {
    throw Error(ErrorKind::InvalidArgument, "options to bind and run",
                "expected a model or a cache to use them for, found two outputs of 'tessera "
                "explain --json'");
  }
  if (count(SourceKind::Cache) == 0 && !arguments.model.empty()) {
    throw Error(ErrorKind::InvalidArgument, "--model '" + arguments.model + "'",
                "expected a cache as A or B, found none");
  }
  if (sides[0].source == "-" && sides[1].source == "-") {
    throw Error(ErrorKind::InvalidArgument, "B '-'",
                "expected a file, because standard input can be read only once");
  }
}

// `report` as a file of explain has it.
ExplainReport as_explained(const ExplainReport& report) {
  std::vector<size_t> steps(report.plan.steps.size());
  std::iota(steps.begin(), steps.end(), size_t{0});
  return read_explain_json(json_text(explain_json(report, steps)), report.model);
}

std::array<Side, 2> sides_of(const DiffArguments& arguments) {
  if (!arguments.second && !arguments.first_options && !arguments.second_options) {
    throw Error(ErrorKind::InvalidArgument, "B",
                "expected a second plan, or --a or --b with other options for the first, found "
                "neither");
  }
  return {{{.name = "A",
            .option = "--a",
            .source = arguments.first,
            .options = arguments.first_options.value_or("")},
           {.name = "B",
            .option = "--b",
            .source = arguments.second.value_or(arguments.first),
            .options = arguments.second_options.value_or("")}}};
}

CommandResult diff(const DiffArguments& arguments) {
  const RunLimit limit = parse_run_limit(arguments.runs);
  std::array<Side, 2> sides = sides_of(arguments);
  for (Side& side : sides) look_at(side);
  check_sides(sides, arguments);
  // Mistakes in options are reported before the first model is loaded.
  ModelArguments to_bind[2];
  for (size_t index = 0; index < 2; ++index) {
    if (sides[index].kind == SourceKind::Explained) continue;
    to_bind[index] = arguments_of(sides[index], arguments);
    bind_options_of(to_bind[index].bind);
  }
  DiffSide compared[2];
  std::vector<std::unique_ptr<BoundSide>> bound;
  std::vector<MeasuredModel> measured;
  for (size_t index = 0; index < 2; ++index) {
    const Side& side = sides[index];
    compared[index] = {.source = side.source, .options = side.options, .report = {}};
    if (side.kind == SourceKind::Explained) {
      compared[index].report = read_explain_json(side.text, side.source);
      continue;
    }
    const std::string cache = side.kind == SourceKind::Cache ? side.source : "";
    bound.push_back(std::make_unique<BoundSide>(to_bind[index], cache));
    compared[index].report = bound.back()->describe();
    measured.push_back({&bound.back()->bound(), &compared[index].report});
  }
  if (!measured.empty()) measure_steps(measured, limit, bound[0]->progress());
  // JSON replaces bytes of names that are not UTF-8.
  if (measured.size() == 1) *measured[0].report = as_explained(*measured[0].report);
  const PlanDifference difference = difference_of(compared[0].report, compared[1].report);
  return {difference.is_equal() ? kFine : kAnswerIsNo,
          arguments.is_json ? json_text(diff_json(compared[0], compared[1], difference))
                            : diff_text(compared[0], compared[1], difference, stdout_style())};
}

}  // namespace

Command make_diff_command(CommandOptions command) {
  const auto arguments = std::make_shared<DiffArguments>();
  command.add_positional("A", arguments->first,
                         "an ONNX model, a cache, or the output of 'tessera explain --json'");
  command.add_optional_positional("B", arguments->second,
                                  "the same kinds (default: A, with the options of --b)");
  command.add_option("--a", arguments->first_options,
                     "OPTIONS: options to bind A, in addition to those for both, e.g.\n"
                     "--a='--backends onednn --threads 1'");
  command.add_option("--b", arguments->second_options, "OPTIONS: options to bind B");
  command.add_option("--model", arguments->model, "MODEL: the model of the plans in caches");
  command.add_option("--runs", arguments->runs,
                     "N: runs to take medians of (default: up to 10 in 2 seconds)");
  command.add_flag("--json", arguments->is_json, "print JSON");
  add_load_options(command, kBits, arguments->common, MissingInputs::AreRandom);
  command.set_footer(
      "Models and caches are bound and run here, both in turns. The exit code is 0 if the plans\n"
      "have the same steps, and 1 if not; times do not count.\n\n"
      "Example:\n"
      "  tessera diff resnet50.onnx --b='--backends onednn'\n"
      "  tessera diff before.json resnet50.onnx --threads 2\n"
      "  tessera diff 1a2b3c4.cache 5d6e7f8.cache --model resnet50.onnx");
  return [arguments] { return diff(*arguments); };
}

}  // namespace tessera::cli
