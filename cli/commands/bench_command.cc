// `tessera bench`: measures the times to load, bind and run a model.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <latch>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "api/options/argument_text.h"
#include "base/threads/parallel.h"
#include "cli/arguments/bind_arguments.h"
#include "cli/commands/bound_model.h"
#include "cli/commands/command.h"
#include "cli/inputs/shape_ranges.h"
#include "cli/output/quantities.h"
#include "cli/output/staged_files.h"
#include "cli/plans/trace_file.h"
#include "cli/process/interrupt.h"
#include "cli/reports/bench_report.h"
#include "cli/reports/progress.h"

namespace tessera::cli {
namespace {

struct StreamsEffort {
  double seconds = 0;
  uint64_t warmup_runs = 0;  // of each stream, after its first run
};

struct StreamsTimes {
  std::vector<double> run_ms;  // every measured run of all streams; empty if stopped before
  double elapsed_ms = 0;       // from the common start until the last stream has ended
};

constexpr std::chrono::milliseconds kInterruptPoll{20};

// One run of all streams.
class StreamsRun {
 public:
  StreamsRun(std::vector<BoundModel>& streams, const StreamsEffort& effort)
      : streams_(streams),
        effort_(effort),
        warm_(std::ssize(streams)),
        times_(streams.size()),
        ends_(streams.size()),
        running_(streams.size()) {}

  StreamsTimes measure(Progress& progress) {
    const Interrupt interrupt;
    std::vector<std::thread> threads;
    progress.show("warming up");
    try {
      for (size_t index = 0; index < streams_.size(); ++index) {
        threads.emplace_back([this, index] { run_stream(index); });
      }
    } catch (const std::system_error& error) {
      end_unstarted(threads.size());
      for (std::thread& thread : threads) thread.join();
      throw Error(ErrorKind::OutOfMemory, "--streams",
                  "thread " + std::to_string(threads.size() + 1) + " of " +
                      std::to_string(streams_.size()) + " could not be started: " + error.what());
    }
    watch(interrupt, progress);
    for (std::thread& thread : threads) thread.join();
    return result();
  }

 private:
  void run_stream(size_t index) {
    try {
      warm_up(streams_[index]);
      warm_.arrive_and_wait();
      time_runs(index);
    } catch (...) {
      fail(std::current_exception());
    }
    const std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  }

  void warm_up(BoundModel& stream) {
    try {
      for (uint64_t run = 0; run <= effort_.warmup_runs && !is_stopped_; ++run) {
        stream.executor.run_any(stream.feeds);
      }
    } catch (...) {
      fail(std::current_exception());
      // The other streams wait for this one.
      warm_.count_down();
      throw;
    }
  }

  void time_runs(size_t index) {
    BoundModel& stream = streams_[index];
    std::vector<double>& times = times_[index];
    const Clock::time_point start = Clock::now();
    ends_[index] = start;
    {
      const std::lock_guard lock(mutex_);
      start_ = std::min(start_, start);
    }
    while (!is_stopped_ &&
           (times.empty() || milliseconds(ends_[index] - start) < 1000 * effort_.seconds)) {
      const Clock::time_point begin = Clock::now();
      stream.executor.run_any(stream.feeds);
      ends_[index] = Clock::now();
      times.push_back(milliseconds(ends_[index] - begin));
      ++runs_;
    }
  }

  // Keeps the first error; the others are those of cancelled streams.
  void fail(const std::exception_ptr& error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    is_stopped_ = true;
  }

  void end_unstarted(size_t started) {
    is_stopped_ = true;
    for (size_t index = started; index < streams_.size(); ++index) warm_.count_down();
  }

  // Waits until all streams have ended. A signal handler can reach one executor only, so this
  // cancels them, again and again: a run may be about to begin.
  void watch(const Interrupt& interrupt, Progress& progress) {
    bool is_measuring = false;
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kInterruptPoll, [&] { return running_ == 0; })) {
      if (interrupt.is_interrupted()) is_stopped_ = was_interrupted_ = true;
      if (is_stopped_) {
        for (BoundModel& stream : streams_) stream.executor.cancel();
      } else if (!is_measuring && runs_ > 0) {
        is_measuring = true;
        progress.show_live([this, start = start_] { return measuring_text(start); });
      }
    }
    progress.show("ending");
  }

  std::string measuring_text(Clock::time_point start) const {
    return "measuring: " + decimal_text(milliseconds(Clock::now() - start) / 1000, 1) + " of " +
           decimal_text(effort_.seconds, 1) + " s, " + count_text(runs_, "run") + " (Ctrl-C: stop)";
  }

  StreamsTimes result() const {
    StreamsTimes all;
    Clock::time_point end = start_;
    for (size_t index = 0; index < streams_.size(); ++index) {
      all.run_ms.insert(all.run_ms.end(), times_[index].begin(), times_[index].end());
      end = std::max(end, ends_[index]);
    }
    if (error_ && !(was_interrupted_ && !all.run_ms.empty())) std::rethrow_exception(error_);
    if (!all.run_ms.empty()) all.elapsed_ms = milliseconds(end - start_);
    return all;
  }

  std::vector<BoundModel>& streams_;
  const StreamsEffort effort_;
  std::latch warm_;
  std::vector<std::vector<double>> times_;  // by stream; each thread writes its own
  std::vector<Clock::time_point> ends_;     // of the last run, by stream
  std::atomic<int64_t> runs_ = 0;
  std::atomic<bool> is_stopped_ = false;
  bool was_interrupted_ = false;
  std::mutex mutex_;  // protects the members below
  std::condition_variable changed_;
  size_t running_;
  Clock::time_point start_ = Clock::time_point::max();
  std::exception_ptr error_;
};

// Runs each of `streams` on a thread of its own: first without measuring, then, from a common start
// on, until the time is up, at least once. Ctrl-C cancels the current runs and ends measuring. Call
// it on the main thread. Throws what a run throws; Cancelled if Ctrl-C cancelled runs before any
// was measured.
StreamsTimes measure_streams(std::vector<BoundModel>& streams, const StreamsEffort& effort,
                             Progress& progress) {
  return StreamsRun(streams, effort).measure(progress);
}

constexpr double kMaxBenchSeconds = 86400;
constexpr uint64_t kMaxWarmupRuns = 1'000'000;
constexpr uint64_t kMaxStreams = 1024;
constexpr uint64_t kMaxThreads = 1'000'000;
constexpr uint64_t kMaxRequests = 1'000'000;

struct BenchArguments {
  ModelArguments model;
  std::optional<std::string> seconds;
  std::string warmup = "1";
  std::string trace_file;
  std::optional<std::string> streams;
  std::optional<std::string> requests;
  bool is_json = false;
};

struct Effort {
  double seconds = 0;
  uint64_t warmup_runs = 0;
};

uint64_t parse_warmup_runs(const BenchArguments& arguments) {
  return parse_whole_number("--warmup", arguments.warmup, 0, kMaxWarmupRuns);
}

Effort parse_effort(const BenchArguments& arguments) {
  return {parse_positive_number("--seconds", arguments.seconds.value_or("2"), kMaxBenchSeconds),
          parse_warmup_runs(arguments)};
}

std::string measuring_text(double elapsed_seconds, const Effort& effort, size_t runs) {
  return "measuring: " + decimal_text(elapsed_seconds, 1) + " of " +
         decimal_text(effort.seconds, 1) + " s, " + count_text(static_cast<int64_t>(runs), "run") +
         " (Ctrl-C: stop)";
}

double run_once(BoundModel& bound) {
  const Clock::time_point start = Clock::now();
  bound.executor.run_any(bound.feeds);
  return milliseconds(Clock::now() - start);
}

// The time of the first run; then runs that are not measured.
double run_first(BoundModel& bound, uint64_t warmup_runs, const Interrupt& interrupt,
                 Progress& progress) {
  progress.show("running for the first time");
  const double first_ms = run_once(bound);
  for (uint64_t run = 0; run < warmup_runs && !interrupt.is_interrupted(); ++run) {
    progress.show("warming up, run " + std::to_string(run + 1) + " of " +
                  std::to_string(warmup_runs));
    run_once(bound);
  }
  return first_ms;
}

// Runs until the time is up, at least once.
void measure_runs(BoundModel& bound, const Effort& effort, const Interrupt& interrupt,
                  Progress& progress, BenchReport& report) {
  report.first_ms = run_first(bound, effort.warmup_runs, interrupt, progress);
  const Clock::time_point start = Clock::now();
  double elapsed_seconds = 0;
  while (!interrupt.is_interrupted() &&
         (report.run_ms.empty() || elapsed_seconds < effort.seconds)) {
    report.run_ms.push_back(run_once(bound));
    elapsed_seconds = milliseconds(Clock::now() - start) / 1000;
    progress.show_live([start, effort, runs = report.run_ms.size()] {
      return measuring_text(milliseconds(Clock::now() - start) / 1000, effort, runs);
    });
  }
}

// Calls `runs`, which measures runs of `executor` and adds their times to `run_ms`. An interruption
// also cancels the current run; there are fewer times then.
template <class Runs>
void measure(Executor& executor, const std::vector<double>& run_ms, const Runs& runs) {
  const Interrupt interrupt(&executor);
  try {
    runs(interrupt);
  } catch (const Error& error) {
    const bool is_enough = interrupt.is_interrupted() && !run_ms.empty();
    if (error.kind() != ErrorKind::Cancelled || !is_enough) throw;
  }
}

// Traces one additional run, because recording would slow down the measured runs.
void write_trace(const std::filesystem::path& file, Clock::time_point origin,
                 const LoadedModel& loaded, BoundModel& bound) {
  bound.executor.record_steps(true);
  Trace trace;
  timed(origin, trace.run, [&] { return bound.executor.run_any(bound.feeds); });
  trace.load = loaded.load;
  trace.load_stages = loaded.model.stages();
  trace.bind = bound.bind;
  trace.bind_stages = bound.executor.stages();
  trace.plan = bound.executor.plan();
  trace.steps = bound.executor.steps();
  StagedFiles files;
  files.write_text(file, trace_text(trace));
  files.commit();
}

// A plan from a cache is bound without asking for other candidates and their prices, so this asks
// for them.
std::optional<PlacementDescription> placement_with_prices(const BenchArguments& arguments,
                                                          const LoadedModel& loaded) {
  const ModelRequest request(arguments.model, MissingInputs::AreRandom,
                             {.tune = {.describes_candidates = true}});
  return request.bind(loaded, Clock::now()).executor.plan().placement;
}

// The number of threads of each stream; --threads sets the threads of all streams together.
uint64_t threads_of_stream(const BenchArguments& arguments, uint64_t streams) {
  const std::optional<std::string>& given = arguments.model.bind["threads"].value;
  if (!given) return 1;
  uint64_t threads = parse_whole_number("--threads", *given, 0, kMaxThreads);
  if (threads == 0) threads = static_cast<uint64_t>(ThreadPool().threads());
  if (threads >= streams) return threads / streams;
  throw Error(ErrorKind::InvalidArgument, "--threads",
              "expected a thread for each of the " + std::to_string(streams) +
                  " streams, because --threads sets the threads of all streams together; found " +
                  std::to_string(threads));
}

CommandResult bench_streams(const BenchArguments& given) {
  const Effort effort = parse_effort(given);
  if (!given.trace_file.empty()) {
    throw Error(ErrorKind::InvalidArgument, "--trace",
                "expected no --streams beside it: a trace shows one executor");
  }
  const uint64_t streams = parse_whole_number("--streams", *given.streams, 1, kMaxStreams);
  BenchArguments arguments = given;
  arguments.model.bind["threads"].value = std::to_string(threads_of_stream(given, streams));
  const ModelRequest request(arguments.model, MissingInputs::AreRandom, BindOptions{});
  const Clock::time_point origin = Clock::now();
  const LoadedModel loaded = request.load(origin, /*keeps_all_values=*/false);
  StreamsReport report;
  std::vector<BoundModel> bound;
  while (bound.size() < streams) {
    bound.push_back(request.bind(loaded, origin));
    report.bind_ms += milliseconds(bound.back().bind.duration);
  }
  request.progress().show("building the final plan");
  for (BoundModel& stream : bound) stream.executor.wait_for_swap();
  const Executor& first = bound.front().executor;
  report.model = loaded.description.file;
  report.load_ms = milliseconds(loaded.load.duration);
  report.streams = static_cast<int>(streams);
  report.threads = first.threads() * report.streams;
  report.counts = count_steps(first.plan());
  report.cache = first.cache_report();
  StreamsTimes times =
      measure_streams(bound, {effort.seconds, effort.warmup_runs}, request.progress());
  report.run_ms = std::move(times.run_ms);
  report.elapsed_ms = times.elapsed_ms;
  return {kFine, arguments.is_json ? json_text(streams_json(report))
                                   : streams_text(report, stdout_style())};
}

// Calls `call`; an error that it throws also says which shapes the request has.
template <class Call>
auto naming_shapes(const NamedShapes& shapes, const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Cancelled) throw;
    std::string message = error.message() + "; the shapes of this request:";
    for (const auto& [input, dims] : shapes) message += " '" + input + "' " + dims_text(dims);
    throw Error(error.kind(), error.where(), message);
  }
}

// Runs requests one after the other. Drawing their shapes and making their inputs is not measured.
void measure_requests(const ModelRequest& request, const LoadedModel& loaded, ShapeDraw& draw,
                      uint64_t requests, const Interrupt& interrupt, BoundModel& bound,
                      RequestsReport& report) {
  std::vector<ValueDescription> inputs = bound.executor.inputs();
  std::set<NamedShapes> seen;
  while (!interrupt.is_interrupted() && report.run_ms.size() < requests) {
    const NamedShapes shapes = shapes_to_bind(draw.next(), loaded.inputs);
    set_shapes(shapes, loaded.description.inputs, inputs);
    report.run_ms.push_back(naming_shapes(shapes, [&] {
      request.give_inputs(loaded, inputs, bound);
      return run_once(bound);
    }));
    seen.insert(shapes);
    report.shapes = std::ssize(seen);
    request.progress().show_live([requests, done = report.run_ms.size()] {
      return "measuring: " + std::to_string(done) + " of " +
             count_text(static_cast<int64_t>(requests), "request") + " (Ctrl-C: stop)";
    });
  }
}

// Options that mean nothing for requests of random shapes are errors.
void check_beside_ranges(const BenchArguments& arguments) {
  const auto refuse_option = [](const char* option, const char* reason) {
    throw Error(ErrorKind::InvalidArgument, option,
                "expected no range of sizes in --shape beside it: " + std::string(reason));
  };
  if (arguments.streams) refuse_option("--streams", "requests run on one executor");
  if (!arguments.trace_file.empty()) refuse_option("--trace", "a trace shows one plan");
  if (arguments.seconds) refuse_option("--seconds", "--requests says how many runs are measured");
}

CommandResult bench_requests(const BenchArguments& given) {
  check_beside_ranges(given);
  const uint64_t requests =
      parse_whole_number("--requests", given.requests.value_or("100"), 1, kMaxRequests);
  const uint64_t warmup_runs = parse_warmup_runs(given);
  ModelArguments arguments = given.model;
  arguments.shapes.clear();
  std::vector<RangedShape> ranged;
  for (const std::string& shape : given.model.shapes) {
    if (has_range(shape)) {
      ranged.push_back(parse_ranged_shape(shape));
    } else {
      arguments.shapes.push_back(shape);
    }
  }
  const ModelRequest request(arguments, MissingInputs::AreRandom, BindOptions{});
  const Clock::time_point origin = Clock::now();
  LoadedModel loaded = request.load(origin, /*keeps_all_values=*/false);
  ShapeDraw draw(ranged, loaded.description.inputs, loaded.shapes, loaded.inputs,
                 request.seed().value_or(0));
  loaded.shape_ranges = draw.ranges();
  const NamedShapes first =
      with_shapes_at({.shapes = loaded.shapes, .shape_ranges = loaded.shape_ranges}, kMiddle)
          .shapes;
  BoundModel bound = naming_shapes(first, [&] { return request.bind(loaded, origin); });
  request.progress().show("building the final plan");
  bound.executor.wait_for_swap();
  RequestsReport report;
  report.model = loaded.description.file;
  report.load_ms = milliseconds(loaded.load.duration);
  report.bind_ms = milliseconds(bound.bind.duration);
  report.threads = bound.executor.threads();
  report.counts = count_steps(bound.executor.plan());
  report.cache = bound.executor.cache_report();
  measure(bound.executor, report.run_ms, [&](const Interrupt& interrupt) {
    report.first_ms = naming_shapes(
        first, [&] { return run_first(bound, warmup_runs, interrupt, request.progress()); });
    measure_requests(request, loaded, draw, requests, interrupt, bound, report);
  });
  return {kFine,
          given.is_json ? json_text(requests_json(report)) : requests_text(report, stdout_style())};
}

CommandResult bench(const BenchArguments& arguments) {
  if (std::ranges::any_of(arguments.model.shapes, has_range)) return bench_requests(arguments);
  if (arguments.requests) {
    throw Error(ErrorKind::InvalidArgument, "--requests '" + *arguments.requests + "'",
                "expected a range of sizes in --shape beside it, such as tokens=1x8..128; "
                "--seconds says how long to measure one shape");
  }
  if (arguments.streams) return bench_streams(arguments);
  const Effort effort = parse_effort(arguments);
  check_writable_file("--trace", arguments.trace_file);
  const ModelRequest request(arguments.model, MissingInputs::AreRandom, BindOptions{});
  const Clock::time_point origin = Clock::now();
  const LoadedModel loaded = request.load(origin, /*keeps_all_values=*/false);
  BoundModel bound = request.bind(loaded, origin);
  // The final plan is measured, so wait until it is in use.
  request.progress().show("building the final plan");
  bound.executor.wait_for_swap();
  BenchReport report;
  report.model = loaded.description.file;
  report.load_ms = milliseconds(loaded.load.duration);
  report.bind_ms = milliseconds(bound.bind.duration);
  report.threads = bound.executor.threads();
  report.counts = count_steps(bound.executor.plan());
  report.totals = step_totals(bound.executor.plan(), {});
  report.placement = bound.executor.plan().placement;
  report.cache = bound.executor.cache_report();
  report.compiled = bound.executor.compiled();
  report.memory = bound.executor.plan().memory;
  report.library_bytes = bound.executor.plan().library_bytes;
  measure(bound.executor, report.run_ms, [&](const Interrupt& interrupt) {
    measure_runs(bound, effort, interrupt, request.progress(), report);
  });
  request.progress().show("writing the report");
  if (arguments.is_json) {
    report.dispatch_ns_per_step = bound.executor.measure_dispatch_ns();
    if (report.cache.is_hit) report.placement = placement_with_prices(arguments, loaded);
  }
  if (!arguments.trace_file.empty()) write_trace(arguments.trace_file, origin, loaded, bound);
  return {kFine,
          arguments.is_json ? json_text(bench_json(report)) : bench_text(report, stdout_style())};
}

}  // namespace

Command make_bench_command(CommandOptions command) {
  const auto arguments = std::make_shared<BenchArguments>();
  add_model_options(command, kBenchCommand, arguments->model, MissingInputs::AreRandom);
  command.add_option("--seconds", arguments->seconds,
                     "SECONDS: how long to measure; at least one run (default 2)");
  command.add_option("--warmup", arguments->warmup,
                     "N: runs after the first that are not measured (default 1)");
  command.add_option("--requests", arguments->requests,
                     "N: if --shape has a range of sizes, such as tokens=1x8..128, how many "
                     "requests to measure, each with sizes drawn from it (default 100)");
  command.add_option("--streams", arguments->streams,
                     "N: run N executors of the model at the same time, with a thread each "
                     "(--threads sets the threads of all together), and print requests per second");
  command.add_option("--trace", arguments->trace_file,
                     "FILE: run once more and write a Chrome trace for ui.perfetto.dev");
  command.add_flag("--json", arguments->is_json, "print JSON");
  command.set_footer(
      "Inputs without a file get random numbers. Ctrl-C stops early and reports what was measured\n"
      "so far.\n\n"
      "Example:\n"
      "  tessera bench resnet50.onnx --threads 2 --seconds 5 --backends onednn\n"
      "  tessera bench resnet50.onnx --streams 4 --seconds 5\n"
      "  tessera bench bert.onnx --shape tokens=1x8..128 --requests 200");
  return [arguments] { return bench(*arguments); };
}

}  // namespace tessera::cli
