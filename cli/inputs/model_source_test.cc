#include "cli/inputs/model_source.h"

#include <fcntl.h>
#include <unistd.h>
#include <cstdlib>

#include <array>
#include <thread>

#include "base/errors/error_test.h"
#include "base/matchers_test.h"

namespace tessera::cli {
namespace {

// Returns what read_model_bytes() reads from a pipe that contains `bytes`, or its error message.
std::string read_through_pipe(const std::string& bytes, size_t max_bytes) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  std::thread writer([&] {
    size_t written = 0;
    while (written < bytes.size()) {
      const ssize_t count = ::write(ends[1], bytes.data() + written, bytes.size() - written);
      if (count <= 0) break;
      written += static_cast<size_t>(count);
    }
    ::close(ends[1]);
  });
  std::string result;
  const std::string error =
      error_of(ErrorKind::InvalidArgument, [&] { result = read_model_bytes(ends[0], max_bytes); });
  writer.join();
  ::close(ends[0]);
  return result + error;
}

TEST(ModelSource, ReadsAllThatComes) {
  const std::string bytes(3'000'001, 'x');
  EXPECT_EQ(read_through_pipe(bytes, bytes.size()), bytes);
  EXPECT_EQ(read_through_pipe("a", 10), "a");
}

TEST(ModelSource, RefusesNothingAndTooMuch) {
  EXPECT_THAT(read_through_pipe("", 10),
              HasSubstr("standard input: expected a model, found nothing"));
  EXPECT_THAT(read_through_pipe("12345678901", 10), HasSubstr("expected at most 10 bytes"));
}

TEST(ModelSource, RefusesATerminal) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) GTEST_SKIP() << "no terminal can be opened here";
  EXPECT_THAT(error_of([&] { read_model_bytes(terminal, 10); }),
              HasSubstr("expected a model, found a terminal"));
  ::close(terminal);
}

}  // namespace
}  // namespace tessera::cli
