#include "microbench/worker_bench.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/errors/check.h"
#include "base/files/byte_archive.h"
#include "base/memory/memory.h"
#include "base/memory/shared_bytes.h"
#include "base/process/child_process.h"
#include "base/process/message_channel.h"
#include "base/process/module_folder.h"
#include "microbench/bench_messages.h"
#include "microbench/shared_blobs.h"
#include "microbench/time_limits.h"
#include "tessera/error.h"

namespace tessera::tuning {
namespace {

using std::chrono::microseconds;

// Limits for which there are no options.
constexpr double kPrepareSeconds = 120;    // asking plug-ins, converting, packing, reading weights
constexpr double kMaxBuildSeconds = 7200;  // for everything that one request builds
constexpr double kAnswerSeconds = 10;      // from the first byte of an answer to its last
constexpr double kPollSeconds = 0.05;      // interval of checking the progress of a silent worker
constexpr int kMaxRuns = 100;              // within one request
constexpr int64_t kMaxCompiled = 100'000;  // codes within one request
// This process needs memory meanwhile, and the worker's own threads and buffers come in addition.
constexpr double kMemoryShare = 0.5;

std::string explain_end(const std::string& what, BenchStage stage) {
  const char* during = stage == BenchStage::Run     ? " while running"
                       : stage == BenchStage::Build ? " while building"
                                                    : " while preparing";
  return "its process " + what + during;
}

// One process and its state.
struct Worker {
  ChildProcess process;
  MessageChannel channel;
  SharedPage page;
  WorkerBlobs blobs;
  std::set<CandidateId> touched;  // built in it at any time
  std::set<CandidateId> built;    // and still built
};

// The result of one exchange: an answer, or why the process was lost.
struct Reply {
  Message answer;
  std::string loss;
  bool is_crash = false;  // ended by itself, not by a limit
};

// The answer of a process of this build.
std::string packed_identity() {
  ByteWriter writer;
  writer(build_identity());
  return writer.take_bytes();
}

// "" or why there is no answer of the requested kind.
std::string explain_failure(const Reply& reply) {
  if (!reply.loss.empty()) return reply.loss;
  if (reply.answer.kind != static_cast<uint32_t>(BenchMessage::Failure)) return "";
  try {
    ErrorText error;
    ByteReader reader(reply.answer.payload);
    reader(error);
    return error.where + ": " + error.message;
  } catch (const Error& error) {
    return "gave an invalid answer: " + error.message();
  }
}

}  // namespace

struct WorkerBench::State {
  explicit State(WorkerOptions given) : options(std::move(given)) {}

  void start();
  void replace();
  std::string load_group();
  template <class Content>
  Reply ask(BenchMessage kind, const Content& content);
  Reply exchange(const Message& request);
  Delivery await_answer(uint32_t kind, Message& answer);
  Delivery answer_question(const Message& question);
  double limit_of(BenchStage stage) const;
  std::string explain_late(BenchStage stage) const;
  bool is_alive();
  void end_process();
  void note_peak();

  template <class Result, class Content>
  Result request(BenchMessage kind, const CandidateId* id, const Content& content);
  template <class Result>
  std::optional<Result> read_result(Reply& reply, const std::string& backend);
  Outcome read_built(ByteReader& reader, const std::string& backend);
  Outcome ensure_built(const CandidateId& id);

  WorkerOptions options;
  std::vector<std::shared_ptr<const Plugin>> opened;  // here
  std::vector<PluginRef> plugins;                     // the same for the worker
  SharedArena arena;                                  // of the tensors of `group`
  std::optional<Message> group;                       // as sent; its file can be sent again
  std::unique_ptr<Worker> worker;
  int64_t peak_bytes = 0;  // of the largest process so far
};

// --- Starting ------------------------------------------------------------------------------------

void WorkerBench::State::start() {
  auto [mine, its] = MessageChannel::make_sockets();
  SharedPage page = SharedPage::make();
  new (page.data()) ProgressPage();
  // A ChildProcess cannot be moved.
  // NOLINTNEXTLINE(modernize-make-unique)
  worker.reset(new Worker{.process = {options.program, {}, std::move(its), options.wait},
                          .channel = {std::move(mine), kMaxAnswerBytes, false},
                          .page = std::move(page),
                          .blobs = WorkerBlobs(options.services)});
  const auto available = static_cast<double>(std::min(available_memory_bytes(), int64_t{1} << 50));
  StartRequest start = {.identity = build_identity(),
                        .plugins = plugins,
                        .threads = options.threads,
                        .memory_bytes = options.memory_bytes};
  if (start.memory_bytes == 0) start.memory_bytes = static_cast<int64_t>(kMemoryShare * available);
  ByteWriter writer;
  writer(start);
  Message request = {.kind = static_cast<uint32_t>(BenchMessage::Start),
                     .payload = writer.take_bytes()};
  request.files.push_back(worker->page.share());
  const Reply reply = exchange(request);
  std::string wrong = explain_failure(reply);
  if (wrong.empty() && reply.answer.payload != packed_identity()) {
    wrong = "expected a program of " + build_identity() + ", found another one";
  }
  if (wrong.empty()) return;
  end_process();
  worker.reset();
  throw Error(ErrorKind::DeviceFailed, "program '" + options.program.string() + "'", wrong);
}

// "" or why the process could not load the group.
std::string WorkerBench::State::load_group() {
  const Reply reply = exchange(*group);
  worker->built.clear();
  return explain_failure(reply);
}

// A process that has ended by itself cannot be queried any more.
void WorkerBench::State::note_peak() {
  if (worker == nullptr) return;
  peak_bytes = std::max(peak_bytes, peak_resident_bytes(worker->process.id()));
}

// Retries once if a process does not start, because memory of the previous one may still be in use.
void WorkerBench::State::replace() {
  note_peak();
  if (worker != nullptr) end_process();
  worker.reset();
  try {
    start();
  } catch (const Error&) {
    start();
  }
  if (!group) return;
  const std::string wrong = load_group();
  if (wrong.empty()) return;
  worker.reset();
  throw Error(ErrorKind::DeviceFailed, "program '" + options.program.string() + "'",
              "could not load a group: " + wrong);
}

// --- Asking --------------------------------------------------------------------------------------

double WorkerBench::State::limit_of(BenchStage stage) const {
  if (stage == BenchStage::Run) return options.candidate_timeout_seconds;
  if (stage == BenchStage::Prepare) return kPrepareSeconds;
  const auto* page = static_cast<const ProgressPage*>(worker->page.data());
  const double announced = static_cast<double>(page->announced_build_us) * 1e-6;
  return build_limit(options.build_timeout_seconds, announced);
}

std::string WorkerBench::State::explain_late(BenchStage stage) const {
  const std::string limit = seconds_text(limit_of(stage));
  if (stage == BenchStage::Run) {
    return "took longer than " + limit + " to run (--candidate-timeout)";
  }
  return "took longer than " + limit +
         (stage == BenchStage::Build ? " to build" : " to prepare its inputs and weights");
}

// Waits for the answer to a request of the kind, as long as the stages of the worker may take.
// Answers its questions meanwhile.
Delivery WorkerBench::State::await_answer(uint32_t kind, Message& answer) {
  const auto* page = static_cast<const ProgressPage*>(worker->page.data());
  const int64_t start_us = now_us();
  const double max_seconds =
      kPrepareSeconds + kMaxBuildSeconds + kMaxRuns * options.candidate_timeout_seconds;
  while (true) {
    const Progress progress = page->read();
    // Clamped, so that a worker with false times gains nothing.
    const int64_t since_us = std::clamp(progress.since_us, start_us, now_us());
    const double passed = static_cast<double>(now_us() - since_us) * 1e-6;
    const double whole = static_cast<double>(now_us() - start_us) * 1e-6;
    const double left = std::min(limit_of(progress.stage) - passed, max_seconds - whole);
    if (left <= 0) return Delivery::Late;
    Delivery delivery = worker->channel.wait(deadline_in(std::min(left, kPollSeconds)));
    if (delivery == Delivery::Late) continue;
    if (delivery == Delivery::Done)
      delivery = worker->channel.receive(answer, deadline_in(kAnswerSeconds));
    if (delivery == Delivery::Done && WorkerBlobs::is_question(answer)) {
      delivery = answer_question(answer);
      if (delivery == Delivery::Done) continue;
    }
    if (delivery != Delivery::Done) return delivery;
    worker->blobs.end_claims();
    const bool is_expected =
        answer.kind == kind || answer.kind == static_cast<uint32_t>(BenchMessage::Failure);
    return is_expected ? Delivery::Done : Delivery::Damaged;
  }
}

Reply WorkerBench::State::exchange(const Message& request) {
  auto* page = static_cast<ProgressPage*>(worker->page.data());
  page->announced_build_us = 0;
  page->enter(BenchStage::Prepare);
  Reply reply;
  Delivery delivery = worker->channel.send(request, deadline_in(kPrepareSeconds));
  if (delivery == Delivery::Done) delivery = await_answer(request.kind, reply.answer);
  if (delivery == Delivery::Done) return reply;
  const Progress progress = page->read();
  // If the socket was closed, the end of the process will be known soon; processes that it started
  // may keep the socket open.
  const std::optional<ProcessEnd> end = worker->process.wait(
      delivery == Delivery::Closed ? std::chrono::seconds(2) : std::chrono::seconds(0));
  reply.is_crash = delivery != Delivery::Late || end.has_value();
  if (delivery == Delivery::Damaged) {
    reply.loss = explain_end("gave an invalid answer", progress.stage);
  } else if (reply.is_crash) {
    reply.loss = explain_end(end ? text(*end) : "closed its connection", progress.stage);
  } else {
    reply.loss = explain_late(progress.stage);
  }
  end_process();
  return reply;
}

// A worker that asks for something else than blobs is broken.
Delivery WorkerBench::State::answer_question(const Message& question) {
  try {
    return worker->channel.send(worker->blobs.answer(question), deadline_in(kAnswerSeconds));
  } catch (const Error&) {
    return Delivery::Damaged;
  }
}

// If the process cannot be ended, measuring continues with another one.
void WorkerBench::State::end_process() {
  worker->blobs.end_claims();
  if (!worker->process.kill(options.kill_patience).is_left_behind) return;
  if (options.log == nullptr) return;
  options.log->warn("process " + std::to_string(worker->process.id()) +
                    ", which measured, was killed but has not ended, perhaps because a "
                    "disk does not answer; it is left behind, and measuring continues without it");
}

template <class Content>
Reply WorkerBench::State::ask(BenchMessage kind, const Content& content) {
  ByteWriter writer;
  writer(content);
  return exchange({.kind = static_cast<uint32_t>(kind), .payload = writer.take_bytes()});
}

namespace {

bool is_credible(const Outcome& outcome) {
  return std::isfinite(outcome.seconds) && outcome.seconds >= 0;
}

bool is_credible(const Checked& checked) {
  return std::isfinite(checked.tolerance) && (!checked.is_fine() || std::isfinite(checked.error));
}

}  // namespace

// The answer to a Build request, whose compiled codes count as those of the backend here.
Outcome WorkerBench::State::read_built(ByteReader& reader, const std::string& backend) {
  BuildAnswer answer;
  reader(answer);
  const auto& [count, seconds] = answer.compiled;
  if (count < 0 || count > kMaxCompiled || !(seconds >= 0 && seconds <= kMaxBuildSeconds)) {
    ByteReader::fail("an invalid number of compiled codes");
  }
  for (const std::shared_ptr<const Plugin>& plugin : opened) {
    if (plugin->name() == backend) plugin->add_compiled_elsewhere(count, seconds);
  }
  return answer.outcome;
}

// Returns the result. If the answer is a failure or invalid, returns nullopt and sets `reply.loss`.
template <class Result>
std::optional<Result> WorkerBench::State::read_result(Reply& reply, const std::string& backend) {
  if (std::string failure = explain_failure(reply); !failure.empty()) {
    // The other bench ran out of memory, which is attributed to the candidate.
    reply.loss = "could not be measured: " + failure;
    return std::nullopt;
  }
  const auto reject = [&]() -> std::optional<Result> {
    reply.is_crash = true;
    reply.loss = "its process gave an invalid answer";
    return std::nullopt;
  };
  try {
    ByteReader reader(reply.answer.payload);
    Result result;
    if constexpr (std::is_same_v<Result, Outcome>) {
      const bool is_build = reply.answer.kind == static_cast<uint32_t>(BenchMessage::Build);
      if (is_build) result = read_built(reader, backend);
      if (!is_build) reader(result);
    } else {
      reader(result);
    }
    reader.expect_end();
    return is_credible(result) && !result.is_lost ? std::optional(result) : reject();
  } catch (const Error&) {
    return reject();
  }
}

// Whether the idle process is still running and silent.
bool WorkerBench::State::is_alive() {
  return worker != nullptr &&
         worker->channel.wait(std::chrono::steady_clock::now()) == Delivery::Late;
}

Outcome WorkerBench::State::ensure_built(const CandidateId& id) {
  if (worker->built.contains(id)) return {};
  return request<Outcome>(BenchMessage::Build, &id, id);
}

template <class Result, class Content>
Result WorkerBench::State::request(BenchMessage kind, const CandidateId* id,
                                   const Content& content) {
  const std::string backend = id != nullptr ? id->backend : "";
  // If the process has ended while it was idle, no candidate is to blame.
  if (!is_alive()) replace();
  for (bool is_again = false;; is_again = true) {
    Reply reply;
    if (kind == BenchMessage::Build) {
      worker->touched.insert(*id);
    } else if (id != nullptr) {
      const Outcome built = ensure_built(*id);
      if (!built.is_fine()) {
        Result failed;
        failed.reason = built.reason;
        failed.is_lost = built.is_lost;
        return failed;
      }
    }
    reply = ask(kind, content);
    if (reply.loss.empty()) {
      if (std::optional<Result> result = read_result<Result>(reply, backend)) {
        if (kind == BenchMessage::Build && result->is_fine()) worker->built.insert(*id);
        return *std::move(result);
      }
    }
    const bool may_be_another =
        reply.is_crash && worker->touched.size() > (id != nullptr ? 1U : 0U);
    replace();
    if (may_be_another && !is_again) continue;
    Result lost;
    lost.reason = reply.loss;
    lost.is_lost = true;
    return lost;
  }
}

// --- The bench -----------------------------------------------------------------------------------

WorkerBench::WorkerBench(std::span<const std::shared_ptr<const Plugin>> plugins,
                         WorkerOptions options)
    : state_(std::make_unique<State>(std::move(options))) {
  if (state_->options.program.empty()) {
    FoundCode found = find_program("tessera-worker");
    if (!found.refusal.empty()) {
      throw Error(ErrorKind::DeviceFailed, "program 'tessera-worker'", found.refusal);
    }
    state_->options.program = std::move(found.path);
  }
  state_->opened.assign(plugins.begin(), plugins.end());
  for (const std::shared_ptr<const Plugin>& plugin : plugins) {
    state_->plugins.push_back({plugin->name(), plugin->file().string()});
  }
  state_->start();
}

WorkerBench::~WorkerBench() = default;

int WorkerBench::process_id() const {
  return state_->worker == nullptr ? -1 : state_->worker->process.id();
}

int64_t WorkerBench::peak_bytes() {
  state_->note_peak();
  return state_->peak_bytes;
}

void WorkerBench::load(const GroupCase& group) {
  state_->group = pack_case(group, state_->arena);
  // If loading fails, previous work of the process may be the cause: a new process has no other
  // work.
  if (!state_->is_alive() || !state_->load_group().empty()) state_->replace();
}

Outcome WorkerBench::build(const CandidateId& id) {
  TESSERA_CHECK(state_->group.has_value(), "a group is loaded before its candidates are built");
  return state_->request<Outcome>(BenchMessage::Build, &id, id);
}

Checked WorkerBench::check(const CandidateId& id) {
  TESSERA_CHECK(state_->group.has_value(), "a group is loaded before its candidates are checked");
  return state_->request<Checked>(BenchMessage::Check, &id, id);
}

Outcome WorkerBench::run(const CandidateId& id, Weights weights, int runs) {
  TESSERA_CHECK(state_->group.has_value(), "a group is loaded before its candidates are run");
  return state_->request<Outcome>(BenchMessage::Run, &id, RunRequest{id, weights, runs});
}

void WorkerBench::drop(const CandidateId& id) {
  if (!state_->is_alive() || state_->worker->built.erase(id) == 0) return;
  // If a library cannot even release a kernel, its process is replaced; then nothing is built.
  if (!state_->ask(BenchMessage::Drop, id).loss.empty()) state_->replace();
}

Outcome WorkerBench::convert(const ConversionKey& key, int runs) {
  return state_->request<Outcome>(BenchMessage::Convert, nullptr, ConvertRequest{key, runs});
}

std::unique_ptr<WorkerBench> start_worker(std::span<const std::shared_ptr<const Plugin>> plugins,
                                          WorkerOptions options, const Log& log) {
  options.log = &log;
  try {
    return std::make_unique<WorkerBench>(plugins, std::move(options));
  } catch (const Error& error) {
    const bool is_of_system =
        error.kind() == ErrorKind::DeviceFailed || error.kind() == ErrorKind::OutOfMemory;
    if (!is_of_system) throw;
    log.warn("libraries are measured in this process, which ends if one of them crashes: " +
             error.where() + ": " + error.message());
    return nullptr;
  }
}

}  // namespace tessera::tuning
