// Reads protobuf's wire format (protobuf.dev/programming-guides/encoding) from a ByteSource,
// buffering only a window of it.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "import/onnx/wire/byte_source.h"

namespace tessera::onnx_import {

// The encoding of the bytes after a tag. Groups (3 and 4) are deprecated and not used by ONNX.
enum class WireType : uint8_t { Varint = 0, Fixed64 = 1, Length = 2, Fixed32 = 5 };

struct Tag {
  uint32_t field = 0;
  WireType type = WireType::Varint;
};

// A position in a source and the end of the current message. Every function throws InvalidModel
// with the position if the bytes are malformed or end too soon.
class WireReader {
 public:
  WireReader(const ByteSource& source, int64_t begin, int64_t end);

  int64_t position() const { return position_; }
  bool is_at_end() const { return position_ >= end_; }

  Tag tag();
  uint64_t varint();
  uint32_t fixed32();
  uint64_t fixed64();
  // The length of a field of type Length; at most the rest of the message.
  int64_t length();

  void skip(int64_t count);
  // Skips the value that follows a tag of `type`.
  void skip_value(WireType type);
  // Appends the bytes [begin, end) of the source, which have been read, to `target`.
  void copy(int64_t begin, int64_t end, std::string& target) const;

  // Makes the next `count` bytes the current message; returns the end to return to.
  int64_t enter(int64_t count);
  void leave(int64_t outer_end) { end_ = outer_end; }

  [[noreturn]] void fail(const std::string& problem) const;

 private:
  uint8_t byte();

  const ByteSource& source_;
  int64_t position_;
  int64_t end_;
  int64_t last_end_;  // of the outermost message; nothing beyond it is read
  std::array<uint8_t, 1 << 14> window_;
  int64_t window_begin_ = 0;
  int64_t window_end_ = 0;
};

void append_varint(std::string& target, uint64_t value);

}  // namespace tessera::onnx_import
