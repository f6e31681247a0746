// tessera-worker: the process in which measured libraries build and run kernels, and in which
// plug-ins are verified. Only Tessera starts it; see worker_bench.h and verify_in_worker.h.
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "backend/catalog/catalog.h"
#include "backend/plugin.h"
#include "backend/plugin_ops/plugin_ops.h"
#include "base/files/byte_archive.h"
#include "base/memory/shared_bytes.h"
#include "base/process/child_process.h"
#include "base/process/message_channel.h"
#include "microbench/bench_messages.h"
#include "microbench/group_bench.h"
#include "microbench/shared_blobs.h"
#include "microbench/verify_messages.h"
#include "ops/registry.h"
#include "tessera/error.h"

namespace tessera::tuning {
namespace {

// --- Measuring: the worker's side of worker_bench.h ----------------------------------------------

template <class Content>
Content read(const Message& message) {
  Content content;
  ByteReader reader(message.payload);
  reader(content);
  reader.expect_end();
  return content;
}

std::shared_ptr<const Plugin> open(const PluginRef& location,
                                   const std::shared_ptr<HostServices>& services) {
  if (!location.file.empty()) return Plugin::open(location.file, services);
  for (const CatalogEntry& entry : catalog()) {
    if (entry.open != nullptr && entry.name == location.name) {
      return Plugin::open_linked(entry.open, "backend '" + location.name + "'", services);
    }
  }
  throw Error(ErrorKind::Unsupported, "backend '" + location.name + "'",
              "expected it to be linked in, found no such backend");
}

class Server {
 public:
  explicit Server(MessageChannel channel) : channel_(std::move(channel)) {}

  void serve() {
    while (true) {
      Message request;
      if (channel_.receive(request, Deadline::max()) != Delivery::Done) return;
      blobs_.begin_request();
      if (blobs_.send_answer(answer(request)) != Delivery::Done) return;
    }
  }

 private:
  template <class Content>
  static Message make(uint32_t kind, const Content& content) {
    ByteWriter writer;
    writer(content);
    return {.kind = kind, .payload = writer.take_bytes()};
  }

  static Message make_failure(ErrorKind kind, const std::string& where, const std::string& what) {
    return make(static_cast<uint32_t>(BenchMessage::Failure),
                ErrorText{static_cast<uint32_t>(kind), where, what});
  }

  // Exceptions here are the bench's own; failures of plug-ins are part of the answers.
  Message answer(Message& request) {
    try {
      return try_respond(request);
    } catch (const Error& error) {
      return make_failure(error.kind(), error.where(), error.message());
    } catch (const std::exception& error) {
      return make_failure(ErrorKind::OutOfMemory, "worker", error.what());
    }
  }

  Message try_respond(Message& request) {
    const auto kind = static_cast<BenchMessage>(request.kind);
    if (kind == BenchMessage::Start) return make(request.kind, start(request));
    if (bench_ == nullptr) {
      throw Error(ErrorKind::Corrupt, "message", "expected the one to start with");
    }
    switch (kind) {
      case BenchMessage::Load:
        bench_->load(unpack_case(request));
        return {.kind = request.kind};
      case BenchMessage::Build:
        return make(request.kind, build(read<CandidateId>(request)));
      case BenchMessage::Check:
        return make(request.kind, bench_->check(read<CandidateId>(request)));
      case BenchMessage::Run: {
        const auto run = read<RunRequest>(request);
        return make(request.kind, bench_->run(run.candidate, run.weights, run.runs));
      }
      case BenchMessage::Drop:
        bench_->drop(read<CandidateId>(request));
        return {.kind = request.kind};
      case BenchMessage::Convert: {
        const auto conversion = read<ConvertRequest>(request);
        return make(request.kind, bench_->convert(conversion.key, conversion.runs));
      }
      default:
        throw Error(ErrorKind::Corrupt, "message",
                    "expected a request, found kind " + std::to_string(request.kind));
    }
  }

  BuildAnswer build(const CandidateId& id) {
    const CompiledCodes before = compiled_by(id.backend);
    const Outcome outcome = bench_->build(id);
    const CompiledCodes after = compiled_by(id.backend);
    return {outcome, {after.count - before.count, after.seconds - before.seconds}};
  }

  CompiledCodes compiled_by(const std::string& backend) const {
    for (const std::shared_ptr<const Plugin>& plugin : plugins_) {
      if (plugin->name() != backend) continue;
      const std::optional<tessera_compile_counts> counts = plugin->compile_counts();
      if (counts) return {counts->compiled, counts->compile_seconds};
    }
    return {};
  }

  std::string start(Message& message) {
    const auto request = read<StartRequest>(message);
    if (request.identity != build_identity() || message.files.empty()) return build_identity();
    limit_memory(request.memory_bytes);
    page_.emplace(std::move(message.files[0]));
    // The parent gets these messages from its own plug-ins.
    const auto services =
        std::make_shared<HostServices>([](const std::string&) {}, blobs_.keeper());
    for (const PluginRef& location : request.plugins) plugins_.push_back(open(location, services));
    registry_ = ops::make_registry();
    for (const std::shared_ptr<const Plugin>& plugin : plugins_) {
      for (ops::Op& op : make_ops(plugin->abi(), plugin)) {
        // If two plug-ins provide the same op, the first one wins.
        if (registry_.find(op.domain, op.name) == nullptr) registry_.add(std::move(op));
      }
    }
    bench_ = std::make_unique<GroupBench>(plugins_, registry_, request.threads);
    auto* page = static_cast<ProgressPage*>(page_->data());
    bench_->guard([page](BenchStage stage, double announced_seconds) {
      page->announced_build_us =
          announced_seconds > 0 ? static_cast<int64_t>(std::min(announced_seconds, 1e6) * 1e6) : 0;
      page->enter(stage);
    });
    return build_identity();
  }

  MessageChannel channel_;
  ParentBlobs blobs_{channel_};
  std::optional<SharedPage> page_;
  std::vector<std::shared_ptr<const Plugin>> plugins_;
  ops::Registry registry_;
  std::unique_ptr<GroupBench> bench_;
};

// Answers requests until the other end is closed or a message is malformed.
void serve_bench(MessageChannel channel) { Server(std::move(channel)).serve(); }

// --- Verifying: the worker's side of verify_in_worker.h ------------------------------------------

// Thrown when the other end is closed, so verifying is pointless.
struct IsAlone {};

Message pack(VerifyMessage kind, const VerifyNews& news) {
  ByteWriter writer;
  writer(news);
  return {.kind = static_cast<uint32_t>(kind), .payload = writer.take_bytes()};
}

VerifyRequest read_request(const Message& message) {
  VerifyRequest request;
  ByteReader reader(message.payload);
  reader(request);
  reader.expect_end();
  return request;
}

// Verifies the plug-in that the request names and announces each step in advance. Returns when
// finished, or when the other end is closed.
void serve_verify(MessageChannel channel) {
  Message message;
  if (channel.receive(message, Deadline::max()) != Delivery::Done) return;
  if (message.kind != static_cast<uint32_t>(VerifyMessage::Start)) return;
  const VerifyRequest request = read_request(message);
  const auto send = [&](VerifyMessage kind, verification::VerifiedBackend& verified,
                        const verification::VerifyStep& step) {
    const VerifyNews news = {.identity = build_identity(),
                             .name = verified.name,
                             .version = verified.version,
                             .found = std::exchange(verified.report, {}),
                             .step = step};
    if (channel.send(pack(kind, news), Deadline::max()) != Delivery::Done) throw IsAlone{};
  };
  verification::VerifiedBackend verified;
  if (request.identity != build_identity()) return send(VerifyMessage::Done, verified, {});
  limit_memory(request.memory_bytes);
  verified = verification::verify_backend(
      request.library,
      {.seed = request.seed,
       .cases = request.cases,
       .first_unit = request.first_unit,
       .passed_over = {request.passed_over.begin(), request.passed_over.end()}},
      [&](const verification::VerifyStep& step, verification::VerifiedBackend& so_far) {
        send(VerifyMessage::Step, so_far, step);
      });
  send(VerifyMessage::Done, verified, {});
}

}  // namespace
}  // namespace tessera::tuning

namespace {

using tessera::tuning::kVerifyArgument;

// Freed memory up to this size stays with the process, because every candidate needs buffers of
// about the same sizes, and pages that come from the system anew are expensive.
constexpr int kKeptBytes = 1 << 25;

bool is_socket(int descriptor) {
  struct stat found = {};
  return ::fstat(descriptor, &found) == 0 && S_ISSOCK(found.st_mode);
}

}  // namespace

int main(int count, char** arguments) {
  const bool is_to_verify = count == 3 && std::strcmp(arguments[1], kVerifyArgument) == 0;
  const int parent = count == 2 || is_to_verify ? std::atoi(arguments[count - 1]) : 0;
  if (parent <= 0 || !is_socket(tessera::ChildProcess::kSocket)) {
    std::fputs(
        "tessera-worker runs and times kernels in a process of its own, so that a library that "
        "crashes harms nothing else. Tessera starts it when it tunes, or verifies a plug-in. If a "
        "user starts it, it does nothing.\n",
        stderr);
    return 2;
  }
  if (!tessera::die_with_parent(parent)) return 1;
  // Child processes of libraries must not inherit the socket.
  ::fcntl(tessera::ChildProcess::kSocket, F_SETFD, FD_CLOEXEC);
  ::mallopt(M_TRIM_THRESHOLD, kKeptBytes);
  ::mallopt(M_MMAP_THRESHOLD, kKeptBytes);
  try {
    tessera::MessageChannel channel(tessera::FileHandle(tessera::ChildProcess::kSocket),
                                    tessera::tuning::kMaxRequestBytes, true);
    if (is_to_verify) {
      tessera::tuning::serve_verify(std::move(channel));
    } else {
      tessera::tuning::serve_bench(std::move(channel));
    }
  } catch (...) {
    std::_Exit(1);
  }
  // Skips exit handlers of libraries, which may take long.
  std::_Exit(0);
}
