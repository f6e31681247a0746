#include "microbench/serve_bench.h"

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "backend/catalog.h"
#include "backend/plugin.h"
#include "backend/plugin_ops.h"
#include "base/byte_archive.h"
#include "base/child_process.h"
#include "base/shared_bytes.h"
#include "microbench/bench_messages.h"
#include "microbench/group_bench.h"
#include "microbench/shared_blobs.h"
#include "ops/registry.h"
#include "tessera/error.h"

namespace tessera::tuning {
namespace {

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
        return make(request.kind, build(read<CandidateKey>(request)));
      case BenchMessage::Check:
        return make(request.kind, bench_->check(read<CandidateKey>(request)));
      case BenchMessage::Run: {
        const auto run = read<RunRequest>(request);
        return make(request.kind, bench_->run(run.key, run.weights, run.runs));
      }
      case BenchMessage::Drop:
        bench_->drop(read<CandidateKey>(request));
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

  BuildAnswer build(const CandidateKey& key) {
    const CompiledCodes before = compiled_by(key.backend);
    const Outcome outcome = bench_->build(key);
    const CompiledCodes after = compiled_by(key.backend);
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

}  // namespace

void serve_bench(MessageChannel channel) { Server(std::move(channel)).serve(); }

}  // namespace tessera::tuning
