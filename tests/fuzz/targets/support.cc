#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "targets.h"

namespace tessera::fuzzing {
namespace {

struct ScratchFolder {
  ScratchFolder() {
    const std::filesystem::path memory = "/dev/shm";
    const std::filesystem::path parent =
        std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
    // mkdtemp() creates a folder that only this user can access, which trusted files require.
    std::string pattern = (parent / "tessera_fuzz_XXXXXX").string();
    expect(::mkdtemp(pattern.data()) != nullptr, "a scratch folder can be made");
    path = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

}  // namespace

void expect(bool is_kept, const std::string& message) {
  if (is_kept) return;
  std::fprintf(stderr, "ERROR: a promise is broken: %s\n", message.c_str());
  std::abort();
}

void use(uint64_t number) {
  static volatile uint64_t used = 0;
  used = used ^ number;
}

uint64_t read_number(Bytes bytes, size_t at, size_t size) {
  uint64_t number = 0;
  for (size_t index = 0; index < size && at + index < bytes.size(); ++index) {
    number |= uint64_t{static_cast<uint8_t>(bytes[at + index])} << (8 * index);
  }
  return number;
}

void write_number(std::string& bytes, size_t at, size_t size, uint64_t number) {
  for (size_t index = 0; index < size && at + index < bytes.size(); ++index) {
    bytes[at + index] = static_cast<char>(number >> (8 * index));
  }
}

const std::filesystem::path& scratch_folder() {
  static const ScratchFolder kFolder;
  return kFolder.path;
}

void write_scratch_file(const std::filesystem::path& file, Bytes bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace tessera::fuzzing
