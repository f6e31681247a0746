// `tessera plan-memory`: places buffers of known sizes and lifetimes in the smallest memory that it
// finds.
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "api/options/argument_text.h"
#include "cli/commands/command.h"
#include "cli/inputs/memory_instance.h"
#include "cli/output/json_output.h"
#include "cli/output/quantities.h"
#include "cli/output/span.h"
#include "cli/output/text_table.h"
#include "cli/process/interrupt.h"
#include "cli/reports/progress.h"
#include "plan/packing/memory_plan.h"

namespace tessera::cli {
namespace {

constexpr double kMaxSearchSeconds = 86400;

struct PlanMemoryArguments {
  std::string file;
  std::optional<std::string> capacity;
  std::string time_limit = "60";
  bool is_json = false;
};

// How the search went.
struct SearchReport {
  MemoryPlan plan;
  Span span;
  bool is_out_of_time = false;
  bool is_interrupted = false;
};

// Searches until the buffers fit into `capacity`, nothing smaller exists, the time limit passes, or
// Ctrl-C is pressed.
SearchReport search(const MemoryInstance& instance, int64_t capacity, double limit_seconds) {
  SearchReport report;
  Progress progress;
  progress.show("searching for the smallest memory");
  const Interrupt interrupt;
  const Clock::time_point start = Clock::now();
  const auto is_over = [&] {
    report.is_interrupted = interrupt.is_interrupted() || Termination::was_requested();
    report.is_out_of_time = milliseconds(Clock::now() - start) >= 1000 * limit_seconds;
    return report.is_interrupted || report.is_out_of_time;
  };
  const PackingOptions options{.enough_bytes = capacity,
                               .search_effort = std::numeric_limits<int64_t>::max(),
                               .is_over = is_over};
  report.plan = timed(start, report.span, [&] { return plan_memory(instance.requests, options); });
  Termination::check();
  if (report.is_interrupted) Progress::say("stopped early; this is the best so far");
  return report;
}

std::string search_text(const SearchReport& report, std::optional<int64_t> capacity,
                        const TextStyle& style) {
  const MemoryPlan& plan = report.plan;
  const double seconds = milliseconds(report.span.duration) / 1000;
  constexpr size_t kLabelColumns = 13;
  std::string text =
      labelled(
          "height",
          count_text(plan.arena_bytes, "byte") + (plan.is_smallest ? ", proven the smallest" : ""),
          kLabelColumns, style) +
      labelled("lower bound",
               count_text(plan.lower_bound_bytes, "byte") + " live at one step, at most",
               kLabelColumns, style) +
      labelled("time", time_text(seconds) + (report.is_out_of_time ? ", the limit" : ""),
               kLabelColumns, style);
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
  const double limit_seconds =
      parse_positive_number("--time-limit", arguments.time_limit, kMaxSearchSeconds);
  const MemoryInstance instance = read_memory_instance(arguments.file);
  const SearchReport report = search(instance, capacity.value_or(0), limit_seconds);
  const MemoryPlan& plan = report.plan;
  const bool fits = !capacity || plan.arena_bytes <= *capacity;
  const Json json = {{"arena_bytes", plan.arena_bytes},
                     {"lower_bound_bytes", plan.lower_bound_bytes},
                     {"is_proven_smallest", plan.is_smallest},
                     {"is_stopped", report.is_interrupted || report.is_out_of_time},
                     {"is_out_of_time", report.is_out_of_time},
                     {"plan_us", microseconds(report.span.duration)}};
  return {fits ? kFine : kAnswerIsNo,
          arguments.is_json ? json_text(json) : search_text(report, capacity, stdout_style())};
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
  command.add_option("--time-limit", arguments->time_limit,
                     "SECONDS: stop the search for a smaller memory after this time\n"
                     "(default 60)");
  command.add_flag("--json", arguments->is_json, "print JSON");
  command.set_footer("Example:\n  tessera plan-memory buffers.csv --capacity 1M");
  return [arguments] { return plan_memory_of(*arguments); };
}

}  // namespace tessera::cli
