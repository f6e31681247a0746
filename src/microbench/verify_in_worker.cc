#include "microbench/verify_in_worker.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/files/byte_archive.h"
#include "base/memory/memory.h"
#include "base/process/child_process.h"
#include "base/process/message_channel.h"
#include "base/process/module_folder.h"
#include "microbench/bench_messages.h"
#include "microbench/time_limits.h"
#include "microbench/verify_messages.h"
#include "tessera/error.h"

namespace tessera::tuning {
namespace {

using verification::Report;
using verification::VerifiedBackend;
using verification::VerifyStep;

// After an op has lost this number of processes, its other cases are skipped.
constexpr int kMaxLossesOfSubject = 2;
// After this number of losses in total, or of calls that did not return, all that remains is
// skipped.
constexpr int kMaxLosses = 20;
constexpr int kMaxHangs = 3;
constexpr double kSecondsToSend = 10;
constexpr double kVerifyMemoryShare = 0.9;

// How a process was lost.
struct Loss {
  VerifyStep step;
  std::string message;  // "the plug-in crashed (segmentation fault)"
  bool is_hang = false;
};

std::string explain(const ProcessEnd& end) {
  if (end.signal == 0) {
    return "the plug-in ended the process" +
           (end.exit_code < 0 ? "" : " (exit code " + std::to_string(end.exit_code) + ")");
  }
  std::string name = ::strsignal(end.signal);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return "the plug-in crashed (" + name + ")";
}

// One process, from its start until it is finished or lost.
class Attempt {
 public:
  Attempt(const VerifyWorkerOptions& options, const VerifyRequest& request,
          VerifiedBackend& verified)
      : options_(options), verified_(verified) {
    auto [mine, its] = MessageChannel::make_sockets();
    process_.emplace(options.program, std::vector<std::string>{kVerifyArgument}, std::move(its));
    channel_ = MessageChannel(std::move(mine), kMaxAnswerBytes, false);
    ByteWriter writer;
    writer(request);
    channel_.send(
        {.kind = static_cast<uint32_t>(VerifyMessage::Start), .payload = writer.take_bytes()},
        deadline_in(kSecondsToSend));
  }

  // nullopt if it finished.
  std::optional<Loss> follow() {
    while (true) {
      Message message;
      Delivery delivery = channel_.wait(deadline_in(options_.step_timeout_seconds));
      if (delivery == Delivery::Done)
        delivery = channel_.receive(message, deadline_in(kSecondsToSend));
      if (delivery != Delivery::Done) return lose(delivery);
      const std::optional<VerifyNews> news = read(message);
      if (!news) return lose(Delivery::Damaged);
      if (news->identity != build_identity()) {
        throw Error(ErrorKind::DeviceFailed, "program '" + options_.program.string() + "'",
                    "expected a program of " + build_identity() + ", found another one");
      }
      has_unsent_steps_ = true;
      if (!news->name.empty()) {
        verified_.name = news->name;
        verified_.version = news->version;
      }
      verified_.report.add(news->found);
      if (message.kind == static_cast<uint32_t>(VerifyMessage::Done)) return std::nullopt;
      step_ = news->step;
      if (options_.watcher) options_.watcher(step_);
    }
  }

 private:
  static std::optional<VerifyNews> read(const Message& message) {
    if (message.kind != static_cast<uint32_t>(VerifyMessage::Step) &&
        message.kind != static_cast<uint32_t>(VerifyMessage::Done)) {
      return std::nullopt;
    }
    try {
      VerifyNews news;
      ByteReader reader(message.payload);
      reader(news);
      reader.expect_end();
      return news;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  Loss lose(Delivery delivery) {
    // If the socket was closed, its end will be known soon.
    const std::optional<ProcessEnd> end = process_->wait(
        delivery == Delivery::Closed ? std::chrono::seconds(2) : std::chrono::seconds(0));
    const bool is_left_behind = process_->kill().is_left_behind;
    if (!has_unsent_steps_) {
      throw Error(ErrorKind::DeviceFailed, "program '" + options_.program.string() + "'",
                  end ? "it " + text(*end) + " before it began" : "it does not answer");
    }
    if (end) return {step_, explain(*end)};
    if (delivery == Delivery::Late) {
      return {step_,
              "the plug-in did not come back within " +
                  seconds_text(options_.step_timeout_seconds) + " (--timeout)" +
                  (is_left_behind ? ", and its process cannot be ended" : ""),
              true};
    }
    return {step_, "the plug-in corrupted the messages of its process"};
  }

  const VerifyWorkerOptions& options_;
  VerifiedBackend& verified_;
  std::optional<ChildProcess> process_;
  MessageChannel channel_;
  VerifyStep step_ = {.check = "opens", .subject = "the plug-in"};
  bool has_unsent_steps_ = false;
};

// "op Conv, case 3".
std::string location_of(const VerifyStep& step) {
  if (step.case_count == 0) return step.subject;
  return step.subject + ", case " + std::to_string(step.case_number);
}

}  // namespace

VerifiedBackend verify_in_worker(const std::filesystem::path& library,
                                 const verification::VerifyOptions& options,
                                 const VerifyWorkerOptions& given) {
  verification::check_is_file(library);
  VerifyWorkerOptions worker = given;
  if (worker.program.empty()) {
    FoundCode found = find_program("tessera-worker");
    if (!found.refusal.empty()) {
      throw Error(ErrorKind::DeviceFailed, "program 'tessera-worker'", found.refusal);
    }
    worker.program = std::move(found.path);
  }
  if (worker.memory_bytes == 0) {
    const int64_t available = std::min(available_memory_bytes(), int64_t{1} << 50);
    worker.memory_bytes = static_cast<int64_t>(kVerifyMemoryShare * static_cast<double>(available));
  }
  VerifyRequest request = {.identity = build_identity(),
                           .library = std::filesystem::absolute(library).string(),
                           .seed = options.seed,
                           .cases = options.cases,
                           .first_unit = options.first_unit,
                           .passed_over = {options.passed_over.begin(), options.passed_over.end()},
                           .memory_bytes = worker.memory_bytes};
  VerifiedBackend verified;
  std::map<std::string, int> losses;  // by subject
  int all_losses = 0;
  int hangs = 0;
  const auto attempt = [&]() -> std::optional<Loss> {
    try {
      return Attempt(worker, request, verified).follow();
    } catch (const Error& error) {
      // The caller may verify in this process if none can be started, but not after a crash.
      if (all_losses == 0 || error.kind() != ErrorKind::DeviceFailed) throw;
      verified.report.fail(
          "judged to the end", "the plug-in",
          "no other process could be started after it was lost: " + error.message());
      return std::nullopt;
    }
  };
  while (const std::optional<Loss> loss = attempt()) {
    const VerifyStep& step = loss->step;
    verified.report.fail(step.check, location_of(step), loss->message, step.detail);
    // If the plug-in cannot be opened, nothing can be tested; if closing failed, everything was
    // tested.
    if (step.unit < 0) break;
    hangs += loss->is_hang ? 1 : 0;
    if (++all_losses == kMaxLosses || hangs == kMaxHangs) {
      verified.report.fail("judged to the end", "the plug-in",
                           "it crashed or hung " + std::to_string(all_losses) +
                               " times: nothing after " + location_of(step) + " was tried");
      break;
    }
    if (++losses[step.subject] == kMaxLossesOfSubject) {
      request.passed_over.push_back(step.subject);
    }
    request.first_unit = step.unit + 1;
  }
  return verified;
}

}  // namespace tessera::tuning
