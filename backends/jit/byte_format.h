// Numbers and texts as bytes: each number is an int64 in the order of this processor, each text its
// size and its bytes. The bytes to read may be damaged.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "tessera/backend.h"

namespace tessera::jit {

inline void append_number(std::string& bytes, int64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

inline void append_text(std::string& bytes, std::string_view text) {
  append_number(bytes, static_cast<int64_t>(text.size()));
  bytes += text;
}

// Every member throws Failure (TESSERA_CORRUPT) if the bytes are too short.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  int64_t number() {
    int64_t value = 0;
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }
  std::string_view text() {
    const int64_t size = number();
    if (size < 0) fail();
    return take(static_cast<uint64_t>(size));
  }
  void expect_end() const {
    if (!rest_.empty()) fail();
  }

 private:
  [[noreturn]] static void fail() {
    throw plugin::Failure(TESSERA_CORRUPT, "the bytes of a compiled kernel are damaged");
  }
  std::string_view take(uint64_t size) {
    if (size > rest_.size()) fail();
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
};

}  // namespace tessera::jit
