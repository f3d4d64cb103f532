// SPDX-License-Identifier: Apache-2.0
// Bytes of an object and their digest.
#include "tilewright/link_input.h"

#include "runtime/ptx_key.h"

#include <fstream>
#include <iterator>

namespace tilewright {

LinkInput::LinkInput(std::string name, std::vector<std::byte> bytes, SourceLoc at)
    : name_(std::move(name)), bytes_(std::move(bytes)) {
  if (bytes_.empty()) throw Error(ErrorKind::user, "link: " + name_ + " is empty", at);
  const auto* text = reinterpret_cast<const char*>(bytes_.data());
  digest_ = detail::hex(detail::hash_of({text, bytes_.size()}));
}

LinkInput LinkInput::file(const std::string& path, SourceLoc at) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in.is_open() || in.bad()) {
    throw Error(ErrorKind::user, "link: cannot read " + path + "; give the path of an object file",
                at);
  }
  auto bytes = std::as_bytes(std::span(text));
  return {path, {bytes.begin(), bytes.end()}, at};
}

}  // namespace tilewright
