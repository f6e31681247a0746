#include "backend/packs.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>

#include "base/threads/fork.h"
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

constexpr int64_t kChunkBytes = int64_t{1} << 20;

void append_number(std::string& text, uint64_t number) {
  for (size_t index = 0; index < sizeof number; ++index) {
    text += static_cast<char>(number >> (8 * index));
  }
}

// With their lengths, which make it unambiguous.
std::string joined_strings(const Tensor& strings) {
  std::string joined;
  for (const std::string& text : strings.as<std::string>()) {
    append_number(joined, text.size());
    joined += text;
  }
  return joined;
}

}  // namespace

Digest digest_of(const Tensor& constant, ThreadPool* pool) {
  std::string joined;
  if (constant.is_strings()) joined = joined_strings(constant);
  const std::span<const char> bytes = constant.is_strings()
                                          ? std::span<const char>(joined)
                                          : std::span(static_cast<const char*>(constant.data()),
                                                      static_cast<size_t>(constant.bytes()));
  const int64_t chunks = (std::ssize(bytes) + kChunkBytes - 1) / kChunkBytes;
  std::vector<Digest> digests(static_cast<size_t>(chunks));
  const auto digest_chunks = [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const auto start = static_cast<size_t>(chunk * kChunkBytes);
      const size_t length = std::min(static_cast<size_t>(kChunkBytes), bytes.size() - start);
      digests[static_cast<size_t>(chunk)] = cache::digest_of(bytes.subspan(start, length));
    }
  };
  if (pool != nullptr && chunks > 1) {
    pool->parallel_for(chunks, 1, digest_chunks);
  } else {
    digest_chunks(0, chunks);
  }
  // The prefix separates this use of the digest from others; lengths make its parts unambiguous.
  std::string root = "tessera weight\n" + std::string(name(constant.type())) + " " +
                     dims_text(constant.dims()) + "\n";
  append_number(root, bytes.size());
  for (const Digest& digest : digests) {
    root.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  }
  return cache::digest_of(root);
}

std::shared_ptr<PackStore::Entry> PackStore::entry_of(const PackKey& key) {
  const ForkSafeLock lock(mutex_);
  std::shared_ptr<Entry>& slot = entries_[key];
  if (!slot) slot = std::make_shared<Entry>();
  return slot;
}

void PackStore::put(Entry& entry, Bytes bytes, int64_t size) {
  const ForkSafeLock lock(mutex_);
  entry.bytes = std::move(bytes);
  entry.size = size;
  total_bytes_ += size;
}

PackStore::Bytes PackStore::get(const PackKey& key, int64_t bytes,
                                const std::function<void(void* memory)>& make) {
  const std::shared_ptr<Entry> entry = entry_of(key);
  const std::lock_guard making(entry->mutex);
  if (entry->bytes) return entry->bytes;
  Bytes found = stored(key, bytes);
  if (!found) {
    const std::shared_ptr<void> memory = allocate(bytes);
    make(memory.get());
    if (made_watcher_) made_watcher_(bytes);
    found = memory;
  }
  put(*entry, found, bytes);
  return found;
}

PackStore::Bytes PackStore::get_on_device(const PackKey& key, const std::function<Bytes()>& make) {
  const std::shared_ptr<Entry> entry = entry_of(key);
  const std::lock_guard making(entry->mutex);
  if (entry->bytes) return entry->bytes;
  entry->is_on_device = true;
  Bytes made = make();
  put(*entry, made, 0);
  return made;
}

void PackStore::find_stored(const PackKey& key, int64_t bytes) {
  const std::shared_ptr<Entry> entry = entry_of(key);
  const std::lock_guard making(entry->mutex);
  if (entry->bytes) return;
  if (Bytes found = stored(key, bytes)) put(*entry, std::move(found), bytes);
}

void PackStore::set_source(Source source) {
  const ForkSafeLock lock(mutex_);
  source_ = std::move(source);
}

PackStore::Bytes PackStore::stored(const PackKey& key, int64_t bytes) const {
  Source source;
  {
    const ForkSafeLock lock(mutex_);
    source = source_;
  }
  return source ? source(key, bytes) : nullptr;
}

std::vector<PackStore::Pack> PackStore::all() const {
  const ForkSafeLock lock(mutex_);
  std::vector<Pack> packs;
  for (const auto& [key, entry] : entries_) {
    if (entry->bytes && !entry->is_on_device) packs.push_back({key, entry->bytes, entry->size});
  }
  return packs;
}

PackStore::Bytes PackStore::find(const PackKey& key) const {
  const ForkSafeLock lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second->bytes;
}

void PackStore::drop_unused(const std::function<bool(const Digest& weight)>& is_kept) {
  const ForkSafeLock lock(mutex_);
  std::erase_if(entries_, [&](const auto& item) {
    if (is_kept && is_kept(item.first.weight)) return false;
    const Entry& entry = *item.second;
    // A thread that makes the pack or waits for it holds the entry.
    const bool is_unused = item.second.use_count() == 1 && entry.bytes.use_count() <= 1;
    if (is_unused) total_bytes_ -= entry.size;
    return is_unused;
  });
}

std::string text(const PackKey& key) {
  return cache::hexadecimal(key.weight) + ";" + key.id + ";" + key.ingredients;
}

int64_t PackStore::total_bytes() const {
  const ForkSafeLock lock(mutex_);
  return total_bytes_;
}

}  // namespace tessera
