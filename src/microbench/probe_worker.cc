#include "microbench/worker_bench.h"

#include <chrono>
#include <new>
#include <optional>
#include <utility>

#include "base/files/byte_archive.h"
#include "base/memory/shared_bytes.h"
#include "base/process/child_process.h"
#include "base/process/message_channel.h"
#include "microbench/bench_messages.h"
#include "tessera/error.h"

namespace tessera::tuning {
namespace {

// The worker needs some memory for its answer; it runs nothing.
constexpr int64_t kMemoryBytes = int64_t{1} << 30;
// How long a process whose socket was closed may take to end.
constexpr std::chrono::seconds kEndPatience{1};

std::string explain_no_answer(ChildProcess& process, Delivery delivery, double max_seconds) {
  const std::optional<ProcessEnd> end =
      process.wait(delivery == Delivery::Late ? std::chrono::seconds(0) : kEndPatience);
  if (end) return "it " + text(*end) + " before it answered";
  if (delivery == Delivery::Late) {
    return "it did not answer within " + std::to_string(static_cast<int>(max_seconds)) + " s";
  }
  if (delivery == Delivery::Closed) return "it closed its connection before it answered";
  return "its answer is damaged";
}

}  // namespace

WorkerProbe probe_worker(const std::filesystem::path& program, double max_seconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const Deadline deadline =
      start + std::chrono::microseconds(static_cast<int64_t>(max_seconds * 1e6));
  WorkerProbe probe;
  try {
    auto [mine, its] = MessageChannel::make_sockets();
    const SharedPage page = SharedPage::make();
    new (page.data()) ProgressPage();
    ChildProcess process(program, {}, std::move(its));
    MessageChannel channel(std::move(mine), kMaxAnswerBytes, false);
    ByteWriter request;
    request(StartRequest{.identity = build_identity(), .memory_bytes = kMemoryBytes});
    ByteWriter expected;
    expected(build_identity());
    Message message{.kind = static_cast<uint32_t>(BenchMessage::Start),
                    .payload = request.take_bytes()};
    message.files.push_back(page.share());
    Message answer;
    Delivery delivery = channel.send(message, deadline);
    if (delivery == Delivery::Done) delivery = channel.receive(answer, deadline);
    if (delivery != Delivery::Done) {
      probe.reason = explain_no_answer(process, delivery, max_seconds);
    } else if (answer.kind != message.kind || answer.payload != expected.take_bytes()) {
      probe.reason = "expected a program of " + build_identity() + ", found another one";
    }
  } catch (const Error& error) {
    probe.reason = error.message();
  }
  probe.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return probe;
}

}  // namespace tessera::tuning
