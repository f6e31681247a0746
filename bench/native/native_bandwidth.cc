// Times the kernels of the native backend and loops that only access memory, in turns in one
// process, and prints the share of that limit that each kernel reaches.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "native_case.h"
#include "native_limits.h"
#include "native_peak.h"
#include "native_run.h"
#include "turns.h"

namespace tessera::bench {
namespace {

constexpr const char* kUsage =
    "usage: tessera_bench_native [--only TEXT] [--mib SIZES] [--threads COUNTS] [--rounds N]\n"
    "                            [--before PLUGIN]\n"
    "       tessera_bench_native --limits SIZES [--threads COUNTS] [--rounds N]\n"
    "\n"
    "Times kernels whose name holds TEXT, with a largest tensor of each of the SIZES (\"1,64\"), "
    "on\n"
    "each of the COUNTS of threads (\"1,2\"). What is printed: bytes read and written, the median\n"
    "of N rounds (15), and the percentage of the fastest loop that moves as many bytes.\n"
    "\n"
    "--before takes another build of backend_native.so, whose kernels take turns with those of "
    "this\n"
    "build: a row ends with its time and with how many times as fast this build is.\n"
    "\n"
    "--limits tells what the machine does at most instead, a line of JSON for each count of\n"
    "threads: the fastest copy and the fastest loop that reads, of SIZES in MiB read and written\n"
    "together, and multiply-adds in registers.\n";

struct Arguments {
  std::string only;
  std::string before;  // another build of the plug-in; "": none
  std::vector<double> mebibytes = {1, 64};
  std::vector<double> limit_mebibytes = {};  // if only these limits are wanted
  std::vector<int> threads = {1, 2};
  int rounds = 15;
};

Arguments read_arguments(const std::vector<std::string>& given) {
  Arguments arguments;
  for (size_t index = 0; index < given.size(); index += 2) {
    if (index + 1 == given.size()) throw std::invalid_argument("no value for " + given[index]);
    const std::string& value = given[index + 1];
    if (given[index] == "--only") {
      arguments.only = value;
    } else if (given[index] == "--before") {
      arguments.before = value;
    } else if (given[index] == "--mib") {
      arguments.mebibytes = numbers_in(value);
    } else if (given[index] == "--limits") {
      arguments.limit_mebibytes = numbers_in(value);
    } else if (given[index] == "--threads") {
      arguments.threads.clear();
      for (const double count : numbers_in(value)) {
        arguments.threads.push_back(static_cast<int>(count));
      }
    } else if (given[index] == "--rounds") {
      arguments.rounds = std::stoi(value);
    } else {
      throw std::invalid_argument("unknown option " + given[index]);
    }
  }
  return arguments;
}

// `before`: another build of the backend, or null.
void time_case(const NativeBackend& backend, const NativeBackend* before,
               const BandwidthCase& wanted, int64_t bytes, ThreadPool& pool, int rounds) {
  NativeRun kernel(backend, wanted, bytes, pool);
  std::optional<NativeRun> earlier;
  if (before != nullptr) earlier.emplace(*before, wanted, bytes, pool);
  std::vector<LimitLoop> limits =
      wanted.limit == Limit::Copy ? copy_limits(kernel.bytes()) : read_limits(kernel.bytes());
  std::vector<Contender> contenders = {{[&] { kernel.run(); }, pool.threads()}};
  for (LimitLoop& limit : limits) contenders.push_back({[&] { limit.run(pool); }, pool.threads()});
  if (earlier) contenders.push_back({[&] { earlier->run(); }, pool.threads()});
  const std::vector<double> medians = medians_in_turns(contenders, pool, rounds);
  const auto first_limit = medians.begin() + 1;
  const auto fastest =
      std::min_element(first_limit, first_limit + static_cast<std::ptrdiff_t>(limits.size()));
  const double seconds = medians.front();
  const double limit = *fastest;
  const auto moved = static_cast<double>(kernel.bytes());
  std::printf("%-44s %8.2f MiB %d threads %10.1f us %6.1f GB/s, %5.1f %% of %s (%.1f GB/s)",
              wanted.name.c_str(), moved / (1 << 20), pool.threads(), seconds * 1e6,
              moved / seconds * 1e-9, 100 * limit / seconds,
              limits[static_cast<size_t>(fastest - first_limit)].name().c_str(),
              moved / limit * 1e-9);
  if (earlier) {
    std::printf(", before %.1f us, %.2f times as fast", medians.back() * 1e6,
                medians.back() / seconds);
  }
  std::printf("\n");
  std::fflush(stdout);
}

double bytes_per_second(std::vector<LimitLoop> limits, double bytes, ThreadPool& pool, int rounds) {
  std::vector<Contender> contenders;
  for (LimitLoop& limit : limits) contenders.push_back({[&] { limit.run(pool); }, pool.threads()});
  double min_median = std::numeric_limits<double>::infinity();
  for (const double median : medians_in_turns(contenders, pool, rounds)) {
    min_median = std::min(min_median, median);
  }
  return bytes / min_median;
}

void print_limits(const Arguments& arguments, int threads) {
  ThreadPool pool(threads);
  std::string copies;
  std::string reads;
  for (const double mebibytes : arguments.limit_mebibytes) {
    const double bytes = mebibytes * (1 << 20);
    const std::string comma = copies.empty() ? "" : ", ";
    copies += comma + std::to_string(bytes_per_second(copy_limits(static_cast<int64_t>(bytes)),
                                                      bytes, pool, arguments.rounds));
    reads += comma + std::to_string(bytes_per_second(read_limits(static_cast<int64_t>(bytes)),
                                                     bytes, pool, arguments.rounds));
  }
  std::printf(
      "{\"threads\": %d, \"copy_bytes_per_second\": [%s], \"read_bytes_per_second\": [%s], "
      "\"flops_per_second\": %f}\n",
      threads, copies.c_str(), reads.c_str(), measure_flops_per_second(pool));
}

int run(const std::vector<std::string>& given) {
  const Arguments arguments = read_arguments(given);
  if (!arguments.limit_mebibytes.empty()) {
    for (const int threads : arguments.threads) print_limits(arguments, threads);
    return 0;
  }
  const NativeBackend backend;
  std::optional<NativeBackend> before;
  if (!arguments.before.empty()) before.emplace(arguments.before);
  bool has_failed = false;
  std::vector<BandwidthCase> cases;
  for (const auto& family : {copy_cases(), conversion_cases(), element_cases(), reduction_cases()})
    cases.insert(cases.end(), family.begin(), family.end());
  for (const int threads : arguments.threads) {
    ThreadPool pool(threads);
    for (const double mebibytes : arguments.mebibytes) {
      for (const BandwidthCase& wanted : cases) {
        if (wanted.name.find(arguments.only) == std::string::npos) continue;
        try {
          const auto bytes = static_cast<int64_t>(mebibytes * (1 << 20));
          time_case(backend, before ? &*before : nullptr, wanted, bytes, pool, arguments.rounds);
        } catch (const std::exception& exception) {
          std::printf("%s\n", exception.what());
          has_failed = true;
        }
      }
    }
  }
  return has_failed ? 1 : 0;
}

}  // namespace
}  // namespace tessera::bench

int main(int count, char** arguments) {
  try {
    return tessera::bench::run({arguments + 1, arguments + count});
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "%s\n\n%s", exception.what(), tessera::bench::kUsage);
    return 2;
  }
}
