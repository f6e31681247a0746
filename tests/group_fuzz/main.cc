// Compares random groups of nodes on one backend with the reference, between guard pages.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/device_memory/hosted_kernel.h"
#include "backend/plugin.h"
#include "base/memory/guard_pages.h"
#include "group_fuzz/random_case.h"
#include "ops/registry.h"
#include "tessera/error.h"
#include "verify/check_candidate.h"

namespace tessera::group_fuzz {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kUsage =
    "usage: tessera_fuzz_groups --backend LIB.so [--count N] [--seconds S] [--seed N]\n"
    "                           [--sizes N] [--case TEXT]\n"
    "\n"
    "Makes random groups of nodes, runs each candidate of the backend that computes at least two\n"
    "nodes between guard pages, and compares every element with the reference. Ends after N "
    "groups\n"
    "(10000) or S seconds. Each group is run with N sizes (8), which share its code if the "
    "backend\n"
    "can do that. A process of its own runs them, so one that crashes is reported, too. --case "
    "runs\n"
    "the group that a finding printed, with the sizes and the --seed that it has. The exit code is "
    "1\n"
    "if there are findings.\n";

// The number of groups of one process: memory that libraries keep for groups ends with the process.
constexpr int64_t kCasesOfProcess = 1500;

struct Arguments {
  std::string backend;
  std::string text;
  int64_t count = 10'000;
  double seconds = 1e9;
  uint32_t seed = 1;
  uint32_t sizes = 8;
};

Arguments read_arguments(const std::vector<std::string>& given) {
  Arguments arguments;
  for (size_t index = 0; index + 1 < given.size(); index += 2) {
    const std::string& name = given[index];
    const std::string& value = given[index + 1];
    if (name == "--backend") {
      arguments.backend = value;
    } else if (name == "--case") {
      arguments.text = value;
    } else if (name == "--count") {
      arguments.count = std::stoll(value);
    } else if (name == "--seconds") {
      arguments.seconds = std::stod(value);
    } else if (name == "--seed") {
      arguments.seed = static_cast<uint32_t>(std::stoul(value));
    } else if (name == "--sizes") {
      arguments.sizes = static_cast<uint32_t>(std::stoul(value));
    } else {
      throw std::invalid_argument("unknown option " + name);
    }
  }
  if (given.size() % 2 != 0) throw std::invalid_argument("no value for " + given.back());
  if (arguments.backend.empty()) throw std::invalid_argument("expected --backend");
  return arguments;
}

// The report of a child process to its parent, in shared memory.
struct Progress {
  int64_t groups = 0;
  int64_t nodes = 0;     // in these groups
  int64_t cases = 0;     // random cases, of which some have no group
  int64_t elements = 0;  // of the outputs that were compared
  int64_t findings = 0;
  int64_t repeated = 0;  // fragile cases that were right with other elements
  uint32_t next = 0;     // the number of the case that runs, relative to the first
  char text[8192] = "";  // of the case that runs
};

struct Finding {
  std::string what;
  bool is_number = false;  // elements differ; nothing else is wrong
};

class GroupChecker {
 public:
  GroupChecker(const std::filesystem::path& library, Progress& progress)
      : progress_(progress),
        plugin_(Plugin::open(std::filesystem::absolute(library),
                             std::make_shared<HostServices>([](const std::string&) {}))),
        plugins_({plugin_}),
        layouts_(plugins_),
        one_(1),
        two_(2) {}

  // Also the findings of the other candidates.
  std::vector<Finding> check(const std::string& text, uint32_t seed) {
    findings_.clear();
    verification::OpCase op_case;
    try {
      op_case = verification::read_op_case(text, registry_, seed);
      ThreadPool& pool = seed % 2 == 0 ? one_ : two_;
      check_case(op_case, pool);
    } catch (const Error& error) {
      // The generator does not know which types each op takes.
      if (error.kind() == ErrorKind::Internal) findings_.push_back({error.what(), false});
    }
    return std::move(findings_);
  }

 private:
  void check_case(const verification::OpCase& op_case, ThreadPool& pool) {
    const tessera_graph view(op_case.graph, registry_);
    const Offers offers = collect_offers(view, plugins_, layouts_, {.threads = pool.threads()});
    std::optional<verification::ExpectedValues> expected;
    for (const Candidate& candidate : offers.candidates) {
      if (candidate.nodes.size() < 2 || !candidate.has_kernel()) continue;
      // Code for other layouts differs little and takes as long to compile.
      const bool is_other_layout = candidate.is_any_dense && !has_default_layouts(candidate);
      if (is_other_layout && ++other_layouts_ % 8 != 0) continue;
      if (!expected) expected = in_guard_pages(expected_of(op_case, pool));
      check_group(op_case, candidate, *expected, pool);
    }
  }

  static bool has_default_layouts(const Candidate& candidate) {
    return std::ranges::all_of(candidate.outputs, [](const CandidateOutput& output) {
      return output.layout == kDefaultLayout;
    });
  }

  verification::ExpectedValues expected_of(const verification::OpCase& op_case, ThreadPool& pool) {
    return verification::expected_values(op_case, registry_, pool);
  }

  // Kernels read their inputs there.
  static verification::ExpectedValues in_guard_pages(verification::ExpectedValues expected) {
    for (Tensor& tensor : expected.values) {
      if (tensor.is_empty() || !tensor.has_elements()) continue;
      const auto pages = std::make_shared<GuardPages>(tensor.bytes());
      std::memcpy(pages->data(), tensor.data(), static_cast<size_t>(tensor.bytes()));
      pages->forbid_writing();
      tensor = Tensor(tensor.type(), tensor.dims(), pages, pages->data());
    }
    return expected;
  }

  Finding finding_of(const verification::OpCase& op_case, const Candidate& candidate,
                     const verification::Report& report) const {
    std::string what = candidate.algorithm + " of nodes";
    for (const NodeId node : candidate.nodes) what += " " + op_case.graph[node].op;
    for (const CandidateOutput& output : candidate.outputs) {
      what += " -> " + layouts_.name(output.layout);
    }
    const bool is_number = std::ranges::all_of(
        report.failures(),
        [](const verification::Failure& failure) { return failure.check == "numbers"; });
    for (const verification::Failure& failure : report.failures()) {
      what += "\n  " + failure.check + ": " + failure.message;
    }
    return {what, is_number};
  }

  void check_group(const verification::OpCase& op_case, const Candidate& candidate,
                   const verification::ExpectedValues& expected, ThreadPool& pool) {
    const bool is_on_host = candidate.device == kHostDevice;
    const Candidate on_host = hosted(candidate, layouts_);
    verification::Report report;
    const verification::CandidateTrial trial{.expected = expected,
                                             .layouts = layouts_,
                                             .candidate = on_host,
                                             .pool = pool,
                                             .location = "",
                                             .pages = &pages_};
    // Saved kernels are checked now and then.
    if (progress_.groups % 8 == 0) {
      check_candidate(trial, report);
    } else {
      std::shared_ptr<const Kernel> kernel;
      try {
        pool.execute(
            [&] { kernel = std::make_shared<const Kernel>(candidate.build(pool.threads())); });
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::Unsupported) return;
        report.fail("builds what it offers", "", error.message());
      }
      if (kernel != nullptr && is_on_host) check_kernel(trial, *kernel, report);
      if (kernel != nullptr && !is_on_host) {
        check_kernel(trial, hosted(kernel, candidate, layouts_), report);
      }
    }
    ++progress_.groups;
    progress_.nodes += static_cast<int64_t>(candidate.nodes.size());
    for (const CandidateOutput& output : candidate.outputs) {
      progress_.elements += expected.values[static_cast<size_t>(output.value.index)].elements();
    }
    if (report.failures().empty()) return;
    findings_.push_back(finding_of(op_case, candidate, report));
  }

  Progress& progress_;
  ops::Registry registry_ = ops::make_registry();
  std::shared_ptr<const Plugin> plugin_;
  std::vector<std::shared_ptr<const Plugin>> plugins_;
  LayoutTable layouts_;
  ThreadPool one_;
  ThreadPool two_;
  GuardPagePool pages_;
  int64_t other_layouts_ = 0;
  std::vector<Finding> findings_;
};

void print_finding(const std::string& text, uint32_t seed, const std::string& what) {
  std::printf("finding: --seed %u --case '%s'\n  %s\n", seed, text.c_str(), what.c_str());
  std::fflush(stdout);
}

// A fragile case whose numbers differ must differ with other elements, too.
bool is_repeated(GroupChecker& checker, const std::string& text, uint32_t seed) {
  int wrong = 0;
  for (uint32_t other = 1; other <= 3; ++other) {
    if (!checker.check(text, seed + 7919 * other).empty()) ++wrong;
  }
  return wrong >= 2;
}

void check_one(GroupChecker& checker, Progress& progress, const RandomCase& given, uint32_t seed) {
  std::strncpy(progress.text, given.text.c_str(), sizeof(progress.text) - 1);
  const std::vector<Finding> findings = checker.check(given.text, seed);
  ++progress.cases;
  for (const Finding& finding : findings) {
    if (finding.is_number && given.is_fragile && !is_repeated(checker, given.text, seed)) {
      ++progress.repeated;
      continue;
    }
    ++progress.findings;
    print_finding(given.text, seed, finding.what);
  }
}

bool has_products(const std::string& backend) {
  return std::filesystem::path(backend).filename().string().find("jit") == std::string::npos;
}

// Runs cases from progress.next on.
void run_child(const Arguments& arguments, Progress& progress, Clock::time_point end) {
  GroupChecker checker(arguments.backend, progress);
  const uint32_t stop = progress.next + kCasesOfProcess * arguments.sizes;
  for (; progress.next < stop; ++progress.next) {
    if (progress.groups >= arguments.count || Clock::now() > end) return;
    const uint32_t structure = arguments.seed * 1'000'003 + progress.next / arguments.sizes;
    const bool has_product = has_products(arguments.backend) && structure % 4 == 0;
    const RandomCase given = random_case(structure, progress.next, has_product);
    check_one(checker, progress, given, progress.next);
  }
}

void print_summary(const Progress& progress, double seconds) {
  std::printf(
      "%lld groups of %lld cases (%.1f nodes a group, %lld elements) in %.0f s, %.0f groups/s; "
      "%lld right with other elements; %lld findings\n",
      static_cast<long long>(progress.groups), static_cast<long long>(progress.cases),
      static_cast<double>(progress.nodes) /
          static_cast<double>(std::max<int64_t>(progress.groups, 1)),
      static_cast<long long>(progress.elements), seconds,
      static_cast<double>(progress.groups) / seconds, static_cast<long long>(progress.repeated),
      static_cast<long long>(progress.findings));
}

// Starts processes one after the other until everything is done.
int run_all(const Arguments& arguments) {
  void* const shared =
      ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("no memory for the progress");
  auto& progress = *new (shared) Progress();
  const Clock::time_point start = Clock::now();
  const Clock::time_point end =
      start + std::chrono::duration_cast<Clock::duration>(
                  std::chrono::duration<double>(std::min(arguments.seconds, 1e8)));
  while (progress.groups < arguments.count && Clock::now() < end) {
    const int64_t before = progress.cases;
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("cannot start a process");
    if (child == 0) {
      try {
        run_child(arguments, progress, end);
      } catch (const std::exception& exception) {
        std::printf("finding: %s\n", exception.what());
        ++progress.findings;
        std::fflush(stdout);
        ::_exit(1);
      }
      std::fflush(stdout);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    if (progress.cases == before && WIFEXITED(status)) break;  // the backend cannot be opened
    ++progress.findings;
    print_finding(progress.text, progress.next,
                  "ended the process: " +
                      std::string(WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit"));
    ++progress.next;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  print_summary(progress, seconds);
  return progress.findings == 0 ? 0 : 1;
}

int run(const std::vector<std::string>& given) {
  const Arguments arguments = read_arguments(given);
  if (arguments.text.empty()) return run_all(arguments);
  Progress progress;
  GroupChecker checker(arguments.backend, progress);
  check_one(checker, progress, {arguments.text, false}, arguments.seed);
  std::printf("%lld groups, %lld findings\n", static_cast<long long>(progress.groups),
              static_cast<long long>(progress.findings));
  return progress.findings == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tessera::group_fuzz

int main(int count, char** arguments) {
  try {
    return tessera::group_fuzz::run({arguments + 1, arguments + count});
  } catch (const std::invalid_argument& exception) {
    std::fprintf(stderr, "%s\n\n%s", exception.what(), tessera::group_fuzz::kUsage);
    return 2;
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "%s\n", exception.what());
    return 1;
  }
}
