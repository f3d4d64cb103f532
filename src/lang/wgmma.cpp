// SPDX-License-Identifier: Apache-2.0
// wgmma: matrix descriptors, and when accumulators may be read.
#include "tilewright/wgmma.h"

#include "lang/address.h"

#include <algorithm>
#include <string>

namespace tilewright {

using lang::Tracer;

struct AccumulatorAccess {
  static const std::vector<std::uint32_t>& words(const Accumulator& sums, SourceLoc at) {
    return sums.registers_.words(at);
  }
  static void begin(Accumulator& sums, Tracer& tracer) {
    sums.group_ = tracer.wgmma_groups + 1;
    sums.regions_ = tracer.open_regions();
  }
};

namespace {

constexpr int kRows = 64;         // of one instruction
constexpr int kStepBytes = 32;    // of one instruction along k
constexpr int kThreads = 128;     // of a warpgroup
constexpr int kRegistersOfA = 4;  // of a thread, for 64 rows and one step along k
constexpr std::int64_t kStartMask = 0x3fff;

bool is_fp8(Type type) { return type == e4m3 || type == e5m2; }
bool is_int8(Type type) { return type == s8 || type == u8; }

std::string size_text(int rows, int columns, Type type) {
  return std::to_string(rows) + " x " + std::to_string(columns) + " of " + std::string(name(type));
}

bool sums_to(Type sum, Type a) {
  if (is_int8(a)) return sum == s32;
  return sum == f32 || (sum == f16 && (a == f16 || is_fp8(a)));
}

bool multiplies(Type a, Type b) {
  return a == b || (is_fp8(a) && is_fp8(b)) || (is_int8(a) && is_int8(b));
}

/// The shape of sums (+)= a b^T.
struct Problem {
  int m, n, k;
  Type a, b, sum;
};

void require_product(const Problem& p, const Problem& of_b, SourceLoc at) {
  int step = wgmma_k(p.a, at);
  bool fits = p.n == of_b.n && p.k == of_b.k && p.k % step == 0 && p.k > 0;
  if (fits && multiplies(p.a, p.b) && sums_to(p.sum, p.a)) return;
  throw Error(ErrorKind::user,
              "wgmma: sums of " + size_text(p.m, p.n, p.sum) + " from A of " +
                  size_text(p.m, p.k, p.a) + " and B of " + size_text(of_b.n, of_b.k, p.b) +
                  "; A is m x k, B is n x k, k a multiple of " + std::to_string(step) +
                  ", sums of " +
                  (is_int8(p.a)        ? "s32"
                   : sums_to(f16, p.a) ? "f32 or f16"
                                       : "f32"),
              at);
}

void require_major(const MatrixTile& tile, SourceLoc at) {
  if (!tile.is_transposed() || bits(tile.type()) == 16) return;
  throw Error(ErrorKind::user,
              "wgmma: a transposed operand of " + std::string(name(tile.type())) +
                  "; only 16-bit types may have neighbours along m or n, store the others along k",
              at);
}

/// The descriptor's fields and steps (PTX ISA, matrix descriptor and the canonical layouts), in
/// bytes.
struct OperandLayout {
  int leading, stride;  // offsets between core matrices
  int panel_bytes, row_bytes;
  bool transposed;
  int swizzle;

  explicit OperandLayout(const MatrixTile& tile)
      : leading(16),
        stride(8 * swizzle_bytes(tile.swizzle())),
        panel_bytes(tile.panel_stride_elems() * bytes(tile.type())),
        row_bytes(swizzle_bytes(tile.swizzle())),
        transposed(tile.is_transposed()),
        swizzle(static_cast<int>(tile.swizzle())) {
    bool plain = tile.swizzle() == TensorSwizzle::none;
    if (transposed && plain) {
      stride = panel_bytes;
      leading = 8 * row_bytes;
    } else if (transposed || plain) {
      leading = panel_bytes;
    }
  }

  /// From the tile's start to (row, byte of the row).
  int offset(int row, int byte) const {
    return row * row_bytes + byte / row_bytes * panel_bytes + byte % row_bytes;
  }
  /// To row `mn` of the operand and column `k` of elements of `size` bytes.
  int at(int mn, int k, int size) const {
    return transposed ? offset(k, mn * size) : offset(mn, k * size);
  }
  std::int64_t upper_word() const {
    constexpr int kModes[] = {0, 3, 2, 1};  // none, 32, 64 and 128 bytes
    return stride >> 4 | std::int64_t{kModes[swizzle]} << 30;
  }
};

/// Descriptors of an operand's pieces: one register for what changes.
class Descriptors {
 public:
  Descriptors(Tracer& tracer, const MatrixTile& tile, SourceLoc at)
      : tracer_(tracer),
        layout_(tile),
        size_(bytes(tile.type())),
        at_(at),
        lower_((Arg(Arg(Arg(tile.memory().base(), at) >> 4, at) & kStartMask, at)) |
               (std::int64_t{layout_.leading >> 4} << 16)),
        upper_(ValueAccess::constant(u32, layout_.upper_word())) {}

  ptx::Operand at(int mn, int k) const {
    Value lower = Arg(lower_, at_) + (layout_.at(mn, k, size_) >> 4);
    ptx::RegId descriptor = tracer_.new_reg(b64);
    tracer_.emit("mov.b64",
                 {ptx::reg(descriptor), ptx::vector({ptx::reg(tracer_.reg_of(lower, at_)),
                                                     ptx::reg(tracer_.reg_of(upper_, at_))})},
                 at_);
    return ptx::reg(descriptor);
  }

 private:
  Tracer& tracer_;
  OperandLayout layout_;
  int size_;
  SourceLoc at_;
  Value lower_, upper_;
};

ptx::Operand words_operand(const std::vector<std::uint32_t>& words, int begin, int count) {
  std::vector<ptx::Operand> elems;
  elems.reserve(static_cast<std::size_t>(count));
  for (int i = begin; i < begin + count; ++i)
    elems.push_back(ptx::reg(words[static_cast<std::size_t>(i)]));
  return ptx::vector(std::move(elems));
}

enum class PlaceOfA : std::uint8_t { shared, shared_transposed, registers };

/// Emits the instructions of a product; `a(block of 64 rows, step along k)` is A's operand.
template <class OperandOfA>
void multiply(Accumulator& sums, const Problem& p, PlaceOfA place, const MatrixTile& b,
              const Arg& accumulate, OperandOfA&& a) {
  SourceLoc at = accumulate.at();
  Tracer& tracer = Tracer::current("wgmma", at);
  if (!tracer.wgmma_fenced) {
    throw Error(ErrorKind::user,
                "wgmma: no wgmma_fence() lies before it; call it before the first wgmma, and after "
                "writing registers that one uses",
                at);
  }
  int step = wgmma_k(p.a, at);
  Value first = accumulate.as(pred, "wgmma");
  ptx::RegId adds = tracer.reg_of(first, at);
  ptx::RegId always = tracer.reg_of(ValueAccess::constant(pred, 1), at);
  Descriptors of_b(tracer, b, at);
  auto text = [](Type type) { return "." + std::string(name(type)); };
  std::string op = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(p.n) + "k" +
                   std::to_string(step) + text(p.sum) + text(p.a) + text(p.b);
  const std::vector<std::uint32_t>& words = AccumulatorAccess::words(sums, at);
  int count = static_cast<int>(words.size()) * kRows / p.m;
  for (int k = 0; k < p.k; k += step) {
    ptx::Operand operand_b = of_b.at(0, k);
    for (int block = 0; block < p.m / kRows; ++block) {
      std::vector<ptx::Operand> operands{words_operand(words, block * count, count),
                                         a(block, k / step), operand_b,
                                         ptx::reg(k == 0 ? adds : always)};
      if (!is_int8(p.a)) operands.insert(operands.end(), {ptx::imm(1), ptx::imm(1)});
      if (bits(p.a) == 16) {
        if (place != PlaceOfA::registers)
          operands.push_back(ptx::imm(place == PlaceOfA::shared_transposed ? 1 : 0));
        operands.push_back(ptx::imm(b.is_transposed() ? 1 : 0));
      }
      tracer.emit(op, std::move(operands), at);
    }
  }
  AccumulatorAccess::begin(sums, tracer);
}

}  // namespace

int wgmma_k(Type type, SourceLoc at) {
  if (type == f16 || type == bf16 || type == tf32 || is_fp8(type) || is_int8(type))
    return kStepBytes / bytes(type);
  throw Error(ErrorKind::user,
              "wgmma: not defined for " + std::string(name(type)) +
                  "; it takes f16, bf16, tf32, e4m3, e5m2, s8 and u8",
              at);
}

Layout wgmma_layout_a(Type type, SourceLoc at) {
  int k = wgmma_k(type, at);
  int pack = 4 / bytes(type);
  return Layout(Shape{Shape{Int(4), Int(8), Int(4)}, Shape{Int(pack), Int(2), Int(2)}},
                Stride{Stride{Int(kRows * pack), Int(1), Int(16)},
                       Stride{Int(kRows), Int(8), Int(kRows * k / 2)}});
}

Layout wgmma_layout_c(int n) {
  return Layout(
      Shape{Shape{Int(4), Int(8), Int(4)}, Shape{Int(2), Int(2), Int(n / 8)}},
      Stride{Stride{Int(128), Int(1), Int(16)}, Stride{Int(kRows), Int(8), Int(8 * kRows)}});
}

namespace {

int accumulator_size(Type type, int m, int n, SourceLoc at) {
  bool columns = n >= 8 && n <= 256 && n % 8 == 0 && (type != s32 || n <= 32 || n % 16 == 0);
  if ((type == f32 || type == f16 || type == s32) && m > 0 && m % kRows == 0 && columns)
    return m * n / kThreads;
  throw Error(ErrorKind::user,
              "Accumulator: " + size_text(m, n, type) +
                  "; it takes f32, f16 or s32, m a multiple of 64, n of 8 up to 256 (s32: of 16 "
                  "from 32 on)",
              at);
}

}  // namespace

Accumulator::Accumulator(Type type, int m, int n, SourceLoc at)
    : registers_(Fragment::undefined(type, accumulator_size(type, m, n, at), at)), m_(m), n_(n) {}

namespace {

void require_waited(const Tracer& tracer, int group, const std::vector<std::uint32_t>& regions,
                    const char* use, SourceLoc at) {
  if (group == 0 || tracer.wgmma_waited(group, regions)) return;
  throw Error(ErrorKind::user,
              std::string("Accumulator: ") + use +
                  " while a wgmma may still be adding to it; call wgmma_commit() "
                  "and wgmma_wait() first, on every path to here",
              at);
}

}  // namespace

Fragment Accumulator::read(SourceLoc at) const {
  Tracer& tracer = Tracer::current("Accumulator", at);
  if (group_ == 0 && !filled_) {
    throw Error(ErrorKind::user,
                "Accumulator: read before any wgmma has written it; begin with "
                "wgmma(sums, a, b, false), or with fill()",
                at);
  }
  require_waited(tracer, group_, regions_, "read", at);
  return registers_;
}

void Accumulator::fill(const Arg& value) {
  Tracer& tracer = Tracer::current("Accumulator", value.at());
  require_waited(tracer, group_, regions_, "filled", value.at());
  registers_.fill(value);
  filled_ = true;
  tracer.wgmma_fenced = false;
}

void wgmma_fence(SourceLoc at) {
  Tracer& tracer = Tracer::current("wgmma_fence", at);
  tracer.require_converged("wgmma_fence", Uniformity::warp, at);
  tracer.emit("wgmma.fence.sync.aligned", {}, at);
  tracer.wgmma_fenced = true;
}

void wgmma_commit(SourceLoc at) {
  Tracer& tracer = Tracer::current("wgmma_commit", at);
  tracer.require_converged("wgmma_commit", Uniformity::warp, at);
  tracer.emit("wgmma.commit_group.sync.aligned", {}, at);
  ++tracer.wgmma_groups;
}

void wgmma_wait(int pending, SourceLoc at) {
  Tracer& tracer = Tracer::current("wgmma_wait", at);
  tracer.require_converged("wgmma_wait", Uniformity::warp, at);
  if (pending < 0 || pending > 7) {
    throw Error(ErrorKind::user,
                "wgmma_wait: " + std::to_string(pending) +
                    " pending groups; it takes 0 (all are done) to 7",
                at);
  }
  tracer.emit("wgmma.wait_group.sync.aligned", {ptx::imm(pending)}, at);
  tracer.note_wgmma_wait(pending);
}

void wgmma(Accumulator& sums, const MatrixTile& a, const MatrixTile& b, const Arg& accumulate) {
  SourceLoc at = accumulate.at();
  Tracer& tracer = Tracer::current("wgmma", at);
  tracer.require_converged("wgmma", Uniformity::warp, at);
  Problem p{sums.m(), sums.n(), a.columns(), a.type(), b.type(), sums.type()};
  if (a.rows() != sums.m()) {
    throw Error(ErrorKind::user,
                "wgmma: A has " + std::to_string(a.rows()) + " rows and the sums " +
                    std::to_string(sums.m()) + "; give each warpgroup its part of A",
                at);
  }
  require_product(p, {0, b.rows(), b.columns(), a.type(), b.type(), sums.type()}, at);
  require_major(a, at);
  require_major(b, at);
  Descriptors of_a(tracer, a, at);
  int step = wgmma_k(a.type(), at);
  PlaceOfA place = a.is_transposed() ? PlaceOfA::shared_transposed : PlaceOfA::shared;
  multiply(sums, p, place, b, accumulate,
           [&](int block, int k) { return of_a.at(block * kRows, k * step); });
}

void wgmma(Accumulator& sums, const Fragment& a, const MatrixTile& b, const Arg& accumulate) {
  SourceLoc at = accumulate.at();
  Tracer& tracer = Tracer::current("wgmma", at);
  tracer.require_converged("wgmma", Uniformity::warp, at);
  Problem p{sums.m(), sums.n(), b.columns(), a.type(), b.type(), sums.type()};
  require_product(p, {0, b.rows(), b.columns(), a.type(), b.type(), sums.type()}, at);
  require_major(b, at);
  if (a.size() != p.m * p.k / kThreads) {
    throw Error(ErrorKind::user,
                "wgmma: A has " + std::to_string(a.size()) + " elements a thread; " +
                    size_text(p.m, p.k, p.a) + " are " + std::to_string(p.m * p.k / kThreads),
                at);
  }
  int steps = p.k / wgmma_k(a.type(), at);
  multiply(sums, p, PlaceOfA::registers, b, accumulate, [&](int block, int k) {
    return words_operand(a.words(at), (block * steps + k) * kRegistersOfA, kRegistersOfA);
  });
}

}  // namespace tilewright
