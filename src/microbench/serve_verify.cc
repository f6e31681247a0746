#include "microbench/serve_verify.h"

#include <utility>

#include "base/byte_archive.h"
#include "base/child_process.h"
#include "microbench/bench_messages.h"
#include "microbench/verify_messages.h"

namespace tessera::tuning {
namespace {

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

}  // namespace

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

}  // namespace tessera::tuning
