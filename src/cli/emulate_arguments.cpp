// SPDX-License-Identifier: Apache-2.0
// Reading kernel arguments and packing them.
#include "cli/emulate_arguments.h"

#include "cli/inputs.h"
#include "cli/text.h"
#include "tilewright/view.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numeric>

namespace tilewright::cli {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 32;

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Error(ErrorKind::user,
              "--arg " + text + ": " + why +
                  "; write @FILE, out:TYPE:N[=FILE], iota:TYPE:N or TYPE:NUMBER such as i32:5");
}

/// PTX names, and i32 for s32.
Type type_of(const std::string& text, std::string word) {
  if (!word.empty() && word[0] == 'i') word[0] = 's';
  const std::optional<Type> type = type_from_name(word);
  const int width = type ? storage_bits(*type) : 0;
  if (!type || width < 8 || width > 64 || is_packed(*type)) {
    refuse(text, "'" + word + "' is no scalar type");
  }
  return *type;
}

template <typename Number>
std::optional<Number> read_number(std::string_view text) {
  Number number{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// "TYPE:N" after "out:" or "iota:" as an array of zeros.
Array zeros(const std::string& text, const std::string& rest) {
  const std::size_t colon = rest.find(':');
  if (colon == std::string::npos) refuse(text, "the number of elements is missing");
  const std::optional<std::int64_t> count = read_number<std::int64_t>(rest.substr(colon + 1));
  if (!count || *count < 0 || *count > kMostElements) {
    refuse(text, "'" + rest.substr(colon + 1) + "' is no number of elements up to 2^32");
  }
  return make_array("", type_of(text, rest.substr(0, colon)), {*count});
}

void fill_iota(Array& array) {
  const std::int64_t count = array.shape[0];
  const int width = storage_bits(array.type);
  for (std::int64_t i = 0; i < count; ++i) {
    // Integers wrap: iota of u8 starts again after 255.
    const auto whole = static_cast<std::uint64_t>(i);
    const std::uint64_t raw =
        is_float(array.type) ? encode(array.type, static_cast<double>(i)) : whole;
    std::memcpy(array.bytes.data() + i * (width / 8), &raw, static_cast<std::size_t>(width / 8));
  }
}

std::vector<std::byte> scalar_bytes(const std::string& text, Type type, std::string_view digits) {
  std::uint64_t raw = 0;
  if (const std::optional<std::int64_t> whole = read_number<std::int64_t>(digits);
      whole && !is_float(type)) {
    // Both readings of a width are taken: i32:4294967295 is -1, u32:-1 is 4294967295.
    const int width = storage_bits(type);
    if (width < 64 &&
        (*whole < -(std::int64_t{1} << (width - 1)) || *whole >= std::int64_t{1} << width)) {
      refuse(text, std::string(digits) + " does not fit " + std::string(name(type)));
    }
    raw = static_cast<std::uint64_t>(*whole);
  } else if (const std::optional<std::uint64_t> large = read_number<std::uint64_t>(digits);
             large && storage_bits(type) == 64 && !is_float(type)) {
    raw = *large;
  } else if (const std::optional<double> real = read_number<double>(digits);
             real && is_float(type)) {
    raw = encode(type, *real);
  } else {
    refuse(text, "'" + std::string(digits) + "' is no value of type " + std::string(name(type)));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(storage_bits(type) / 8));
  std::memcpy(bytes.data(), &raw, bytes.size());
  return bytes;
}

}  // namespace

KernelArgument parse_kernel_argument(const std::string& text) {
  KernelArgument argument{text, {}, {}, false, {}};
  if (text.starts_with("@")) {
    std::vector<Array> arrays = read_arrays(text.substr(1));
    if (arrays.size() != 1) {
      refuse(text,
             "the file has " + std::to_string(arrays.size()) + " tensors; name one after '#'");
    }
    argument.buffer = std::move(arrays.front());
  } else if (text.starts_with("out:")) {
    const std::size_t equals = text.find('=');
    argument.buffer =
        zeros(text, text.substr(4, equals == std::string::npos ? equals : equals - 4));
    argument.printed = true;
    if (equals != std::string::npos) argument.save = text.substr(equals + 1);
  } else if (text.starts_with("iota:")) {
    argument.buffer = zeros(text, text.substr(5));
    fill_iota(*argument.buffer);
  } else {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) refuse(text, "its form is not known");
    argument.scalar = scalar_bytes(text, type_of(text, text.substr(0, colon)),
                                   std::string_view(text).substr(colon + 1));
  }
  return argument;
}

PlacedArguments place(emu::Machine& machine, const std::vector<emu::ParamSlot>& slots,
                      const std::vector<KernelArgument>& arguments, const std::string& entry) {
  if (arguments.size() != slots.size()) {
    std::string types;
    for (const emu::ParamSlot& slot : slots) {
      types += (types.empty() ? "" : ", ") + std::string(name(slot.type));
      if (slot.bytes != storage_bits(slot.type) / 8)
        types += "[" + std::to_string(slot.bytes) + "]";
    }
    throw Error(ErrorKind::user, entry + " takes " +
                                     plural(static_cast<std::int64_t>(slots.size()), "parameter") +
                                     " (" + types + ") but " + std::to_string(arguments.size()) +
                                     " are given; repeat --arg, one a parameter");
  }
  PlacedArguments placed;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const KernelArgument& argument = arguments[i];
    std::uint64_t address = 0;
    std::vector<std::byte> bytes = argument.scalar;
    if (argument.buffer) {
      address = machine.allocate(static_cast<std::int64_t>(argument.buffer->bytes.size()),
                                 "argument " + std::to_string(i));
      machine.write(address, argument.buffer->bytes);
      bytes.resize(sizeof address);
      std::memcpy(bytes.data(), &address, sizeof address);
    }
    if (static_cast<std::int64_t>(bytes.size()) != slots[i].bytes) {
      throw Error(ErrorKind::user, "--arg " + argument.text + ": parameter " + std::to_string(i) +
                                       " of " + entry + " is " + std::string(name(slots[i].type)) +
                                       " of " + std::to_string(slots[i].bytes) +
                                       " bytes, the argument has " + std::to_string(bytes.size()));
    }
    const auto end = static_cast<std::size_t>(slots[i].offset + slots[i].bytes);
    placed.params.resize(std::max(placed.params.size(), end));
    std::copy(bytes.begin(), bytes.end(),
              placed.params.begin() + static_cast<std::ptrdiff_t>(slots[i].offset));
    placed.addresses.push_back(address);
  }
  return placed;
}

std::string preview(const Array& array, std::size_t most) {
  const std::vector<double> values = to_doubles(array);
  const std::size_t shown = std::min(values.size(), most);
  std::string text = std::string(name(array.type)) + shape_text(array.shape) + " =";
  for (std::size_t i = 0; i < shown; ++i)
    text += " " + number_text(values[i]);
  return shown < values.size() ? text + " ..." : text;
}

}  // namespace tilewright::cli
