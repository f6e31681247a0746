// The targets that libFuzzer calls with bytes. Each target returns without throwing for all bytes.
// It ends the process if a promise is broken; the sanitizers end it for other errors. entry.cc
// turns one target into a fuzzer; replay_test.cc runs all targets on the corpora in the repository.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace tessera::fuzzing {

using Bytes = std::span<const char>;

// The bytes of a model, which is loaded, bound with 2 for unknown dimensions, and run on small
// numbers.
void fuzz_model(Bytes bytes);
// A .npy file, or, if the first byte is odd, a .pb file after that byte.
void fuzz_tensor_file(Bytes bytes);
// A stream of frames that a worker or its parent receives. The first byte selects which of the two
// receives it, and whether lengths and checksums are corrected.
void fuzz_messages(Bytes bytes);
// A cache file with corrected checksums and fingerprint, and the costs and the plan in it.
void fuzz_cache(Bytes bytes);
// A file of packs with corrected MAC and codes.
void fuzz_packs(Bytes bytes);
// A bundle with corrected checksums, and the model, caches, index and packs in it.
void fuzz_bundle(Bytes bytes);
// The content of a model's index, in a file that belongs to this user.
void fuzz_model_index(Bytes bytes);

struct Target {
  const char* name;  // of its corpus, a folder in tests/fuzz/corpus
  void (*run)(Bytes bytes);
};

inline constexpr Target kTargets[] = {
    {"model", fuzz_model},       {"tensor_file", fuzz_tensor_file},
    {"messages", fuzz_messages}, {"cache", fuzz_cache},
    {"packs", fuzz_packs},       {"model_index", fuzz_model_index},
    {"bundle", fuzz_bundle},
};

// --- For the targets -----------------------------------------------------------------------------

// Ends the process with `message` if `is_kept` is false.
void expect(bool is_kept, const std::string& message);

// Prevents the compiler from removing code that only computes `number`.
void use(uint64_t number);

// Little-endian, as in the files.
uint64_t read_number(Bytes bytes, size_t at, size_t size);
void write_number(std::string& bytes, size_t at, size_t size, uint64_t number);

// A folder for this process alone, in memory if possible, which is removed at the end.
const std::filesystem::path& scratch_folder();
void write_scratch_file(const std::filesystem::path& file, Bytes bytes);

}  // namespace tessera::fuzzing
