// SPDX-License-Identifier: Apache-2.0
// Winners of searches as text files, one for each kind of device, and where plans find them.
#pragma once

#include "tilewright/tune.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::tune {

/// A winner, as its file has it.
struct Record {
  using Numbers = std::vector<std::pair<std::string, std::int64_t>>;
  std::string space;
  Numbers keys, knobs;
  double us = 0;           ///< a launch with it, as measured
  double standard_us = 0;  ///< a launch with the standard configuration, in the same rounds
  std::string measured;    ///< with what: "driver CUDA 13.0, nvptxcompiler 13.0, commit 59810c8"
  std::string from;        ///< the file and line that it was read from, for messages
};

/// The records of one kind of device. As text, lines of `NAME KEY=N ... : KNOB=N ... : US us,
/// standard US us` after the lines "tilewright tuned 1", "device NAME" and "measured ...", which
/// tells of the records below it. Lines that are empty or begin with '#' say nothing.
struct RecordFile {
  std::string device;
  std::vector<Record> records;
};
/// Throws Error(user) "FILE:LINE: what" for anything that is not such a file.
RecordFile parse_records(std::string_view text, std::string_view file,
                         SourceLoc at = SourceLoc::here());
std::string print_records(const RecordFile& file);

/// Puts a winner into the file, in place of the one for the same space and keys.
void put_record(RecordFile& file, Record record);
Record make_record(const Space& space, const Key& key, const Config& config);
/// "NVIDIA_H200.tuned": what the file of a device is called.
std::string record_file_name(std::string_view device);

/// The files that the library was built with, from the folder tuned/.
struct ShippedFile {
  std::string_view name, text;
};
std::span<const ShippedFile> shipped_records();

/// Records of all devices: those shipped, and in their place those of a directory's files.
class Library {
 public:
  /// Without a directory (empty) the shipped ones alone. A file that is not there says nothing.
  Library(std::span<const ShippedFile> shipped, std::string directory);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  /// The one that choose() reads: shipped_records(), and the directory $TILEWRIGHT_TUNED.
  static const Library& global();

  /// The nearest record that is valid for the key. Throws Error(user) for damaged files and records
  /// that name other keys or knobs than the space.
  std::optional<Config> find(const Space& space, const DeviceProperties& device,
                             const Key& key) const;

 private:
  struct State;
  State* state_;
};

}  // namespace tilewright::tune
