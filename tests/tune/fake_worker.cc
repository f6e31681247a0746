// Replaces tessera-worker and breaks the protocol in the way that the environment variable
// TESSERA_TEST_WORKER names.
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <thread>

#include "base/files/byte_archive.h"
#include "base/process/child_process.h"
#include "microbench/bench_messages.h"

namespace {

using tessera::ByteWriter;
using tessera::Deadline;
using tessera::Delivery;
using tessera::Message;
using tessera::MessageChannel;
using tessera::tuning::BenchMessage;

constexpr int kSocket = tessera::ChildProcess::kSocket;

template <class Content>
Message make(uint32_t kind, const Content& content) {
  ByteWriter writer;
  writer(content);
  return {.kind = kind, .payload = writer.take_bytes()};
}

void write_raw(const std::string& bytes) {
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t step =
        ::send(kSocket, bytes.data() + written, bytes.size() - written, MSG_NOSIGNAL);
    if (step <= 0) return;
    written += static_cast<size_t>(step);
  }
}

std::string noise(uint64_t seed, size_t size) {
  std::mt19937_64 random(seed);
  std::string bytes;
  while (bytes.size() < size) bytes += static_cast<char>(random());
  return bytes;
}

// A frame as MessageChannel writes it, to be corrupted.
std::string frame(const Message& message) {
  auto [mine, its] = MessageChannel::make_sockets();
  MessageChannel channel(std::move(mine), 0, false);
  // The frame must be the second in this direction: the first answered the start message.
  channel.send({.kind = 1}, Deadline::max());
  channel.send(message, Deadline::max());
  std::string bytes(1 << 16, '\0');
  const ssize_t size = ::recv(its.get(), bytes.data(), bytes.size(), 0);
  constexpr size_t kHeaderBytes = 32;
  return bytes.substr(kHeaderBytes, static_cast<size_t>(size) - kHeaderBytes);
}

std::string outcome_frame(uint32_t kind, double seconds) {
  return frame(make(kind, tessera::tuning::Outcome{.seconds = seconds}));
}

void answer_badly(const std::string& mode, uint32_t kind, uint64_t seed) {
  std::string good = outcome_frame(kind, 1e-3);
  if (mode == "noise") write_raw(noise(seed, 100));
  if (mode == "flood") write_raw(noise(seed, size_t{1} << 24));
  if (mode == "truncated") write_raw(good.substr(0, 20));
  if (mode == "short_payload") write_raw(good.substr(0, good.size() - 3));
  if (mode == "absurd_length") {
    good[8 + 7] = 0x7F;
    write_raw(good);
  }
  if (mode == "wrong_checksum") {
    good.back() ^= 1;
    write_raw(good);
  }
  if (mode == "wrong_number") {
    good[16] ^= 1;
    write_raw(good);
  }
  if (mode == "wrong_kind") write_raw(outcome_frame(kind - 1, 1e-3));
  if (mode == "foreign_content") write_raw(frame(make(kind, std::string("hello"))));
  if (mode == "not_a_number") {
    write_raw(outcome_frame(kind, std::numeric_limits<double>::quiet_NaN()));
  }
  if (mode == "negative_time") write_raw(outcome_frame(kind, -1));
  if (mode == "bad_failure") {
    write_raw(frame({.kind = static_cast<uint32_t>(BenchMessage::Failure), .payload = "x"}));
  }
  if (mode == "bad_question") {
    write_raw(frame({.kind = static_cast<uint32_t>(BenchMessage::FindBlob), .payload = "x"}));
  }
  if (mode == "flipped_bits") {
    char& letter = good[seed % good.size()];
    letter = static_cast<char>(static_cast<unsigned char>(letter) ^ 1U << (seed / good.size() % 8));
    write_raw(good);
  }
  if (mode == "silent") std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

int main() {
  const char* given = std::getenv("TESSERA_TEST_WORKER");
  const std::string text = given == nullptr ? "" : given;
  const std::string mode = text.substr(0, text.find(':'));
  const size_t colon = text.find(':');
  const uint64_t seed = colon == std::string::npos ? 0 : std::stoull(text.substr(colon + 1));
  if (mode == "ends_at_once") return 5;
  MessageChannel channel(tessera::FileHandle(kSocket), tessera::tuning::kMaxRequestBytes, true);
  while (true) {
    Message request;
    if (channel.receive(request, Deadline::max()) != Delivery::Done) return 0;
    const auto kind = static_cast<BenchMessage>(request.kind);
    if (kind == BenchMessage::Start) {
      const std::string identity =
          mode == "other_version" ? "tessera 0.0.1" : tessera::tuning::build_identity();
      channel.send(make(request.kind, identity), Deadline::max());
    } else {
      answer_badly(mode, request.kind, seed);
      // The parent process has to detect the problem without our exit.
      if (mode != "truncated" && mode != "short_payload") return 0;
      std::this_thread::sleep_for(std::chrono::hours(1));
    }
  }
}
