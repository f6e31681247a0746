// `tessera plan-memory`: places buffers of known sizes and lifetimes in the smallest memory that it
// finds.
#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/memory_instance.h"
#include "cli/named_argument.h"
#include "cli/progress.h"
#include "cli/quantities.h"
#include "cli/span.h"
#include "cli/text_table.h"
#include "plan/memory_plan.h"

namespace tessera::cli {
namespace {

// Takes some seconds unless a proof is found earlier.
constexpr int64_t kSearchEffort = 400'000'000;

struct PlanMemoryArguments {
  std::string file;
  std::optional<std::string> capacity;
  bool is_json = false;
};

std::string text_of(const MemoryPlan& plan, double seconds, std::optional<int64_t> capacity,
                    const TextStyle& style) {
  constexpr size_t kLabelColumns = 13;
  std::string text =
      labelled(
          "height",
          count_text(plan.arena_bytes, "byte") + (plan.is_smallest ? ", proven the smallest" : ""),
          kLabelColumns, style) +
      labelled("lower bound",
               count_text(plan.lower_bound_bytes, "byte") + " live at one step, at most",
               kLabelColumns, style) +
      labelled("time", time_text(seconds), kLabelColumns, style);
  if (!capacity || plan.arena_bytes <= *capacity) return text;
  const std::string limit = count_text(*capacity, "byte");
  return text + wrapped(plan.is_smallest
                            ? "The buffers do not fit into " + limit + "."
                            : "No way was found to fit the buffers into " + limit + ".",
                        style);
}

CommandResult plan_memory_of(const PlanMemoryArguments& arguments) {
  std::optional<int64_t> capacity;
  if (arguments.capacity) {
    capacity = parse_byte_count("--capacity", *arguments.capacity, 1);
  }
  const MemoryInstance instance = read_memory_instance(arguments.file);
  Span span;
  Progress progress;
  progress.show("searching for the smallest memory");
  const MemoryPlan plan = timed(Clock::now(), span, [&] {
    return plan_memory(instance.requests,
                       {.enough_bytes = capacity.value_or(0), .search_effort = kSearchEffort});
  });
  const double seconds = milliseconds(span.duration) / 1000;
  const bool fits = !capacity || plan.arena_bytes <= *capacity;
  const Json json = {{"arena_bytes", plan.arena_bytes},
                     {"lower_bound_bytes", plan.lower_bound_bytes},
                     {"is_proven_smallest", plan.is_smallest},
                     {"plan_us", microseconds(span.duration)}};
  return {fits ? kFine : kAnswerIsNo,
          arguments.is_json ? json_text(json) : text_of(plan, seconds, capacity, stdout_style())};
}

}  // namespace

Command make_plan_memory_command(CommandOptions command) {
  const auto arguments = std::make_shared<PlanMemoryArguments>();
  command.add_positional("FILE", arguments->file,
                         "comma-separated values with the columns id, lower, upper, size: a\n"
                         "buffer of size bytes is in use from step lower to step upper - 1");
  command.add_option("--capacity", arguments->capacity,
                     "SIZE: stop as soon as the buffers fit into it, e.g. 512M or 1.5G;\n"
                     "exit code 1 if they do not fit; K is 1024 bytes, M 1024 K, and so on");
  command.add_flag("--json", arguments->is_json, "print JSON");
  command.set_footer("Example:\n  tessera plan-memory buffers.csv --capacity 1M");
  return [arguments] { return plan_memory_of(*arguments); };
}

}  // namespace tessera::cli
