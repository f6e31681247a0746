// Problems of placing buffers in memory, as files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plan/memory_plan.h"

namespace tessera::cli {

struct MemoryInstance {
  std::vector<std::string> names;
  std::vector<BufferRequest> requests;
};

// Reads comma-separated values: a line of titles, among them `id`, `lower`, `upper` and `size` in
// any order, then a line a buffer, which is live from `lower` until before `upper`. Other columns
// are passed over, and so are empty lines, a mark of the byte order and carriage returns. `file` is
// for errors, which name the line, the buffer where it has a name, and what was expected. Throws
// InvalidArgument for what is no such file, a time below 0, a size below 1 or beyond 64 bits, sizes
// that together are, a name twice, and no buffers.
MemoryInstance parse_memory_instance(std::string_view text, const std::string& file);

// The same from a file. Throws InvalidArgument also where it cannot be read, or is larger than
// 64 MiB.
MemoryInstance read_memory_instance(const std::filesystem::path& file);

}  // namespace tessera::cli
