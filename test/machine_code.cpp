// SPDX-License-Identifier: Apache-2.0
// The ELF file of a cubin.
#include "machine_code.h"

#include <cstdint>
#include <cstring>

namespace tilewright::test {

std::vector<unsigned> opcodes_in(std::span<const std::byte> cubin) {
  auto read = [&]<class T>(std::size_t at, T) {
    T value{};
    std::memcpy(&value, cubin.subspan(at, sizeof value).data(), sizeof value);
    return value;
  };
  auto opcode = [&](std::size_t at) { return read(at, std::uint16_t{}) & 0xfffu; };
  // ELF64: e_shoff, e_shnum, e_shstrndx; a section header of 64 bytes.
  auto headers = read(40, std::uint64_t{});
  auto header = [&](std::size_t i) { return headers + 64 * i; };
  auto names = read(header(read(62, std::uint16_t{})) + 24, std::uint64_t{});
  std::vector<unsigned> opcodes;
  for (std::size_t i = 0; i < read(60, std::uint16_t{}); ++i) {
    std::size_t name = names + read(header(i), std::uint32_t{});
    if (std::memcmp(cubin.subspan(name, 6).data(), ".text.", 6) != 0) continue;
    auto begin = read(header(i) + 24, std::uint64_t{});
    auto end = begin + read(header(i) + 32, std::uint64_t{});
    constexpr unsigned kNop = 0x918;
    while (end > begin && opcode(end - 16) == kNop)
      end -= 16;
    for (; begin < end; begin += 16)
      opcodes.push_back(opcode(begin));
  }
  return opcodes;
}

}  // namespace tilewright::test
