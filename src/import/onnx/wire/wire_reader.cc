#include "import/onnx/wire/wire_reader.h"

#include <algorithm>

#include "tessera/error.h"

namespace tessera::onnx_import {

WireReader::WireReader(const ByteSource& source, int64_t begin, int64_t end)
    : source_(source), position_(begin), end_(end), last_end_(end) {}

void WireReader::fail(const std::string& problem) const {
  throw Error(ErrorKind::InvalidModel, source_.location(),
              "not an ONNX (protobuf) file, or a damaged or truncated one: " + problem +
                  " at byte " + std::to_string(position_));
}

uint8_t WireReader::byte() {
  if (position_ >= end_) fail("expected another byte, found the end of the message");
  if (position_ < window_begin_ || position_ >= window_end_) {
    const auto count =
        std::min<int64_t>(static_cast<int64_t>(window_.size()), last_end_ - position_);
    source_.read(position_, window_.data(), static_cast<size_t>(count));
    window_begin_ = position_;
    window_end_ = position_ + count;
  }
  return window_[static_cast<size_t>(position_++ - window_begin_)];
}

uint64_t WireReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t next = byte();
    value |= static_cast<uint64_t>(next & 0x7F) << shift;
    if (next < 0x80) return value;
  }
  fail("a number has more than 10 bytes");
}

Tag WireReader::tag() {
  const uint64_t value = varint();
  const uint64_t type = value & 7;
  const uint64_t field = value >> 3;
  if (type == 3 || type == 4 || type > 5)
    fail("wire type " + std::to_string(type) + " is not used");
  if (field == 0 || field >= (1U << 29)) fail("there is no field " + std::to_string(field));
  return {static_cast<uint32_t>(field), static_cast<WireType>(type)};
}

uint32_t WireReader::fixed32() {
  uint32_t value = 0;
  for (int shift = 0; shift < 32; shift += 8) value |= static_cast<uint32_t>(byte()) << shift;
  return value;
}

uint64_t WireReader::fixed64() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 8) value |= static_cast<uint64_t>(byte()) << shift;
  return value;
}

int64_t WireReader::length() {
  const uint64_t value = varint();
  const auto left = static_cast<uint64_t>(end_ - position_);
  if (value > left) {
    fail("a field of " + std::to_string(value) + " bytes begins where only " +
         std::to_string(left) + " are left");
  }
  return static_cast<int64_t>(value);
}

void WireReader::skip(int64_t count) {
  if (count > end_ - position_) fail("a value passes the end of its message");
  position_ += count;
}

void WireReader::skip_value(WireType type) {
  switch (type) {
    case WireType::Varint:
      varint();
      return;
    case WireType::Fixed64:
      return skip(8);
    case WireType::Length:
      return skip(length());
    case WireType::Fixed32:
      return skip(4);
  }
}

void WireReader::copy(int64_t begin, int64_t end, std::string& target) const {
  const size_t old_size = target.size();
  target.resize(old_size + static_cast<size_t>(end - begin));
  if (begin >= window_begin_ && end <= window_end_) {
    std::copy_n(window_.begin() + (begin - window_begin_), end - begin,
                target.begin() + static_cast<int64_t>(old_size));
    return;
  }
  source_.read(begin, target.data() + old_size, static_cast<size_t>(end - begin));
}

int64_t WireReader::enter(int64_t count) {
  const int64_t outer_end = end_;
  end_ = position_ + count;
  return outer_end;
}

void append_varint(std::string& target, uint64_t value) {
  while (value >= 0x80) {
    target += static_cast<char>((value & 0x7F) | 0x80);
    value >>= 7;
  }
  target += static_cast<char>(value);
}

}  // namespace tessera::onnx_import
