// Runs each target on its corpus, so that bugs that were found before do not come back.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "targets.h"

namespace tessera::fuzzing {
namespace {

class Replay : public testing::TestWithParam<Target> {};

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST_P(Replay, NothingInTheCorpusIsAFinding) {
  const auto files = files_in(std::filesystem::path(TESSERA_FUZZ_CORPUS) / GetParam().name);
  EXPECT_FALSE(files.empty());
  for (const std::filesystem::path& file : files) {
    SCOPED_TRACE(file.string());
    std::ifstream stream(file, std::ios::binary);
    // Has exactly the file's size, so that a sanitizer detects each read beyond the end.
    const std::vector<char> bytes{std::istreambuf_iterator<char>(stream),
                                  std::istreambuf_iterator<char>()};
    GetParam().run(bytes);
    GetParam().run(Bytes(bytes).first(bytes.size() / 2));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Replay, testing::ValuesIn(kTargets),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace tessera::fuzzing
