// SPDX-License-Identifier: Apache-2.0
// What a plan gets: pinned, the nearest valid record, or the standard configuration.
#include "tilewright/tune.h"
#include "tilewright/tune_record.h"

#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace tilewright::tune {
namespace {

constexpr std::array kThreads{32, 64, 128};
constexpr std::array kEarly{0, 1};
constexpr std::array<KeySpec, 2> kKeys{{{"h"}, {"rows", Match::nearest}}};
constexpr std::array<Knob, 2> kKnobs{{{"threads", kThreads}, {"early", kEarly}}};

Config standard(const DeviceProperties& device, const Key&) {
  return {device.sm_count > 100 ? 128 : 64, 0};
}
bool valid(const DeviceProperties&, const Key& key, const Config& config) {
  return config[0] > 0 && key[0] % config[0] == 0;
}
constexpr Space kSpace{
    .name = "toy", .keys = kKeys, .knobs = kKnobs, .standard = standard, .valid = valid};

DeviceProperties big_device() {
  DeviceProperties device;
  device.name = "Big";
  device.sm_count = 132;
  return device;
}

constexpr std::string_view kText =
    "tilewright tuned 1\n"
    "device Big\n"
    "measured driver 1, commit a\n"
    "toy h=4096 rows=16 : threads=32 early=1 : 2.00 us, standard 2.50 us\n"
    "toy h=4096 rows=1024 : threads=64 early=0 : 8.00 us, standard 8.00 us\n"
    "toy h=4160 rows=1 : threads=128 early=0 : 8.00 us, standard 8.00 us\n";
constexpr ShippedFile kShipped{"tuned/Big.tuned", kText};

/// Of records, one a line.
Library library_of(const std::string& records) {
  const std::string text =
      "tilewright tuned 1\ndevice Big\nmeasured driver 1, commit a\n" + records;
  const ShippedFile file{"tuned/Big.tuned", text};
  return Library({&file, 1}, "");
}

Library shipped_library() { return Library({&kShipped, 1}, ""); }

/// A directory with one file of records.
class UserDirectory {
 public:
  UserDirectory(const std::string& file, const std::string& text) {
    char pattern[] = "/tmp/tilewright_tuned_XXXXXX";
    path_ = ::mkdtemp(pattern);
    file_ = path_ + "/" + file;
    std::ofstream(file_) << text;
  }
  UserDirectory(const UserDirectory&) = delete;
  UserDirectory& operator=(const UserDirectory&) = delete;
  ~UserDirectory() {
    std::remove(file_.c_str());
    ::rmdir(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_, file_;
};

std::string error_of(const Library& library, const Space& space = kSpace) {
  try {
    (void)library.find(space, big_device(), {4096, 2});
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Lookup, TakesTheRecordOfTheNearestRowCount) {
  const Library library = shipped_library();
  const DeviceProperties device = big_device();
  const struct {
    std::int64_t rows;
    int threads;
  } cases[] = {{2, 32}, {16, 32}, {127, 32}, {128, 32}, {129, 64}, {1024, 64}, {8192, 64}};
  for (const auto& each : cases) {  // 128 is as far from 16 as from 1024: the smaller one serves
    const std::optional<Config> found = library.find(kSpace, device, {4096, each.rows});
    ASSERT_TRUE(found.has_value()) << each.rows;
    EXPECT_EQ((*found)[0], each.threads) << each.rows;
  }
}

TEST(Lookup, HasNothingBeyondAFactorOfEight) {
  const Library library = shipped_library();
  for (std::int64_t rows : {1, 8193, 1 << 20})
    EXPECT_EQ(library.find(kSpace, big_device(), {4096, rows}), std::nullopt) << rows;
}

TEST(Lookup, TakesAFactorOfEightOfAnyNumber) {  // log2(40) - log2(5) is above 3 in doubles
  const Library library =
      library_of("toy h=4096 rows=5 : threads=32 early=1 : 2.00 us, standard 2.50 us\n");
  EXPECT_TRUE(library.find(kSpace, big_device(), {4096, 40}).has_value());
  EXPECT_EQ(library.find(kSpace, big_device(), {4096, 41}), std::nullopt);
}

TEST(Lookup, CountsTheDistancesOfAllKeysTogether) {
  static constexpr std::array<KeySpec, 2> kBoth{
      {{"columns", Match::nearest}, {"rows", Match::nearest}}};
  static constexpr Space kWide{
      .name = "wide", .keys = kBoth, .knobs = kKnobs, .standard = standard, .valid = valid};
  const Library library =
      library_of("wide columns=2048 rows=1024 : threads=32 early=1 : 2.00 us, standard 2.50 us\n");
  EXPECT_TRUE(library.find(kWide, big_device(), {4096, 4096}).has_value());
  EXPECT_TRUE(library.find(kWide, big_device(), {256, 1024}).has_value());
  EXPECT_EQ(library.find(kWide, big_device(), {8192, 4096}), std::nullopt);
}

TEST(Lookup, NeedsEqualExactKeys) {
  EXPECT_EQ(shipped_library().find(kSpace, big_device(), {4097, 16}), std::nullopt);
}

TEST(Lookup, PassesOverRecordsThatAreNotValid) {  // 4160 is no multiple of 128
  EXPECT_EQ(shipped_library().find(kSpace, big_device(), {4160, 1}), std::nullopt);
}

TEST(Lookup, HasNothingForOtherDevices) {
  DeviceProperties other = big_device();
  other.name = "Other";
  EXPECT_EQ(shipped_library().find(kSpace, other, {4096, 16}), std::nullopt);
}

TEST(Lookup, ServesZeroRowsOnlyByARecordOfZeroRows) {
  EXPECT_EQ(shipped_library().find(kSpace, big_device(), {4096, 0}), std::nullopt);
}

TEST(Lookup, PrefersTheUsersRecords) {
  const UserDirectory directory(
      "Big.tuned",
      "tilewright tuned 1\ndevice Big\n"
      "toy h=4096 rows=16 : threads=128 early=0 : 1.00 us, standard 2.50 us\n");
  const Library library({&kShipped, 1}, directory.path());
  EXPECT_EQ((*library.find(kSpace, big_device(), {4096, 16}))[0], 128);
  EXPECT_EQ((*library.find(kSpace, big_device(), {4096, 1024}))[0], 64);
}

TEST(Lookup, RefusesADamagedFileOfTheUser) {
  const UserDirectory directory("Big.tuned", "tilewright tuned 1\ndevice Big\ntoy h=4096\n");
  EXPECT_EQ(error_of(Library({}, directory.path())),
            directory.path() +
                "/Big.tuned:3: 'toy h=4096' is not NAME KEY=N ... : KNOB=N ... : US us, standard "
                "US us");
}

TEST(Lookup, RefusesAFileOfAnotherDevice) {
  const UserDirectory directory("Big.tuned", "tilewright tuned 1\ndevice Small\n");
  EXPECT_EQ(
      error_of(Library({}, directory.path())),
      directory.path() + "/Big.tuned: is of the device 'Small', not 'Big'; name it Small.tuned");
}

TEST(Lookup, RefusesKnobsThatTheSpaceDoesNotHave) {
  constexpr ShippedFile kOld{
      "old",
      "tilewright tuned 1\ndevice Big\n"
      "toy h=4096 rows=16 : threads=32 late=1 : 2.00 us, standard 2.50 us\n"};
  EXPECT_EQ(error_of(Library({&kOld, 1}, "")),
            "old:3: the knobs of toy are not those of this version (threads, early); tune again or "
            "remove the line");
}

TEST(Choose, GivesTheStandardConfigurationWithoutARecord) {
  EXPECT_EQ(choose(kSpace, big_device(), {4096, 16}), (Config{128, 0}));
  EXPECT_EQ(choose(kSpace, DeviceProperties{}, {4096, 16}), (Config{64, 0}));
}

TEST(Choose, RefusesWhatIsPinnedForKeysThatItIsNotValidFor) {
  const Pin pin(kSpace, {128, 1});
  EXPECT_EQ(choose(kSpace, big_device(), {4096, 16})[0], 128);
  try {
    (void)choose(kSpace, big_device(), {64, 16});
    FAIL() << "64 is no multiple of 128";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "tune: toy cannot have threads=128 early=1, which is pinned, for h=64 rows=16");
  }
}

TEST(Choose, GivesWhatIsPinnedInnermost) {
  const Pin outer(kSpace, {32, 1});
  {
    const Pin inner(kSpace, {64, 1});
    EXPECT_EQ(choose(kSpace, big_device(), {4096, 16}), (Config{64, 1}));
  }
  EXPECT_EQ(choose(kSpace, big_device(), {4096, 16}), (Config{32, 1}));
}

TEST(Watch, NotesEachProblemOnce) {
  const Watch watch;
  choose(kSpace, big_device(), {4096, 16});
  choose(kSpace, big_device(), {4096, 16});
  choose(kSpace, big_device(), {4096, 17});
  ASSERT_EQ(watch.lookups().size(), 2U);
  EXPECT_EQ(key_text(*watch.lookups()[1].space, watch.lookups()[1].key), "h=4096 rows=17");
}

TEST(Candidates, AreTheValidOnesAndTheStandardFirst) {
  const std::vector<Config> all = candidates(kSpace, DeviceProperties{}, {192, 1});
  std::string texts;
  for (const Config& config : all)
    texts += config_text(kSpace, config) + "; ";
  EXPECT_EQ(texts,
            "threads=64 early=0; threads=32 early=0; threads=32 early=1; threads=64 early=1; ");
}

}  // namespace
}  // namespace tilewright::tune
