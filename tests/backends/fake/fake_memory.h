// Memory of a fake device, which the host cannot touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "happens_before.h"

namespace tessera::fake {

class FakeDevice;

// Owns pages of virtual memory.
class Pages {
 public:
  // `can_access`: whether they can be read and written; otherwise any access is a segmentation
  // fault. Throws Failure(TESSERA_OUT_OF_MEMORY).
  Pages(int64_t bytes, bool can_access);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* begin() const { return begin_; }

 private:
  std::byte* begin_;
  size_t bytes_;
};

// The result of one call of allocate(). The handle is the address of pages that cannot be accessed,
// as large as the memory; the elements are in other pages, which only queues know. Enqueued
// operations share these, so that a wrong release is reported and does not end the process.
struct Allocation {
  Allocation(int64_t size, const FakeDevice* owner, const std::string& text);

  void* handle() const { return reserved.begin(); }

  // The value of each byte of memory before the first write.
  static constexpr int kNewByte = 0xA5;

  int64_t bytes;
  const FakeDevice* device;
  std::string name;  // "memory 3 of fake"
  Pages reserved;
  std::shared_ptr<Pages> contents;  // null: released
  AccessHistory history;
};

}  // namespace tessera::fake
