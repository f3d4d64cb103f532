// SPDX-License-Identifier: Apache-2.0
// Runs `.case` manifests: a launch, its buffers, and what they must hold afterwards.
#include "tilewright/emulator.h"
#include "tilewright/module.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

namespace tilewright::emu {

namespace {

struct Argument {
  bool buffer = false;
  std::string file, expected, compare = "exact";
  double relative = 0, absolute = 0;
  std::vector<std::byte> scalar;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
};

struct Manifest {
  std::string path;
  Launch launch;
  std::vector<Argument> arguments;

  [[noreturn]] void fail(int line, const std::string& message) const {
    throw Error(ErrorKind::user, path + ":" + std::to_string(line) + ": " + message);
  }
};

template <class T>
std::vector<std::byte> bytes_of(T value) {
  std::vector<std::byte> out(sizeof value);
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

Argument read_argument(const Manifest& m, std::istringstream& in, int line) {
  Argument a;
  std::string kind, text;
  in >> kind >> text;
  if (!in) m.fail(line, "arg needs a kind and a value");
  char* end = nullptr;
  if (kind == "buf") {
    a.buffer = true;
    a.file = text;
    std::string word;
    while (in >> word) {
      if (word == "expect") in >> a.expected;
      if (word == "cmp") {
        in >> a.compare;
        if (a.compare != "exact") in >> a.relative >> a.absolute;
      }
    }
    return a;
  }
  if (kind == "i32") {
    a.scalar = bytes_of(static_cast<std::int32_t>(std::strtoll(text.c_str(), &end, 0)));
  } else if (kind == "i64") {
    a.scalar = bytes_of(static_cast<std::int64_t>(std::strtoll(text.c_str(), &end, 0)));
  } else if (kind == "f32") {
    a.scalar = bytes_of(std::strtof(text.c_str(), &end));
  } else if (kind == "f64") {
    a.scalar = bytes_of(std::strtod(text.c_str(), &end));
  } else {
    m.fail(line, "unknown argument kind '" + kind + "'; use buf, i32, i64, f32 or f64");
  }
  if (end == text.c_str() || *end != '\0') m.fail(line, "'" + text + "' is no " + kind);
  return a;
}

Dim3 read_dim(const Manifest& m, std::istringstream& in, int line) {
  Dim3 d;
  in >> d.x >> d.y >> d.z;
  if (!in) m.fail(line, "expected three numbers");
  return d;
}

Manifest read_manifest(const std::string& path) {
  Manifest m;
  m.path = path;
  std::ifstream file(path);
  if (!file) throw Error(ErrorKind::user, "cannot read the case file " + path);
  std::string text;
  for (int line = 1; std::getline(file, text); ++line) {
    std::istringstream in(text);
    std::string word;
    if (!(in >> word)) continue;
    if (word == "entry") {
      in >> m.launch.entry;
    } else if (word == "grid") {
      m.launch.grid = read_dim(m, in, line);
    } else if (word == "block") {
      m.launch.block = read_dim(m, in, line);
    } else if (word == "cluster") {
      m.launch.cluster = read_dim(m, in, line);
    } else if (word == "smem") {
      in >> m.launch.dynamic_smem_bytes;
    } else if (word == "cooperative") {
      int value = 0;
      in >> value;
      m.launch.cooperative = value != 0;
    } else if (word == "arg") {
      m.arguments.push_back(read_argument(m, in, line));
    } else {
      m.fail(line, "unknown word '" + word + "'");
    }
  }
  if (m.launch.entry.empty()) throw Error(ErrorKind::user, path + ": no entry is named");
  return m;
}

std::vector<std::byte> read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorKind::user, "cannot read " + path);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<std::byte> out(text.size());
  std::memcpy(out.data(), text.data(), text.size());
  return out;
}

double half_value(std::uint16_t h) {
  const int exponent = h >> 10 & 31;
  const int fraction = h & 1023;
  double v = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
             : exponent == 0 ? std::ldexp(fraction, -24)
                             : std::ldexp(1024 + fraction, exponent - 25);
  return (h & 0x8000) != 0 ? -v : v;
}

template <class T>
T load(const std::vector<std::byte>& bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

double element(const std::vector<std::byte>& bytes, std::size_t i, const std::string& type) {
  if (type == "f64") return load<double>(bytes, i);
  if (type == "f16") return half_value(load<std::uint16_t>(bytes, i));
  return static_cast<double>(load<float>(bytes, i));
}

bool close(double got, double want, const Argument& a) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::abs(got - want) <= a.absolute + a.relative * std::abs(want);
}

void note(CaseBuffer& out, std::size_t i, const std::string& got, const std::string& want) {
  if (out.mismatches++ == 0) {
    out.first_difference = "element " + std::to_string(i) + " is " + got + ", not " + want;
  }
}

CaseBuffer compare(const std::vector<std::byte>& got, const std::vector<std::byte>& want,
                   const Argument& a) {
  CaseBuffer out;
  if (a.compare == "exact") {
    out.elements = want.size();
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (got[i] != want[i]) {
        note(out, i, "byte " + std::to_string(static_cast<int>(got[i])),
             std::to_string(static_cast<int>(want[i])));
      }
    }
    return out;
  }
  const std::size_t width = a.compare == "f64" ? 8 : a.compare == "f16" ? 2 : 4;
  out.elements = want.size() / width;
  for (std::size_t i = 0; i < out.elements; ++i) {
    const double g = element(got, i, a.compare), w = element(want, i, a.compare);
    if (!close(g, w, a)) note(out, i, std::to_string(g), std::to_string(w));
  }
  return out;
}

void set_arguments(Manifest& m, Machine& machine, const std::string& folder) {
  const std::vector<ParamSlot> slots = parameters(m.launch.program, m.launch.entry);
  if (slots.size() != m.arguments.size()) {
    throw Error(ErrorKind::user, m.path + ": " + m.launch.entry + " has " +
                                     std::to_string(slots.size()) + " parameters, the case gives " +
                                     std::to_string(m.arguments.size()));
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Argument& a = m.arguments[i];
    if (a.buffer) {
      const std::vector<std::byte> bytes = read_bytes(folder + a.file);
      a.bytes = static_cast<std::int64_t>(bytes.size());
      a.address = machine.allocate(a.bytes, "argument " + std::to_string(i));
      machine.write(a.address, bytes);
      a.scalar = bytes_of(a.address);
    }
    const auto end = static_cast<std::size_t>(slots[i].offset + slots[i].bytes);
    if (static_cast<std::int64_t>(a.scalar.size()) != slots[i].bytes) {
      throw Error(ErrorKind::user, m.path + ": argument " + std::to_string(i) + " has " +
                                       std::to_string(a.scalar.size()) + " bytes, its parameter " +
                                       std::to_string(slots[i].bytes));
    }
    if (m.launch.params.size() < end) m.launch.params.resize(end);
    std::memcpy(m.launch.params.data() + slots[i].offset, a.scalar.data(), a.scalar.size());
  }
}

}  // namespace

CaseResult run_case(const std::string& case_path, std::string_view ptx_text,
                    std::string_view ptx_name, const Options& options) {
  Manifest m = read_manifest(case_path);
  const auto slash = case_path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "" : case_path.substr(0, slash + 1);
  const ptx::Module module = ptx::parse(ptx_text, ptx_name);
  ptx::Target target = module.target;
  if (target.sm == 90) target.suffix = 'a';
  Machine machine(target, {.multiprocessors = 0});
  m.launch.program = machine.load(module);
  set_arguments(m, machine, folder);
  CaseResult result;
  result.report = machine.launch(m.launch, options);
  result.outputs_match = true;
  for (std::size_t i = 0; i < m.arguments.size(); ++i) {
    const Argument& a = m.arguments[i];
    if (a.expected.empty()) continue;
    const std::vector<std::byte> want = read_bytes(folder + a.expected);
    std::vector<std::byte> got(static_cast<std::size_t>(a.bytes));
    if (want.size() != got.size()) {
      throw Error(ErrorKind::user, a.expected + " has " + std::to_string(want.size()) +
                                       " bytes, the buffer " + std::to_string(got.size()));
    }
    machine.read(a.address, got);
    CaseBuffer buffer = compare(got, want, a);
    buffer.arg = static_cast<int>(i);
    result.outputs_match &= buffer.mismatches == 0;
    result.buffers.push_back(std::move(buffer));
  }
  return result;
}

}  // namespace tilewright::emu
