// How many blobs of plug-ins a process keeps in memory (HostServices).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera {

// With more blobs, or more bytes of them, all but the newest are forgotten: files keep them, and a
// plug-in makes again what is missing.
inline constexpr size_t kMaxBlobs = 4096;
inline constexpr int64_t kMaxBlobBytes = int64_t{64} << 20;

}  // namespace tessera
