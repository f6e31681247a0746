#include "backend/packs.h"

#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "tessera/error.h"

namespace tessera {
namespace {

std::shared_ptr<void> allocate(int64_t bytes) {
  constexpr auto kAlignment = std::align_val_t{kTensorAlignmentBytes};
  void* memory =
      ::operator new(static_cast<size_t>(std::max<int64_t>(1, bytes)), kAlignment, std::nothrow);
  if (memory == nullptr) {
    throw Error(ErrorKind::OutOfMemory, "pack",
                "could not allocate " + std::to_string(bytes) + " bytes");
  }
  return {memory, [](void* address) { ::operator delete(address, kAlignment); }};
}

}  // namespace

Digest digest_of(const Tensor& constant) {
  std::string head = std::string(name(constant.type())) + " " + dims_text(constant.dims());
  const XXH128_hash_t seed = XXH3_128bits(head.data(), head.size());
  const XXH128_hash_t hash = XXH3_128bits_withSeed(
      constant.data(), static_cast<size_t>(constant.bytes()), seed.low64 ^ seed.high64);
  return {hash.high64, hash.low64};
}

Digest digest_of_bytes(std::span<const char> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

PackStore::Bytes PackStore::get(const PackKey& key, int64_t bytes,
                                const std::function<void(void* memory)>& make) {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Entry>& slot = entries_[key];
    if (!slot) slot = std::make_shared<Entry>();
    entry = slot;
  }
  const std::lock_guard making(entry->mutex);
  if (entry->bytes) return entry->bytes;
  Bytes found = stored(key, bytes);
  if (!found) {
    const std::shared_ptr<void> memory = allocate(bytes);
    make(memory.get());
    if (made_watcher_) made_watcher_(bytes);
    found = memory;
  }
  const std::lock_guard lock(mutex_);
  entry->bytes = std::move(found);
  entry->size = bytes;
  total_bytes_ += bytes;
  return entry->bytes;
}

void PackStore::set_source(Source source) {
  const std::lock_guard lock(mutex_);
  source_ = std::move(source);
}

PackStore::Bytes PackStore::stored(const PackKey& key, int64_t bytes) const {
  Source source;
  {
    const std::lock_guard lock(mutex_);
    source = source_;
  }
  return source ? source(key, bytes) : nullptr;
}

std::vector<PackStore::Pack> PackStore::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<Pack> packs;
  for (const auto& [key, entry] : entries_) {
    if (entry->bytes) packs.push_back({key, entry->bytes, entry->size});
  }
  return packs;
}

PackStore::Bytes PackStore::find(const PackKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second->bytes;
}

void PackStore::drop_unused() {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const auto& item) {
    const Entry& entry = *item.second;
    // Whoever makes it, or waits for it, holds the entry.
    const bool is_unused = item.second.use_count() == 1 && entry.bytes.use_count() <= 1;
    if (is_unused) total_bytes_ -= entry.size;
    return is_unused;
  });
}

std::string text(const PackKey& key) {
  std::array<char, 33> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx%016llx",
                static_cast<unsigned long long>(key.weight[0]),
                static_cast<unsigned long long>(key.weight[1]));
  return std::string(digits.data()) + ";" + key.id + ";" + key.ingredients;
}

int64_t PackStore::total_bytes() const {
  const std::lock_guard lock(mutex_);
  return total_bytes_;
}

}  // namespace tessera
