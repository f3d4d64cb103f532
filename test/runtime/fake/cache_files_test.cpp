// SPDX-License-Identifier: Apache-2.0
// Tests of damaged, foreign and refused cache files, full disks and forbidden directories.
#include "runtime/fake/cache_fixture.h"

#include <filesystem>
#include <fstream>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tilewright::test {
namespace {

namespace fs = std::filesystem;

class CacheFiles : public CacheTest {
 protected:
  /// The one file whose name starts with `prefix`.
  fs::path entry(const std::string& prefix) {
    for (const auto& item : fs::directory_iterator(path())) {
      if (item.path().filename().string().starts_with(prefix)) return item.path();
    }
    ADD_FAILURE() << "no file " << prefix << "*";
    return {};
  }
  static std::string bytes_of(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  static void write(const fs::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
  }
};

TEST_F(CacheFiles, RefusesDamagedEntriesAndMakesThemAgain) {
  struct Row {
    const char* name;
    std::string (*damage)(std::string);
    const char* problem;
  };
  const Row rows[] = {
      {"a flipped byte of code",
       [](std::string bytes) {
         bytes.back() = static_cast<char>(bytes.back() ^ 1);
         return bytes;
       },
       "is damaged: its checksum does not fit"},
      {"a flipped byte of a field",
       [](std::string bytes) {
         bytes[60] = static_cast<char>(bytes[60] ^ 1);
         return bytes;
       },
       "is damaged: its checksum does not fit"},
      {"a file cut in its head", [](std::string bytes) { return bytes.substr(0, 20); },
       "is cut short"},
      {"a file cut in its body",
       [](std::string bytes) { return bytes.substr(0, bytes.size() - 1); }, "is cut short"},
      {"a longer file", [](std::string bytes) { return bytes + "x"; }, "has bytes after its end"},
      {"an empty file", [](std::string) { return std::string(); }, "is not a cache entry"},
      {"a foreign file",
       [](std::string) {
         return std::string(
             "\x7f"
             "ELF and more");
       },
       "is not a cache entry"},
      {"a newer format",
       [](std::string bytes) {
         bytes[8] = 2;
         return bytes;
       },
       "has format 2, this library reads 1"},
  };
  for (const Row& row : rows) {
    get_afresh();
    fs::path file = entry("code-");
    write(file, row.damage(bytes_of(file)));
    int runs = assembler_.runs();
    EXPECT_EQ(get_afresh().assembled().bytes.size(), 4u) << row.name;
    EXPECT_EQ(assembler_.runs(), runs + 1) << row.name;
    EXPECT_GT(counters_.rejected, 0) << row.name;
    ASSERT_FALSE(warnings_.empty()) << row.name;
    EXPECT_EQ(warnings_[0],
              "kernel cache: " + file.string() + " " + row.problem + "; it is made again")
        << row.name;
    get_afresh();
    EXPECT_EQ(counters_.rejected, 0) << row.name << ": the entry was not mended";
  }
}

TEST_F(CacheFiles, RefusesADamagedIndexAndTracesAgain) {
  get_afresh();
  write(entry("front-"), "TWCACHE\nnonsense");
  get_afresh();
  EXPECT_EQ(counters_.ptx_hits, 1);
  EXPECT_EQ(counters_.rejected, 1);
}

TEST_F(CacheFiles, ReportsDamageWhenAskedToVerify) {
  get_afresh();
  fs::path file = entry("code-");
  write(file, bytes_of(file).substr(0, 50));
  KernelCache cache(options());
  ASSERT_EQ(cache.verify().size(), 1u);
  EXPECT_EQ(cache.verify()[0].problem, "is cut short");
}

TEST_F(CacheFiles, RefusesAnEntryThatOthersCanWrite) {
  get_afresh();
  fs::path file = entry("code-");
  chmod(file.c_str(), 0666);
  get_afresh();
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0],
            "kernel cache: " + file.string() + " can be written by others; it is made again");
}

TEST_F(CacheFiles, RefusesALink) {
  get_afresh();
  fs::path file = entry("code-");
  fs::rename(file, path("elsewhere"));
  fs::create_symlink(path("elsewhere"), file);
  get_afresh();
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0], "kernel cache: " + file.string() + " is a link; it is made again");
  EXPECT_FALSE(fs::is_symlink(file));
}

TEST_F(CacheFiles, RefusesAnEntryOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  get_afresh();
  fs::path file = entry("code-");
  ASSERT_EQ(chown(file.c_str(), 4711, 4711), 0);
  get_afresh();
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0], "kernel cache: " + file.string() +
                              " belongs to user 4711, not to us; it is made again");
}

TEST_F(CacheFiles, WorksWithoutADirectoryThatItCannotMake) {
  write(path("file"), "");
  CacheOptions under_a_file{.directory = path("file") + "/cache"};
  EXPECT_EQ(get_afresh("scale v1", &under_a_file).name(), "scale");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0], "kernel cache: cannot make " + path("file") +
                              "/cache: Not a directory; kernels are not kept on disk");
}

TEST_F(CacheFiles, WorksWhereAFileStandsInPlaceOfTheDirectory) {
  write(path(), "");
  EXPECT_EQ(get_afresh().name(), "scale");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0],
            "kernel cache: " + path() + " is not a directory; kernels are not kept on disk");
}

TEST_F(CacheFiles, RefusesADirectoryThatOthersCanWrite) {
  fs::create_directory(path());
  chmod(path().c_str(), 0777);
  EXPECT_EQ(get_afresh().name(), "scale");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0],
            "kernel cache: " + path() + " can be written by others; kernels are not kept on disk");
}

TEST_F(CacheFiles, IsPrivateToItsOwner) {
  get_afresh();
  struct stat directory {};
  struct stat file {};
  ASSERT_EQ(stat(path().c_str(), &directory), 0);
  ASSERT_EQ(stat(entry("code-").c_str(), &file), 0);
  EXPECT_EQ(directory.st_mode & 0777, 0700u);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

TEST_F(CacheFiles, WorksOnAFullDisk) {
  // A limit on the size of files answers as a full disk does; smaller than an entry, larger than
  // what the assembler reads and writes.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  auto old_handler = signal(SIGXFSZ, SIG_IGN);
  rlimit small{.rlim_cur = 100, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  Kernel kernel = get_afresh();
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, old_handler);
  EXPECT_EQ(kernel.name(), "scale");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0], "kernel cache: cannot write to " + path() +
                              ": File too large; the kernel is not kept on disk");
  for (const auto& item : fs::directory_iterator(path())) {
    EXPECT_TRUE(item.path().filename().string().starts_with("lock-")) << item.path();
  }
}

TEST_F(CacheFiles, ThrowsOutTheLeastRecentlyUsedEntries) {
  CacheOptions small = options();
  small.max_bytes = 2000;
  for (int i = 0; i < 12; ++i) {
    ptx_ = ".version 8.0\n// " + std::to_string(i) + "\n";
    get_afresh("key " + std::to_string(i), &small);
  }
  std::int64_t total = 0;
  for (const auto& item : fs::directory_iterator(path())) {
    total += static_cast<std::int64_t>(item.file_size());
  }
  EXPECT_LE(total, 2000);
  EXPECT_EQ(assembler_.runs(), 12);
  get_afresh("key 11", &small);  // the youngest is still there
  EXPECT_EQ(assembler_.runs(), 12);
}

TEST_F(CacheFiles, RemovesTemporaryFilesThatACrashLeft) {
  get_afresh();
  write(path() + "/tmp-1-0-code-x", "half");
  fs::last_write_time(path() + "/tmp-1-0-code-x",
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  ptx_ += "// another\n";
  get_afresh("another");
  EXPECT_FALSE(fs::exists(path() + "/tmp-1-0-code-x"));
}

TEST_F(CacheFiles, UsesNoDiskWhenToldSo) {
  CacheOptions memory_only{.directory = path(), .disk = false};
  get_afresh("scale v1", &memory_only);
  EXPECT_FALSE(fs::exists(path()));
  EXPECT_TRUE(warnings_.empty());
}

}  // namespace
}  // namespace tilewright::test
