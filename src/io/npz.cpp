// SPDX-License-Identifier: Apache-2.0
// Arrays from and to .npz archives, by libzip.
#include "tilewright/npz.h"

#include "base/file.h"
#include "tilewright/npy.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <set>
#include <utility>
#include <zip.h>

namespace tilewright {
namespace {

constexpr std::string_view kExtension = ".npy";

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, Discard>;
using Member = std::unique_ptr<zip_file_t, Discard>;

Archive open_archive(const std::string& path) {
  const io::Source readable(path);  // reports what cannot be opened in the same words as elsewhere
  int code = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code);
  if (archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string why = zip_error_strerror(&error);
    zip_error_fini(&error);
    io::refuse(path, "is no valid .npz archive: " + why);
  }
  return Archive(archive);
}

std::string member_name(zip_t* archive, zip_uint64_t index) {
  const char* name = zip_get_name(archive, index, 0);
  return name == nullptr ? std::string() : std::string(name);
}

bool has_extension(std::string_view name) { return name.ends_with(kExtension); }

/// The uncompressed bytes of a member; their number must be the one that the directory claims.
std::vector<std::byte> read_member(const std::string& path, zip_t* archive, zip_uint64_t index) {
  const std::string start = "member '" + member_name(archive, index) + "' ";
  zip_stat_t info;
  const Member file(zip_fopen_index(archive, index, 0));
  if (zip_stat_index(archive, index, 0, &info) != 0 || (info.valid & ZIP_STAT_SIZE) == 0 ||
      file == nullptr) {
    io::refuse(path, start + "cannot be read: " + zip_strerror(archive));
  }
  std::vector<std::byte> bytes;
  std::vector<std::byte> chunk(std::size_t{1} << 16);
  while (bytes.size() <= info.size) {
    const zip_int64_t count = zip_fread(file.get(), chunk.data(), chunk.size());
    if (count < 0) {
      io::refuse(path, start + "cannot be read: " + zip_file_strerror(file.get()));
    }
    if (count == 0) break;
    bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + count);
  }
  if (bytes.size() != info.size) {
    io::refuse(path, start + "has another size than the directory claims, " +
                         std::to_string(info.size) + " bytes");
  }
  return bytes;
}

Array read_array(const std::string& path, zip_t* archive, zip_uint64_t index, Type raw) {
  const std::string member = member_name(archive, index);
  const std::vector<std::byte> bytes = read_member(path, archive, index);
  Array array = parse_npy(bytes, path + ": " + member, raw);
  array.name = member.substr(0, member.size() - kExtension.size());
  return array;
}

zip_uint64_t member_count(zip_t* archive) {
  return static_cast<zip_uint64_t>(std::max<zip_int64_t>(0, zip_get_num_entries(archive, 0)));
}

/// The finished archive's bytes, which libzip leaves in `source`.
std::vector<std::byte> contents(const std::string& path, zip_source_t* source) {
  zip_stat_t info;
  if (zip_source_stat(source, &info) != 0 || zip_source_open(source) != 0) {
    io::refuse(path,
               std::string("cannot be made: ") + zip_error_strerror(zip_source_error(source)));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(info.size));
  const zip_int64_t count = zip_source_read(source, bytes.data(), bytes.size());
  zip_source_close(source);
  if (count != static_cast<zip_int64_t>(bytes.size())) io::refuse(path, "cannot be made");
  return bytes;
}

void add_member(const std::string& path, zip_t* archive, const Array& array,
                std::span<const std::byte> bytes, Compression compression) {
  const std::string member = array.name + std::string(kExtension);
  zip_source_t* data = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
  const zip_int64_t index =
      data == nullptr ? -1 : zip_file_add(archive, member.c_str(), data, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(data);
    io::refuse(path, "cannot add '" + member + "': " + zip_strerror(archive));
  }
  const auto at = static_cast<zip_uint64_t>(index);
  const bool deflate = compression == Compression::deflate;
  zip_set_file_compression(archive, at, deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
  zip_file_set_dostime(archive, at, 0, 0x21, 0);  // 1 January 1980: no clock in the output
}

}  // namespace

std::vector<Array> read_npz(const std::string& path, Type raw) {
  const Archive archive = open_archive(path);
  std::vector<Array> arrays;
  std::set<std::string> names;
  for (zip_uint64_t i = 0; i < member_count(archive.get()); ++i) {
    const std::string member = member_name(archive.get(), i);
    if (!has_extension(member)) {
      io::refuse(path, "member '" + member + "' is no .npy file");
    }
    arrays.push_back(read_array(path, archive.get(), i, raw));
    if (!names.insert(arrays.back().name).second) {
      io::refuse(path, "has two arrays named '" + arrays.back().name + "'");
    }
  }
  return arrays;
}

Array read_npz(const std::string& path, const std::string& name, Type raw) {
  const Archive archive = open_archive(path);
  std::string names;
  for (zip_uint64_t i = 0; i < member_count(archive.get()); ++i) {
    const std::string member = member_name(archive.get(), i);
    if (member == name + std::string(kExtension)) {
      return read_array(path, archive.get(), i, raw);
    }
    if (!has_extension(member)) continue;
    names += (names.empty() ? "" : ", ") + member.substr(0, member.size() - kExtension.size());
  }
  io::refuse(path, "has no array named '" + name + "'; it has " + (names.empty() ? "none" : names));
}

void write_npz(const std::string& path, std::span<const Array> arrays, Compression compression) {
  if (arrays.empty()) io::refuse(path, "there are no arrays to write");
  std::vector<std::vector<std::byte>> files;
  for (const Array& array : arrays)
    files.push_back(npy_bytes(array));
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(nullptr, 0, 0, &error);
  zip_t* opened = source == nullptr ? nullptr : zip_open_from_source(source, ZIP_TRUNCATE, &error);
  const std::string why = zip_error_strerror(&error);
  zip_error_fini(&error);
  if (opened == nullptr) {
    zip_source_free(source);
    io::refuse(path, "cannot be made: " + why);
  }
  Archive archive(opened);
  zip_source_keep(source);
  const std::unique_ptr<zip_source_t, decltype(&zip_source_free)> kept(source, &zip_source_free);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    add_member(path, archive.get(), arrays[i], files[i], compression);
  }
  if (zip_close(archive.get()) != 0) {
    io::refuse(path, std::string("cannot be made: ") + zip_strerror(archive.get()));
  }
  [[maybe_unused]] zip_t* const closed = archive.release();
  const std::vector<std::byte> bytes = contents(path, source);
  const std::array chunks = {std::span<const std::byte>(bytes)};
  io::write_file(path, chunks);
}

}  // namespace tilewright
