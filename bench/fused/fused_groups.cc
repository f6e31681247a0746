// Times compiled groups, copies of as many bytes, and the groups' operations in registers, in turns
// in one process, and prints the share of the larger of these limits that each group reaches.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "fused_case.h"
#include "fused_peak.h"
#include "native_limits.h"
#include "ops/registry.h"
#include "turns.h"

namespace tessera::bench {
namespace {

constexpr const char* kUsage =
    "usage: tessera_bench_fused [--only TEXT] [--kib SIZES] [--threads COUNTS] [--rounds N]\n"
    "                           [--quantile Q] [--json] [--form FORM]\n"
    "\n"
    "Times compiled groups whose name holds TEXT, on a tensor of each of the SIZES\n"
    "(\"16,1024,65536\"), on each of the COUNTS of threads (\"1,2\"). What is printed: the time, "
    "the\n"
    "fastest copy of as many bytes, the group's operations on independent vectors in registers, "
    "and\n"
    "the percentage of the larger of these two. Times are medians of N rounds (31), or the part Q "
    "of\n"
    "them. --form expression, source or assembly prints the text of each kernel instead.\n";

struct Arguments {
  std::string only;
  std::vector<double> kibibytes = {16, 1024, 65536};
  std::vector<double> threads = {1, 2};
  int rounds = 31;
  double quantile = 0.5;
  bool is_json = false;
  std::string form = {};
};

Arguments read_arguments(const std::vector<std::string>& given) {
  Arguments arguments;
  for (size_t index = 0; index < given.size(); ++index) {
    const std::string& name = given[index];
    if (name == "--json") {
      arguments.is_json = true;
      continue;
    }
    if (++index == given.size()) throw std::invalid_argument("no value for " + name);
    const std::string& value = given[index];
    if (name == "--only") {
      arguments.only = value;
    } else if (name == "--kib") {
      arguments.kibibytes = numbers_in(value);
    } else if (name == "--threads") {
      arguments.threads = numbers_in(value);
    } else if (name == "--rounds") {
      arguments.rounds = std::stoi(value);
    } else if (name == "--form") {
      arguments.form = value;
    } else if (name == "--quantile") {
      arguments.quantile = std::stod(value);
    } else {
      throw std::invalid_argument("unknown option " + name);
    }
  }
  return arguments;
}

struct Row {
  std::string name;
  double kibibytes = 0;
  int threads = 1;
  double seconds = 0;
  double copy_seconds = 0;
  std::string copy;  // the fastest one
  double operation_seconds = 0;
  std::vector<OperationCount> operations;

  double limit() const { return std::max(copy_seconds, operation_seconds); }
  double share() const { return limit() / seconds; }
};

Row measure(FusedRun& group, const OperationPeak& peak, ThreadPool& pool,
            const Arguments& arguments) {
  std::vector<LimitLoop> copies = copy_limits(group.bytes());
  std::vector<Contender> contenders = {{[&] { group.run(pool); }, pool.threads()}};
  for (LimitLoop& copy : copies) contenders.push_back({[&] { copy.run(pool); }, pool.threads()});
  // So many points take some microseconds; all threads have their own units.
  const int64_t points = int64_t{256} * peak.lanes();
  contenders.push_back({[&] { peak.run(points); }, 1});
  take_turns(contenders, pool, arguments.rounds);
  Row row;
  row.threads = pool.threads();
  row.seconds = contenders.front().quantile(arguments.quantile);
  row.copy_seconds = contenders[1].quantile(arguments.quantile);
  row.copy = copies.front().name();
  for (size_t copy = 1; copy < copies.size(); ++copy) {
    const double seconds = contenders[copy + 1].quantile(arguments.quantile);
    if (seconds >= row.copy_seconds) continue;
    row.copy_seconds = seconds;
    row.copy = copies[copy].name();
  }
  row.operation_seconds = contenders.back().quantile(arguments.quantile) *
                          static_cast<double>(group.group().points()) /
                          static_cast<double>(points) / pool.threads();
  row.operations = operations_of(group.group());
  return row;
}

std::string operations_text(const Row& row, bool is_json) {
  std::string text;
  for (const OperationCount& operation : row.operations) {
    text += text.empty() ? "" : ", ";
    text += is_json ? "\"" + operation.kind + "\": " + std::to_string(operation.count)
                    : std::to_string(operation.count) + " " + operation.kind;
  }
  return text;
}

void print_row(const Row& row, bool is_json, bool is_first) {
  if (is_json) {
    std::printf(
        "%s\n  {\"group\": \"%s\", \"kib\": %.0f, \"threads\": %d, \"us\": %.4f, "
        "\"copy_us\": %.4f, \"copy\": \"%s\", \"operations_us\": %.4f, \"limit_share\": %.4f,\n"
        "   \"operations\": {%s}}",
        is_first ? "[" : ",", row.name.c_str(), row.kibibytes, row.threads, row.seconds * 1e6,
        row.copy_seconds * 1e6, row.copy.c_str(), row.operation_seconds * 1e6, row.share(),
        operations_text(row, true).c_str());
    return;
  }
  if (is_first) {
    std::printf(
        "| group | KiB | threads | us | copy, us | operations, us | %% of the limit | "
        "operations of a point |\n|---|---|---|---|---|---|---|---|\n");
  }
  std::printf("| %s | %.0f | %d | %.2f | %.2f (%s) | %.2f | %.0f | %s |\n", row.name.c_str(),
              row.kibibytes, row.threads, row.seconds * 1e6, row.copy_seconds * 1e6,
              row.copy.c_str(), row.operation_seconds * 1e6, 100 * row.share(),
              operations_text(row, false).c_str());
  std::fflush(stdout);
}

void print_text(const FusedRun& run, const std::string& form) {
  const int32_t number = form == "expression" ? TESSERA_KERNEL_EXPRESSION
                         : form == "source"   ? TESSERA_KERNEL_SOURCE
                                              : TESSERA_KERNEL_ASSEMBLY;
  std::printf("%s\n", run.text(number).c_str());
}

int run(const std::vector<std::string>& given) {
  const Arguments arguments = read_arguments(given);
  const ops::Registry registry = ops::make_registry();
  const auto store =
      std::make_shared<jit::KernelStore>(jit::this_processor(), plugin::Blobs(), "bench");
  const std::string missing = store->explain_missing_compiler();
  if (!missing.empty()) throw std::runtime_error(missing);
  bool is_first = true;
  for (const double threads : arguments.threads) {
    ThreadPool pool(static_cast<int>(threads));
    for (const double kibibytes : arguments.kibibytes) {
      for (const FusedCase& wanted : fused_cases()) {
        if (wanted.name.find(arguments.only) == std::string::npos) continue;
        FusedRun group(registry, wanted, static_cast<int64_t>(kibibytes * 1024), store);
        if (!arguments.form.empty()) {
          print_text(group, arguments.form);
          continue;
        }
        const OperationPeak peak(group.group(), store);
        Row row = measure(group, peak, pool, arguments);
        row.name = wanted.name;
        row.kibibytes = kibibytes;
        print_row(row, arguments.is_json, is_first);
        is_first = false;
      }
    }
  }
  if (arguments.is_json && !is_first) std::printf("\n]\n");
  return 0;
}

}  // namespace
}  // namespace tessera::bench

int main(int count, char** arguments) {
  try {
    return tessera::bench::run({arguments + 1, arguments + count});
  } catch (const std::invalid_argument& exception) {
    std::fprintf(stderr, "%s\n\n%s", exception.what(), tessera::bench::kUsage);
    return 2;
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "%s\n", exception.what());
    return 1;
  }
}
