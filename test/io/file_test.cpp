// SPDX-License-Identifier: Apache-2.0
// Files are replaced in one step, and what the system refuses is said in its words.
#include "base/file.h"

#include "io/files.h"
#include "tilewright/npy.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>

namespace tilewright::test {
namespace {

const Array kSmall = make_array("a", Type::f32, {4});

TEST(File, WritingLeavesNoTemporaryFile) {
  const Scratch scratch;
  write_npy(scratch / "a.npy", kSmall);
  write_npy(scratch / "a.npy", make_array("a", Type::f32, {400}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 1);
  EXPECT_EQ(read_npy(scratch / "a.npy").shape, std::vector<std::int64_t>{400});
}

TEST(File, AFullDiskIsAClearErrorThatNamesTheFile) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  EXPECT_EQ(message_of([] { write_npy("/dev/full", kSmall); }),
            "/dev/full: cannot write: No space left on device");
}

TEST(File, WhatCannotBeWrittenKeepsTheOldFile) {
  const Scratch scratch;
  EXPECT_EQ(short_message_of(scratch.path(), [&] { write_npy(scratch / "no/a.npy", kSmall); }),
            "no/a.npy: cannot write: No such file or directory");
  EXPECT_EQ(
      short_message_of(scratch.path().parent_path(), [&] { write_npy(scratch.path(), kSmall); }),
      scratch.path().filename().string() + ": cannot write: Is a directory");
}

TEST(File, AMissingPermissionIsAClearError) {
  const Scratch scratch;
  write_npy(scratch / "a.npy", kSmall);
  std::filesystem::permissions(scratch / "a.npy", std::filesystem::perms::none);
  if (std::ifstream(scratch / "a.npy")) GTEST_SKIP() << "this user may read everything";
  EXPECT_EQ(short_message_of(scratch.path(), [&] { read_npy(scratch / "a.npy"); }),
            "a.npy: cannot open: Permission denied");
}

TEST(File, ADirectoryIsNoFile) {
  EXPECT_EQ(message_of([] { read_npy("/tmp"); }), "/tmp: cannot read: Is a directory");
}

TEST(File, APipeIsReadToItsEnd) {
  const Scratch scratch;
  const std::string pipe = scratch / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] {
    const std::vector<std::byte> bytes = npy_bytes(kSmall);
    std::ofstream(pipe, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  });
  const Array array = read_npy(pipe);
  writer.join();
  EXPECT_EQ(array.bytes, kSmall.bytes);
}

}  // namespace
}  // namespace tilewright::test
