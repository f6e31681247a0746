// Constants as kernels want them: made once, shared by all executors and shapes of a model.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "cache/digest.h"
#include "graph/graph.h"
#include "tessera/tensor.h"

namespace tessera {

// Identifies the elements of a weight, whatever it is called and wherever it lies. Nobody can make
// two weights with one digest: stored packs are found by it, and a model may come from a stranger.
using Digest = cache::Digest;

// BLAKE2b (cache/digest.h) over a tree: docs/formats/packs.md says of what. `constant` has its
// elements. With a pool its threads share the work; the digest does not depend on their number.
Digest digest_of(const Tensor& constant, ThreadPool* pool = nullptr);

struct PackKey {
  Digest weight = {};
  std::string id;           // the pack's, unique for a backend
  std::string ingredients;  // of the backend: its name and library version
  auto operator<=>(const PackKey&) const = default;
};

// Safe from any thread. Packs live as long as the store or whoever holds them.
class PackStore {
 public:
  using Bytes = std::shared_ptr<const void>;  // aligned to kTensorAlignmentBytes
  using MadeWatcher = std::function<void(int64_t bytes)>;

  // `watcher` is told of every pack once it was made, from the thread that made it. To be set
  // before the first get().
  void set_made_watcher(MadeWatcher watcher) { made_watcher_ = std::move(watcher); }

  // Where packs are looked for before they are made; null where there is none of this size. To be
  // set before the first get() of what it has.
  using Source = std::function<Bytes(const PackKey& key, int64_t bytes)>;
  void set_source(Source source);

  // The pack under `key`, made by `make(memory)` where there is none yet. A pack that is being made
  // by another thread is waited for. Throws OutOfMemory, and what `make` throws.
  Bytes get(const PackKey& key, int64_t bytes, const std::function<void(void* memory)>& make);
  // nullptr where there is none.
  Bytes find(const PackKey& key) const;

  // Lets go of the packs that nobody holds but the store.
  void drop_unused();

  int64_t total_bytes() const;

  struct Pack {
    PackKey key;
    Bytes bytes;
    int64_t size = 0;
  };
  // All that are made.
  std::vector<Pack> all() const;

 private:
  Bytes stored(const PackKey& key, int64_t bytes) const;

  struct Entry {
    std::mutex mutex;
    Bytes bytes;
    int64_t size = 0;
  };
  mutable std::mutex mutex_;
  std::map<PackKey, std::shared_ptr<Entry>> entries_;
  int64_t total_bytes_ = 0;
  MadeWatcher made_watcher_;
  Source source_;
};

// By which it is found in files: 64 digits of the weight's digest, ";id;ingredients".
std::string text(const PackKey& key);

}  // namespace tessera
