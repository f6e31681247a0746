// `tessera plan-memory`: places buffers of known sizes and lifetimes in the smallest memory found.
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/memory_instance.h"
#include "cli/named_argument.h"
#include "cli/span.h"
#include "plan/memory_plan.h"
#include "tessera/error.h"

namespace tessera::cli {
namespace {

// Some seconds where nothing is proven earlier.
constexpr int64_t kSearchEffort = 400'000'000;

struct PlanMemoryArguments {
  std::string file;
  std::optional<std::string> capacity;
  bool is_json = false;
};

// Throws InvalidArgument for a buffer that alone is larger than `capacity`.
void check_largest(const MemoryInstance& instance, const std::string& file, int64_t capacity) {
  const auto largest = std::max_element(instance.requests.begin(), instance.requests.end(),
                                        [](const BufferRequest& left, const BufferRequest& right) {
                                          return left.bytes < right.bytes;
                                        });
  if (largest->bytes <= capacity) return;
  const size_t index = static_cast<size_t>(largest - instance.requests.begin());
  throw Error(ErrorKind::InvalidArgument, file + ", buffer '" + instance.names[index] + "'",
              "expected buffers of at most the capacity, " + std::to_string(capacity) +
                  " bytes; found " + std::to_string(largest->bytes));
}

std::string text_of(const MemoryPlan& plan, double seconds, std::optional<int64_t> capacity) {
  std::string text = "height       " + std::to_string(plan.arena_bytes) + " bytes" +
                     (plan.is_smallest ? ", proven the smallest" : "") + "\n" + "lower bound  " +
                     std::to_string(plan.lower_bound_bytes) + " bytes, live at once\n" +
                     "seconds      " + decimal_text(seconds, 3) + "\n";
  if (capacity && plan.arena_bytes > *capacity) {
    text += "It does not fit into " + std::to_string(*capacity) + " bytes" +
            (plan.is_smallest ? ".\n" : " as far as was found.\n");
  }
  return text;
}

CommandResult plan_memory_of(const PlanMemoryArguments& arguments) {
  std::optional<int64_t> capacity;
  if (arguments.capacity) {
    constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
    capacity =
        static_cast<int64_t>(parse_whole_number("--capacity", *arguments.capacity, 1, kMost));
  }
  const MemoryInstance instance = read_memory_instance(arguments.file);
  if (capacity) check_largest(instance, arguments.file, *capacity);
  Span span;
  const MemoryPlan plan = timed(Clock::now(), span, [&] {
    return plan_memory(instance.requests,
                       {.enough_bytes = capacity.value_or(0), .search_effort = kSearchEffort});
  });
  const double seconds = milliseconds(span.duration) / 1000;
  const bool fits = !capacity || plan.arena_bytes <= *capacity;
  const Json json = {{"height", plan.arena_bytes},
                     {"lower_bound", plan.lower_bound_bytes},
                     {"seconds", seconds},
                     {"proven", plan.is_smallest}};
  return {fits ? kFine : kAnswerIsNo,
          arguments.is_json ? json_text(json) : text_of(plan, seconds, capacity)};
}

}  // namespace

Command make_plan_memory_command(CLI::App& command) {
  const auto arguments = std::make_shared<PlanMemoryArguments>();
  command
      .add_option("FILE", arguments->file,
                  "comma-separated values with the columns id, lower, upper, size: a\n"
                  "buffer is live from lower until before upper")
      ->required();
  command.add_option("--capacity", arguments->capacity,
                     "BYTES: stop at a height that fits; exit code 1 where none was found");
  command.add_flag("--json", arguments->is_json, "print JSON: height lower_bound seconds proven");
  command.footer("Example:\n  tessera plan-memory buffers.csv --capacity 1048576");
  return [arguments] { return plan_memory_of(*arguments); };
}

}  // namespace tessera::cli
