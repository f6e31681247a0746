#include "base/process/message_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <thread>

namespace tessera {
namespace {

constexpr int64_t kMaxBytes = 1 << 20;

Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::milliseconds(30); }
Deadline later() { return std::chrono::steady_clock::now() + std::chrono::seconds(20); }

struct Pair {
  MessageChannel left;
  MessageChannel right;
};

Pair make_pair_of_channels(bool takes_files = false) {
  auto [left, right] = MessageChannel::make_sockets();
  return {{std::move(left), kMaxBytes, takes_files}, {std::move(right), kMaxBytes, takes_files}};
}

int open_descriptors() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<int>(std::distance(begin(files), end(files)));
}

TEST(MessageChannel, CarriesMessagesBothWaysInOrder) {
  Pair pair = make_pair_of_channels();
  for (uint32_t number = 0; number < 5; ++number) {
    ASSERT_EQ(pair.left.send({.kind = number, .payload = std::string(number, 'a')}, later()),
              Delivery::Done);
  }
  ASSERT_EQ(pair.right.send({.kind = 77, .payload = "back"}, later()), Delivery::Done);
  Message found;
  for (uint32_t number = 0; number < 5; ++number) {
    ASSERT_EQ(pair.right.receive(found, later()), Delivery::Done);
    EXPECT_EQ(found.kind, number);
    EXPECT_EQ(found.payload, std::string(number, 'a'));
  }
  ASSERT_EQ(pair.left.receive(found, later()), Delivery::Done);
  EXPECT_EQ(found.payload, "back");
}

TEST(MessageChannel, CarriesMoreThanASocketHolds) {
  auto [left, right] = MessageChannel::make_sockets();
  MessageChannel from(std::move(left), 0, false);
  MessageChannel to(std::move(right), int64_t{1} << 25, false);
  std::string large(size_t{1} << 24, 'x');
  large[12345] = 'y';
  std::thread sender(
      [&] { EXPECT_EQ(from.send({.kind = 1, .payload = large}, later()), Delivery::Done); });
  Message found;
  EXPECT_EQ(to.receive(found, later()), Delivery::Done);
  sender.join();
  EXPECT_TRUE(found.payload == large);
}

TEST(MessageChannel, IsLateWhereNobodySendsOrReads) {
  Pair pair = make_pair_of_channels();
  Message found;
  EXPECT_EQ(pair.left.wait(soon()), Delivery::Late);
  EXPECT_EQ(pair.left.receive(found, soon()), Delivery::Late);
  const Message large = {.kind = 1, .payload = std::string(size_t{1} << 24, 'x')};
  EXPECT_EQ(pair.left.send(large, soon()), Delivery::Late);
}

TEST(MessageChannel, IsClosedWhereNobodyIs) {
  Pair pair = make_pair_of_channels();
  pair.right = {};
  Message found;
  EXPECT_EQ(pair.left.wait(later()), Delivery::Done);
  EXPECT_EQ(pair.left.receive(found, later()), Delivery::Closed);
  EXPECT_EQ(pair.left.send({.kind = 1}, later()), Delivery::Closed);
}

TEST(MessageChannel, CarriesDescriptorsToWhoTakesThem) {
  Pair pair = make_pair_of_channels(true);
  auto [mine, other] = MessageChannel::make_sockets();
  Message message = {.kind = 1, .payload = "file"};
  message.files.push_back(std::move(other));
  ASSERT_EQ(pair.left.send(message, later()), Delivery::Done);
  Message found;
  ASSERT_EQ(pair.right.receive(found, later()), Delivery::Done);
  ASSERT_EQ(found.files.size(), 1U);
  EXPECT_EQ(::write(found.files[0].get(), "!", 1), 1);
  char letter = 0;
  EXPECT_EQ(::read(mine.get(), &letter, 1), 1);
  EXPECT_EQ(letter, '!');
}

TEST(MessageChannel, DescriptorsThatNobodyWantsAreClosed) {
  Pair pair = make_pair_of_channels(false);
  const int before = open_descriptors();
  for (int round = 0; round < 5; ++round) {
    auto [mine, other] = MessageChannel::make_sockets();
    Message message = {.kind = 1};
    message.files.push_back(std::move(other));
    ASSERT_EQ(pair.left.send(message, later()), Delivery::Done);
    Message found;
    ASSERT_EQ(pair.right.receive(found, later()), Delivery::Done);
    EXPECT_TRUE(found.files.empty());
  }
  EXPECT_EQ(open_descriptors(), before);
}

// The bytes of one valid frame.
std::string good_frame() {
  auto [left, right] = MessageChannel::make_sockets();
  MessageChannel from(std::move(left), 0, false);
  from.send({.kind = 7, .payload = "some content"}, later());
  std::string bytes(1000, '\0');
  bytes.resize(static_cast<size_t>(::recv(right.get(), bytes.data(), bytes.size(), 0)));
  return bytes;
}

// The result of receiving `bytes` followed by the end of the stream.
Delivery deliver(const std::string& bytes, Message& found) {
  auto [left, right] = MessageChannel::make_sockets();
  MessageChannel to(std::move(right), kMaxBytes, false);
  EXPECT_EQ(::send(left.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  left = {};
  return to.receive(found, later());
}

TEST(MessageChannel, NoBitMayFlip) {
  const std::string good = good_frame();
  Message found;
  ASSERT_EQ(deliver(good, found), Delivery::Done);
  ASSERT_EQ(found.payload, "some content");
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(deliver(bad, found), Delivery::Done) << "bit " << bit;
  }
}

TEST(MessageChannel, NoByteMayBeMissing) {
  const std::string good = good_frame();
  Message found;
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(deliver(good.substr(0, size), found), Delivery::Closed) << size;
  }
}

TEST(MessageChannel, NoiseIsNoMessage) {
  std::mt19937_64 random(5);
  Message found;
  for (int round = 0; round < 500; ++round) {
    std::string noise = round % 2 == 0 ? good_frame().substr(0, 4) : "";
    while (noise.size() < 200) noise += static_cast<char>(random());
    EXPECT_NE(deliver(noise, found), Delivery::Done);
    EXPECT_LE(found.payload.size(), static_cast<size_t>(kMaxBytes));
  }
}

TEST(MessageChannel, AMessageMayNotComeTwice) {
  Message found;
  auto [left, right] = MessageChannel::make_sockets();
  MessageChannel to(std::move(right), kMaxBytes, false);
  const std::string twice = good_frame() + good_frame();
  ASSERT_EQ(::send(left.get(), twice.data(), twice.size(), 0), static_cast<ssize_t>(twice.size()));
  EXPECT_EQ(to.receive(found, later()), Delivery::Done);
  EXPECT_EQ(to.receive(found, later()), Delivery::Damaged);
}

}  // namespace
}  // namespace tessera
