#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>

#include "base/files/byte_archive.h"
#include "base/process/message_channel.h"
#include "graph/graph_archive.h"
#include "graph/verify.h"
#include "microbench/bench_messages.h"
#include "microbench/verify_messages.h"
#include "targets.h"
#include "tessera/error.h"

namespace tessera::fuzzing {
namespace {

using tuning::BenchMessage;
using tuning::VerifyMessage;

// These constants equal those of base/process/message_channel.h.
constexpr size_t kFrameHeaderBytes = 32;
constexpr uint64_t kMagic = 0x4D534D54;
// Fits into a socket's buffer without a reader.
constexpr size_t kMaxStreamBytes = size_t{1} << 16;
constexpr uint8_t kIsRequest = 1;
constexpr uint8_t kIsMadeRight = 2;

// Sets magic, numbers, lengths and checksums as a correct sender would.
std::string with_right_frames(Bytes stream) {
  std::string right(stream.begin(), stream.end());
  uint64_t number = 0;
  for (size_t at = 0; right.size() - at >= kFrameHeaderBytes; ++number) {
    const uint64_t kind = read_number(right, at + 4, 4) % 128;
    const uint64_t room = right.size() - at - kFrameHeaderBytes;
    const uint64_t length = std::min(read_number(right, at + 8, 2), room);
    write_number(right, at, 4, kMagic);
    write_number(right, at + 4, 4, kind);
    write_number(right, at + 8, 8, length);
    write_number(right, at + 16, 4, number);
    write_number(right, at + 20, 4, 0);
    write_number(
        right, at + 24, 8,
        XXH3_64bits_withSeed(right.data() + at + kFrameHeaderBytes, length, (kind << 32) ^ number));
    at += kFrameHeaderBytes + length;
  }
  return right;
}

template <class Content>
void read(const Message& message) {
  Content content;
  ByteReader reader(message.payload);
  reader(content);
  reader.expect_end();
  ByteWriter writer;
  writer(content);
  expect(writer.take_bytes() == message.payload, "what is read is written as it came");
}

// The file that belongs to the message, filled with zeros.
void add_file(Message& message) {
  constexpr off_t kFileBytes = 1 << 16;
  FileHandle file(::memfd_create("tensors", MFD_CLOEXEC));
  if (file.is_open() && ::ftruncate(file.get(), kFileBytes) == 0) {
    message.files.push_back(std::move(file));
  }
}

void read_request(Message& message) {
  switch (static_cast<BenchMessage>(message.kind)) {
    case BenchMessage::Start:
      return read<tuning::StartRequest>(message);
    case BenchMessage::Load: {
      add_file(message);
      const tuning::GroupCase group = tuning::unpack_case(message);
      explain_illegal(group.graph);
      return;
    }
    case BenchMessage::Build:
    case BenchMessage::Check:
    case BenchMessage::Drop:
      return read<CandidateId>(message);
    case BenchMessage::Run:
      return read<tuning::RunRequest>(message);
    case BenchMessage::Convert:
      return read<tuning::ConvertRequest>(message);
    default:
      if (message.kind == static_cast<uint32_t>(VerifyMessage::Start)) {
        read<tuning::VerifyRequest>(message);
      }
  }
}

void read_answer(const Message& message) {
  switch (static_cast<BenchMessage>(message.kind)) {
    case BenchMessage::Check:
      return read<tuning::Checked>(message);
    case BenchMessage::Build:
    case BenchMessage::Run:
    case BenchMessage::Convert:
      return read<tuning::Outcome>(message);
    case BenchMessage::Failure:
      return read<tuning::ErrorText>(message);
    default:
      if (message.kind == static_cast<uint32_t>(VerifyMessage::Step) ||
          message.kind == static_cast<uint32_t>(VerifyMessage::Done)) {
        read<tuning::VerifyNews>(message);
      }
  }
}

}  // namespace

void fuzz_messages(Bytes bytes) {
  if (bytes.empty() || bytes.size() > kMaxStreamBytes) return;
  const auto flags = static_cast<uint8_t>(bytes.front());
  const Bytes raw = bytes.subspan(1);
  const std::string stream =
      (flags & kIsMadeRight) != 0 ? with_right_frames(raw) : std::string(raw.begin(), raw.end());
  auto [mine, its] = MessageChannel::make_sockets();
  const bool is_request = (flags & kIsRequest) != 0;
  const ssize_t sent = ::send(its.get(), stream.data(), stream.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(stream.size())) return;
  its = FileHandle();
  MessageChannel channel(
      std::move(mine), is_request ? tuning::kMaxRequestBytes : tuning::kMaxAnswerBytes, is_request);
  Message message;
  while (channel.receive(message, std::chrono::steady_clock::now() + std::chrono::seconds(1)) ==
         Delivery::Done) {
    try {
      is_request ? read_request(message) : read_answer(message);
    } catch (const Error& error) {
      expect(error.kind() != ErrorKind::Internal, error.what());
    }
  }
}

}  // namespace tessera::fuzzing
