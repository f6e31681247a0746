#include "base/process/message_channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/errors/check.h"
#include "tessera/error.h"

namespace tessera {
namespace {

constexpr uint32_t kMagic = 0x4D534D54;  // "TMSM"
// Memory is allocated in pieces of this size, so that a false length from a broken process costs no
// more than one piece.
constexpr size_t kPieceBytes = size_t{1} << 20;

struct FrameHeader {
  uint32_t magic = kMagic;
  uint32_t kind = 0;
  uint64_t length = 0;
  uint32_t number = 0;
  uint32_t zero = 0;
  uint64_t checksum = 0;
};
static_assert(sizeof(FrameHeader) == 32);

uint64_t checksum_of(const FrameHeader& header, const std::string& payload) {
  const uint64_t seed = (uint64_t{header.kind} << 32) ^ header.number;
  return XXH3_64bits_withSeed(payload.data(), payload.size(), seed);
}

// Waits until `socket` is ready for `events`. Done, Late or Closed.
Delivery await(int socket, short events, Deadline deadline) {
  while (true) {
    const auto left = deadline - std::chrono::steady_clock::now();
    const auto milliseconds =
        std::chrono::duration_cast<std::chrono::milliseconds>(left).count() + 1;
    pollfd poll = {.fd = socket, .events = events, .revents = 0};
    const int timeout = static_cast<int>(std::clamp<int64_t>(milliseconds, 0, 1 << 30));
    const int ready = ::poll(&poll, 1, left.count() < 0 ? 0 : timeout);
    if (ready > 0) return Delivery::Done;  // also if it is closed: reading tells
    if (ready < 0 && errno != EINTR) return Delivery::Closed;
    if (ready == 0 && std::chrono::steady_clock::now() >= deadline) return Delivery::Late;
  }
}

// Space for the descriptors that come with a message, aligned as the system requires.
union FileRoom {
  std::array<char, CMSG_SPACE(sizeof(int) * MessageChannel::kMaxFiles)> bytes;
  cmsghdr aligned;
};

void take_files(msghdr& header, std::vector<FileHandle>& files) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t index = 0; index < count; ++index) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + index * sizeof(int), sizeof(int));
      files.emplace_back(descriptor);
    }
  }
}

}  // namespace

MessageChannel::MessageChannel(FileHandle socket, int64_t max_bytes, bool takes_files)
    : socket_(std::move(socket)), max_bytes_(max_bytes), takes_files_(takes_files) {}

std::pair<FileHandle, FileHandle> MessageChannel::make_sockets() {
  std::array<int, 2> ends = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(ErrorKind::DeviceFailed, "socket", std::strerror(errno));
  }
  return {FileHandle(ends[0]), FileHandle(ends[1])};
}

Delivery MessageChannel::write_bytes(const char* bytes, size_t size, Deadline deadline,
                                     const std::vector<FileHandle>& files) {
  bool has_sent_files = files.empty();
  while (size > 0) {
    iovec piece = {.iov_base = const_cast<char*>(bytes), .iov_len = size};
    msghdr header = {};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    FileRoom room = {};
    if (!has_sent_files) {
      header.msg_control = room.bytes.data();
      header.msg_controllen = CMSG_SPACE(sizeof(int) * files.size());
      cmsghdr* part = CMSG_FIRSTHDR(&header);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(sizeof(int) * files.size());
      std::array<int, kMaxFiles> descriptors = {};
      for (size_t index = 0; index < files.size(); ++index) descriptors[index] = files[index].get();
      std::memcpy(room.bytes.data() + CMSG_LEN(0), descriptors.data(), sizeof(int) * files.size());
    }
    const ssize_t sent = ::sendmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      has_sent_files = true;
      bytes += sent;
      size -= static_cast<size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      const Delivery waited = await(socket_.get(), POLLOUT, deadline);
      if (waited != Delivery::Done) return waited;
    } else if (errno != EINTR) {
      return Delivery::Closed;
    }
  }
  return Delivery::Done;
}

Delivery MessageChannel::read_bytes(char* bytes, size_t size, Deadline deadline,
                                    std::vector<FileHandle>* files) {
  while (size > 0) {
    iovec piece = {.iov_base = bytes, .iov_len = size};
    msghdr header = {};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    FileRoom room = {};
    if (files != nullptr) {
      header.msg_control = room.bytes.data();
      header.msg_controllen = room.bytes.size();
    }
    const ssize_t read = ::recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (read > 0) {
      if (files != nullptr) take_files(header, *files);
      bytes += read;
      size -= static_cast<size_t>(read);
    } else if (read < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      const Delivery waited = await(socket_.get(), POLLIN, deadline);
      if (waited != Delivery::Done) return waited;
    } else if (read == 0 || errno != EINTR) {
      return Delivery::Closed;
    }
  }
  return Delivery::Done;
}

Delivery MessageChannel::send(const Message& message, Deadline deadline) {
  TESSERA_CHECK(message.files.size() <= kMaxFiles, "a message carries few descriptors");
  FrameHeader header = {.kind = message.kind, .length = message.payload.size(), .number = sent_++};
  header.checksum = checksum_of(header, message.payload);
  std::array<char, sizeof(FrameHeader)> bytes = {};
  std::memcpy(bytes.data(), &header, sizeof(header));
  const Delivery begun = write_bytes(bytes.data(), bytes.size(), deadline, message.files);
  if (begun != Delivery::Done) return begun;
  return write_bytes(message.payload.data(), message.payload.size(), deadline, {});
}

Delivery MessageChannel::wait(Deadline deadline) const {
  return await(socket_.get(), POLLIN, deadline);
}

Delivery MessageChannel::receive(Message& message, Deadline deadline) {
  message = {};
  std::array<char, sizeof(FrameHeader)> bytes = {};
  const Delivery begun =
      read_bytes(bytes.data(), bytes.size(), deadline, takes_files_ ? &message.files : nullptr);
  if (begun != Delivery::Done) return begun;
  FrameHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kMagic || header.zero != 0 || header.number != received_ ||
      header.length > static_cast<uint64_t>(max_bytes_)) {
    return Delivery::Damaged;
  }
  ++received_;
  message.kind = header.kind;
  while (message.payload.size() < header.length) {
    const size_t begin = message.payload.size();
    const size_t size = std::min<size_t>(kPieceBytes, header.length - begin);
    message.payload.resize(begin + size);
    const Delivery read = read_bytes(message.payload.data() + begin, size, deadline, nullptr);
    if (read != Delivery::Done) return read;
  }
  return checksum_of(header, message.payload) == header.checksum ? Delivery::Done
                                                                 : Delivery::Damaged;
}

}  // namespace tessera
