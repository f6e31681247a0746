// What libFuzzer feeds with bytes. Each target throws nothing and returns, whatever the bytes are;
// it ends the process where a promise is broken, and the sanitizers end it elsewhere. entry.cc
// makes a fuzzer of one; replay_test.cc runs all of them on the corpora in the repository.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace tessera::fuzzing {

using Bytes = std::span<const char>;

// Model bytes: loaded, bound with unknown dimensions of 2, and run on small numbers.
void fuzz_model(Bytes bytes);
// A .npy file, or, where the first byte is odd, a .pb file, behind that byte.
void fuzz_tensor_file(Bytes bytes);
// A stream of frames as a worker or its parent receives it; the first byte says which of both it
// is, and whether lengths and checksums are made right.
void fuzz_messages(Bytes bytes);
// A cache file with its checksums and fingerprint made right, and the costs and the plan in it.
void fuzz_cache(Bytes bytes);
// A file of packs with its code and digests made right.
void fuzz_packs(Bytes bytes);
// The content of a model's index, in a file that is this user's.
void fuzz_model_index(Bytes bytes);

struct Target {
  const char* name;  // of its corpus, a folder in tests/fuzz/corpus
  void (*run)(Bytes bytes);
};

inline constexpr Target kTargets[] = {
    {"model", fuzz_model},       {"tensor_file", fuzz_tensor_file},
    {"messages", fuzz_messages}, {"cache", fuzz_cache},
    {"packs", fuzz_packs},       {"model_index", fuzz_model_index},
};

// --- For the targets -----------------------------------------------------------------------------

// Ends the process with `message`, unless `is_kept`.
void expect(bool is_kept, const std::string& message);

// Keeps the compiler from leaving out what only computes `number`.
void use(uint64_t number);

// Little-endian, as files have numbers.
uint64_t read_number(Bytes bytes, size_t at, size_t size);
void write_number(std::string& bytes, size_t at, size_t size, uint64_t number);

// A folder of this process alone, in memory where there is such; gone with it.
const std::filesystem::path& scratch_folder();
void write_scratch_file(const std::filesystem::path& file, Bytes bytes);

}  // namespace tessera::fuzzing
