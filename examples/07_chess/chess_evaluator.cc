// Searches a game with a network for chess on several threads, and prints how long it takes from
// the start of the program to the first answer, and how many answers a second it gets.
//   chess_evaluator MODEL [--batch N] [--search-threads 1,2,4] [--executors N] [--seconds S]
//                   [--answers N] [--first-only] [--json]
#include <tessera/tessera.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "evaluator.h"
#include "search.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string model;
  int batch = 8;
  std::vector<int> search_threads = {1, 2, 4};
  int executors = 0;  // 0: one for each search thread, at most one for each core
  double seconds = 3;
  int answers = 0;             // of each thread, instead of `seconds`; 0: no limit
  bool is_first_only = false;  // end after the first answer
  bool is_json = false;
};

// One row of the table.
struct Result {
  int search_threads = 0;
  int executors = 0;
  int threads_of_executor = 0;
  int64_t answers = 0;
  double seconds = 0;
  int best_move = 0;  // of the first thread
  int64_t best_visits = 0;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] void refuse(const std::string& where, const std::string& message) {
  throw tessera::Error(tessera::ErrorKind::InvalidArgument, where, message);
}

template <class Number>
Number parse_positive(std::string_view option, std::string_view text) {
  Number number{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_read = failure == std::errc() && end == text.data() + text.size();
  if (is_read && number > 0 && number <= 1'000'000) return number;
  refuse(std::string(option),
         "expected a number above 0, at most a million, found '" + std::string(text) + "'");
}

Options parse(int count, char** arguments) {
  Options options;
  for (int index = 1; index < count; ++index) {
    const std::string_view option = arguments[index];
    if (option == "--json" || option == "--first-only") {
      (option == "--json" ? options.is_json : options.is_first_only) = true;
      continue;
    }
    if (!option.starts_with("--")) {
      if (!options.model.empty()) refuse("MODEL", "expected one, found two");
      options.model = option;
      continue;
    }
    const std::string_view value = index + 1 < count ? arguments[++index] : "";
    if (option == "--batch") {
      options.batch = parse_positive<int>(option, value);
    } else if (option == "--executors") {
      options.executors = parse_positive<int>(option, value);
    } else if (option == "--seconds") {
      options.seconds = parse_positive<double>(option, value);
    } else if (option == "--answers") {
      options.answers = parse_positive<int>(option, value);
    } else if (option == "--search-threads") {
      options.search_threads.clear();
      for (size_t begin = 0; begin <= value.size();) {
        const size_t end = std::min(value.find(',', begin), value.size());
        options.search_threads.push_back(
            parse_positive<int>(option, value.substr(begin, end - begin)));
        begin = end + 1;
      }
    } else {
      refuse(std::string(option),
             "expected --batch, --search-threads, --executors, --seconds, "
             "--answers, --first-only or --json");
    }
  }
  if (options.model.empty()) refuse("MODEL", "expected an ONNX file, found none");
  return options;
}

// The root of a search thread: each searches another position.
chess::Position root_of(int thread) {
  chess::Position position = chess::Position::start();
  for (int move = 0; move < thread; ++move) {
    const std::vector<int> moves = position.moves();
    position = position.after(moves[static_cast<size_t>(thread) + static_cast<size_t>(move)]);
  }
  return position;
}

// Collects leaves, asks for answers, and adds them to the tree, until `is_done`.
void search(chess::Search& tree, chess::EvaluatorPool& pool, size_t batch,
            const std::function<bool(const chess::Search& tree)>& is_done) {
  while (!is_done(tree)) {
    const std::vector<chess::Position>& leaves = tree.collect(batch);
    chess::EvaluatorPool::Lease evaluator(pool);
    tree.add((*evaluator).run(leaves));
  }
}

class Engine {
 public:
  explicit Engine(const Options& options)
      : options_(options),
        model_(tessera::load(options.model)),
        names_(chess::find_names(model_.describe())) {}

  // Evaluates the start position. Returns whether a cache had the plan.
  bool answer_first() {
    Row row = make_row(options_.search_threads.front());
    chess::Evaluator& evaluator = *row.evaluators.front();
    evaluator.run(std::vector{chess::Position::start()});
    const bool is_known = evaluator.has_known_plan();
    first_row_ = std::move(row);
    return is_known;
  }

  Result measure(int search_threads) {
    Row row = first_row_ ? std::move(*first_row_) : make_row(search_threads);
    first_row_.reset();
    Result result = row.result;
    // The first run starts the measuring of kernels, for which the next line waits.
    for (const std::unique_ptr<chess::Evaluator>& evaluator : row.evaluators) {
      evaluator->run(std::vector{chess::Position::start()});
      evaluator->wait_for_fastest_plan();
    }
    std::vector<chess::Search> trees;
    for (int thread = 0; thread < search_threads; ++thread) trees.emplace_back(root_of(thread));
    std::vector<std::exception_ptr> failures(trees.size());
    chess::EvaluatorPool pool(std::move(row.evaluators));
    const Clock::time_point start = Clock::now();
    const auto is_done = [&](const chess::Search& tree) {
      return options_.answers > 0 ? tree.answers() >= options_.answers
                                  : seconds_since(start) >= options_.seconds;
    };
    {
      std::vector<std::jthread> threads;
      for (size_t thread = 0; thread < trees.size(); ++thread) {
        threads.emplace_back([&, thread] {
          try {
            search(trees[thread], pool, static_cast<size_t>(options_.batch), is_done);
          } catch (...) {
            failures[thread] = std::current_exception();
          }
        });
      }
    }
    result.seconds = seconds_since(start);
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
    for (const chess::Search& tree : trees) result.answers += tree.answers();
    result.best_move = trees[0].best_move();
    result.best_visits = trees[0].best_visits();
    return result;
  }

 private:
  struct Row {
    Result result;
    std::vector<std::unique_ptr<chess::Evaluator>> evaluators;
  };

  // Executors of one thread each need no synchronisation inside a run, so there are as many as the
  // search threads can use. The cores that are left over make each of them faster.
  Row make_row(int search_threads) const {
    const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    Row row;
    row.result.search_threads = search_threads;
    row.result.executors =
        options_.executors > 0 ? options_.executors : std::min(search_threads, cores);
    row.result.threads_of_executor = std::max(1, cores / row.result.executors);
    for (int index = 0; index < row.result.executors; ++index) {
      row.evaluators.push_back(std::make_unique<chess::Evaluator>(model_, names_, options_.batch,
                                                                  row.result.threads_of_executor));
    }
    return row;
  }

  const Options& options_;
  tessera::Model model_;
  chess::NetworkNames names_;
  std::optional<Row> first_row_;  // that answered first
};

void print_json(double first_seconds, int64_t first_ns, bool is_known,
                const std::vector<Result>& results) {
  std::printf(
      "{\"first_answer_ms\": %.3f, \"first_answer_at_ns\": %lld, \"is_plan_known\": %s, "
      "\"rows\": [",
      1e3 * first_seconds, static_cast<long long>(first_ns), is_known ? "true" : "false");
  for (const Result& result : results) {
    std::printf(
        "%s\n  {\"search_threads\": %d, \"executors\": %d, \"threads_of_executor\": %d, "
        "\"answers\": %lld, \"answers_per_second\": %.3f, \"best_move\": %d, \"best_visits\": "
        "%lld}",
        &result == results.data() ? "" : ",", result.search_threads, result.executors,
        result.threads_of_executor, static_cast<long long>(result.answers),
        static_cast<double>(result.answers) / result.seconds, result.best_move,
        static_cast<long long>(result.best_visits));
  }
  std::printf("]}\n");
}

int run(int count, char** arguments) {
  const Clock::time_point start = Clock::now();
  const Options options = parse(count, arguments);
  Engine engine(options);
  const bool is_known = engine.answer_first();
  const double first_seconds = seconds_since(start);
  // steady_clock counts as CLOCK_MONOTONIC does, so the parent process can compare the times.
  const int64_t first_ns = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
  if (!options.is_json) {
    std::printf("start to first answer: %.1f ms, plan %s\n", 1e3 * first_seconds,
                is_known ? "known from a cache" : "not known before");
    if (options.is_first_only) return 0;
    std::printf("\nsearch threads  executors  threads each  answers/s  best move  of answers\n");
    std::fflush(stdout);
  }
  std::vector<Result> results;
  for (const int threads : options.is_first_only ? std::vector<int>() : options.search_threads) {
    const Result& result = results.emplace_back(engine.measure(threads));
    if (options.is_json) continue;
    std::printf("%14d  %9d  %12d  %9.1f  %6d-%-2d  %10lld\n", result.search_threads,
                result.executors, result.threads_of_executor,
                static_cast<double>(result.answers) / result.seconds, result.best_move / 64,
                result.best_move % 64, static_cast<long long>(result.answers));
    std::fflush(stdout);
  }
  if (options.is_json) print_json(first_seconds, first_ns, is_known, results);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chess_evaluator: %s\n", error.what());
    return 1;
  }
}
