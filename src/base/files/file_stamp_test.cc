#include "base/files/file_stamp.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/files/file_handle.h"

namespace tessera {
namespace {

class ReadLeases : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "tessera_XXXXXX").string();
    const FileHandle made(::mkstemp(name.data()));
    ASSERT_TRUE(made.is_open());
    file_ = name;
  }
  void TearDown() override { std::filesystem::remove(file_); }

  FileHandle open(int flags) const {
    return FileHandle(::open(file_.c_str(), flags | O_NONBLOCK | O_CLOEXEC));
  }

  std::filesystem::path file_;
};

TEST_F(ReadLeases, AreGrantedWhereNobodyWrites) {
  const FileHandle reader = open(O_RDONLY);
  const ReadLease lease = take_read_lease(reader.get());
  if (lease == ReadLease::Unavailable) GTEST_SKIP() << "the file system has no leases";
  EXPECT_EQ(lease, ReadLease::Granted);
  EXPECT_EQ(release_read_lease(reader.get(), lease), ReadLease::Granted);
  EXPECT_TRUE(open(O_WRONLY).is_open()) << "it is released";
}

TEST_F(ReadLeases, ShowWhoHasItOpenForWriting) {
  const FileHandle writer = open(O_WRONLY);
  const FileHandle reader = open(O_RDONLY);
  const ReadLease lease = take_read_lease(reader.get());
  if (lease == ReadLease::Unavailable) GTEST_SKIP() << "the file system has no leases";
  EXPECT_EQ(lease, ReadLease::Writer);
  EXPECT_EQ(release_read_lease(reader.get(), lease), ReadLease::Writer);
}

TEST_F(ReadLeases, ShowAWriterWhoComesLater) {
  const FileHandle reader = open(O_RDONLY);
  const ReadLease lease = take_read_lease(reader.get());
  if (lease == ReadLease::Unavailable) GTEST_SKIP() << "the file system has no leases";
  // Without O_NONBLOCK it would wait. No signal ends this process.
  EXPECT_FALSE(open(O_WRONLY).is_open());
  EXPECT_EQ(errno, EWOULDBLOCK);
  EXPECT_EQ(release_read_lease(reader.get(), lease), ReadLease::Writer);
  EXPECT_TRUE(open(O_WRONLY).is_open());
}

}  // namespace
}  // namespace tessera
