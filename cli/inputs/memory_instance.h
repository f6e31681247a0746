// Reads memory planning problems (buffers with lifetimes and sizes) from files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plan/packing/memory_plan.h"

namespace tessera::cli {

struct MemoryInstance {
  std::vector<std::string> names;
  std::vector<BufferRequest> requests;
};

// Parses comma-separated values: a line of titles that include `id`, `lower`, `upper` and `size` in
// any order, then one line for each buffer, which is live from `lower` until before `upper`. Other
// columns, empty lines, a byte order mark and carriage returns are ignored. Errors name `file`, the
// line, the buffer if it has a name, and what was expected. Throws InvalidArgument if the text does
// not have this format, a time is below 0, a size is below 1 or exceeds 64 bits, the sum of the
// sizes exceeds 64 bits, a name occurs twice, or there are no buffers.
MemoryInstance parse_memory_instance(std::string_view text, const std::string& file);

// Reads and parses a file. Also throws InvalidArgument if the file cannot be read or is larger than
// 64 MiB.
MemoryInstance read_memory_instance(const std::filesystem::path& file);

}  // namespace tessera::cli
