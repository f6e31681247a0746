// Constants as kernels want them: made once, shared by all executors and shapes of a model.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "tessera/tensor.h"

namespace tessera {

// Identifies the elements of a weight, whatever it is called and wherever it lies.
using Digest = std::array<uint64_t, 2>;

// XXH3, 128 bits, over type, dimensions and elements. `constant` has its elements.
Digest digest_of(const Tensor& constant);

// XXH3, 128 bits, over the bytes.
Digest digest_of_bytes(std::span<const char> bytes);

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

// By which it is found in files: "0123...;id;ingredients".
std::string text(const PackKey& key);

}  // namespace tessera
