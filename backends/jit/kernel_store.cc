#include "kernel_store.h"

#include <chrono>
#include <utility>

#include "byte_format.h"
#include "compile.h"

namespace tessera::jit {

using plugin::Failure;

namespace {

constexpr std::string_view kMagic = "tessera jit kernel 2";
// If more kernels than this are kept, unused ones are removed.
constexpr size_t kMaxIdleEntries = 1024;

// 32 hex digits. Collisions are harmless, because the whole source is compared.
std::string digest(std::string_view text) {
  constexpr uint64_t kPrimes[] = {0x100000001b3U, 0x9e3779b97f4a7c15U};
  std::string digits;
  for (const uint64_t prime : kPrimes) {
    uint64_t hash = 0xcbf29ce484222325U;
    for (const char letter : text) {
      hash = (hash ^ static_cast<unsigned char>(letter)) * prime;
      hash ^= hash >> 29;
    }
    for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[hash >> shift & 15];
  }
  return digits;
}

}  // namespace

std::string bytes_of_record(const KernelRecord& record) {
  std::string bytes;
  append_text(bytes, kMagic);
  append_text(bytes, record.source);
  append_text(bytes, record.compiler);
  append_number(bytes, record.failure);
  append_text(bytes, record.log);
  append_number(bytes, record.image.kernel);
  append_number(bytes, record.image.stream);
  append_text(bytes, record.image.code);
  return bytes;
}

KernelRecord record_of_bytes(std::string_view bytes) {
  ByteReader reader(bytes);
  KernelRecord record;
  if (reader.text() != kMagic) {
    throw Failure(TESSERA_CORRUPT, "these are not the bytes of a compiled kernel");
  }
  record.source = reader.text();
  record.compiler = reader.text();
  record.failure = static_cast<int32_t>(reader.number());
  record.log = reader.text();
  record.image.kernel = reader.number();
  record.image.stream = reader.number();
  record.image.code = reader.text();
  reader.expect_end();
  return record;
}

KernelStore::KernelStore(const Target& target, plugin::Blobs blobs, const std::string& revision)
    : target_(target),
      blobs_(blobs),
      identity_(target.level + "\n" + kCompilerRevision + "\n" + revision + "\n") {}

std::string KernelStore::key_of(const std::string& source) const {
  return "kernel/" + digest(identity_ + source);
}

std::shared_ptr<KernelStore::Entry> KernelStore::entry_of(const std::string& source) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Entry>& entry = entries_[source];
  if (entry != nullptr) return entry;
  entry = std::make_shared<Entry>();
  const std::shared_ptr<Entry> made = entry;
  ++unique_;
  if (entries_.size() > kMaxIdleEntries) drop_unused();
  return made;
}

// Kernels that run, and entries that threads wait for, have other owners.
void KernelStore::drop_unused() {
  for (auto at = entries_.begin(); at != entries_.end();) {
    // An entry that nobody else has cannot be changing.
    const bool is_idle = at->second.use_count() == 1 &&
                         (at->second->ready == nullptr || at->second->ready.use_count() == 1);
    at = is_idle ? entries_.erase(at) : std::next(at);
  }
}

// A damaged blob is as good as none.
std::optional<KernelRecord> KernelStore::stored(const std::string& source) const {
  const std::optional<std::string> bytes = blobs_.get(key_of(source));
  if (!bytes) return std::nullopt;
  try {
    KernelRecord record = record_of_bytes(*bytes);
    if (record.source != source) return std::nullopt;
    return record;
  } catch (const Failure&) {
    return std::nullopt;
  }
}

KernelRecord KernelStore::compile_record(const std::string& source, const Print& print) {
  const LlvmFunctions& llvm = llvm_.get();
  KernelRecord record;
  record.source = source;
  record.compiler = llvm.library;
  ++compiled_;
  const auto begin = std::chrono::steady_clock::now();
  try {
    record.image = image_of_object(compile(llvm, print(), target_));
  } catch (const Failure& failure) {
    record.failure = failure.kind();
    record.log = failure.what();
  }
  const auto passed = std::chrono::steady_clock::now() - begin;
  compile_nanoseconds_ += std::chrono::nanoseconds(passed).count();
  return record;
}

void KernelStore::take(KernelRecord record, Entry& entry) {
  if (record.failure != TESSERA_OK) {
    entry.failure = Failure(record.failure, record.log);
  } else {
    entry.ready = std::make_shared<const ReadyKernel>(std::move(record));
  }
}

bool KernelStore::take_stored(const std::string& source, Entry& entry) {
  std::optional<KernelRecord> record = stored(source);
  if (!record) return false;
  try {
    take(*std::move(record), entry);
  } catch (const Failure&) {
    return false;
  }
  ++loaded_;
  return true;
}

std::shared_ptr<const ReadyKernel> KernelStore::get(const std::string& source, const Print& print) {
  const std::shared_ptr<Entry> entry = entry_of(source);
  const std::lock_guard lock(entry->mutex);
  const bool is_known = entry->failure || entry->ready != nullptr;
  if (!is_known && !take_stored(source, *entry)) {
    const plugin::BlobClaim claim(blobs_, key_of(source));
    // Another thread or process may have compiled it meanwhile.
    if (!take_stored(source, *entry)) {
      KernelRecord record = compile_record(source, print);
      blobs_.put(key_of(source), bytes_of_record(record));
      take(std::move(record), *entry);
    }
  }
  if (entry->failure) throw Failure(*entry->failure);
  return entry->ready;
}

bool KernelStore::has(const std::string& source) {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(source);
    if (found != entries_.end()) entry = found->second;
  }
  if (entry != nullptr) {
    const std::lock_guard lock(entry->mutex);
    if (entry->ready != nullptr || entry->failure) return true;
  }
  return stored(source).has_value();
}

void KernelStore::check(const std::string& source, const std::function<void()>& check_printable) {
  {
    const std::lock_guard lock(mutex_);
    if (printable_.contains(source)) return;
  }
  check_printable();
  const std::lock_guard lock(mutex_);
  if (printable_.size() >= kMaxIdleEntries) printable_.clear();
  printable_.insert(source);
}

std::shared_ptr<const ReadyKernel> KernelStore::accept(KernelRecord record) {
  const std::shared_ptr<Entry> entry = entry_of(record.source);
  const std::lock_guard lock(entry->mutex);
  if (entry->ready != nullptr) return entry->ready;
  if (record.failure != TESSERA_OK) throw Failure(record.failure, record.log);
  entry->ready = std::make_shared<const ReadyKernel>(std::move(record));
  ++loaded_;
  return entry->ready;
}

std::string KernelStore::assembly(const std::string& text) {
  return compile(llvm_.get(), text, target_, OutputForm::Assembly);
}

plugin::CompileCounts KernelStore::counts() const {
  return {.kernels = kernels_.load(),
          .unique = unique_.load(),
          .compiled = compiled_.load(),
          .loaded = loaded_.load(),
          .compile_seconds = 1e-9 * static_cast<double>(compile_nanoseconds_.load())};
}

}  // namespace tessera::jit
