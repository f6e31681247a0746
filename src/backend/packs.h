// Constants in the form that kernels want: packed once, shared by all executors and shapes of a
// model.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/threads/fork.h"
#include "base/threads/parallel.h"
#include "cache/digest.h"
#include "graph/graph.h"
#include "tessera/tensor.h"

namespace tessera {

// Identifies the elements of a weight, independent of its name and location. Cryptographic, because
// stored packs are looked up by it and models may come from untrusted sources.
using Digest = cache::Digest;

// A tree hash with BLAKE2b (cache/digest.h); docs/formats/packs.md defines its input. `constant`
// must have its elements. With a pool, its threads share the work; the digest does not depend on
// their number.
Digest digest_of(const Tensor& constant, ThreadPool* pool = nullptr);

struct PackKey {
  Digest weight = {};
  std::string id;           // of the pack, unique within a backend
  std::string ingredients;  // of the backend: its name and library version
  auto operator<=>(const PackKey&) const = default;
};

// Thread-safe. A pack lives as long as the store or another owner holds it.
class PackStore {
 public:
  using Bytes = std::shared_ptr<const void>;  // aligned to kTensorAlignmentBytes
  using MadeWatcher = std::function<void(int64_t bytes)>;

  // `watcher` is called after each pack was made, on the thread that made it. Set it before the
  // first get().
  void set_made_watcher(MadeWatcher watcher) { made_watcher_ = std::move(watcher); }

  // Looks for packs before they are made; returns null if there is none of this size. Set it before
  // the first get() of a pack that it has.
  using Source = std::function<Bytes(const PackKey& key, int64_t bytes)>;
  void set_source(Source source);

  // The pack under `key`; if there is none, `make(memory)` makes it. Waits for a pack that another
  // thread is making. Throws OutOfMemory, and what `make` throws.
  Bytes get(const PackKey& key, int64_t bytes, const std::function<void(void* memory)>& make);
  // Same as get(), for a pack in memory of a device, which `make` allocates and fills. Only the
  // store keeps it: total_bytes() and all() do not include it.
  Bytes get_on_device(const PackKey& key, const std::function<Bytes()>& make);
  // Loads the pack into the store if the source has it; else does nothing.
  void find_stored(const PackKey& key, int64_t bytes);
  // nullptr if there is none.
  Bytes find(const PackKey& key) const;

  // Releases packs that only the store holds, except those of weights for which `is_kept` returns
  // true. Null: none are kept.
  void drop_unused(const std::function<bool(const Digest& weight)>& is_kept = {});

  int64_t total_bytes() const;

  struct Pack {
    PackKey key;
    Bytes bytes;
    int64_t size = 0;
  };
  // All packs made so far in the host's memory.
  std::vector<Pack> all() const;

 private:
  Bytes stored(const PackKey& key, int64_t bytes) const;

  struct Entry {
    LongHeldMutex mutex;  // while the pack is made
    Bytes bytes;
    int64_t size = 0;
    bool is_on_device = false;
  };
  std::shared_ptr<Entry> entry_of(const PackKey& key);
  void put(Entry& entry, Bytes bytes, int64_t size);

  mutable std::mutex mutex_;
  std::map<PackKey, std::shared_ptr<Entry>> entries_;
  int64_t total_bytes_ = 0;
  MadeWatcher made_watcher_;
  Source source_;
};

// Its name in files: 64 digits of the weight's digest, ";id;ingredients".
std::string text(const PackKey& key);

}  // namespace tessera
