// SPDX-License-Identifier: Apache-2.0
// mma.sync with its fragments' layouts, ldmatrix and stmatrix.
#include "tilewright/mma.h"

#include "lang/address.h"

#include <algorithm>
#include <string>
#include <vector>

namespace tilewright {
namespace {

using lang::Tracer;

ptx::Operand words_operand(const Fragment& fragment, SourceLoc at) {
  std::vector<ptx::Operand> elems;
  for (std::uint32_t word : fragment.words(at))
    elems.push_back(ptx::reg(word));
  return ptx::vector(std::move(elems));
}

/// Elements in a register: neighbours along k.
int pack(Type type) { return std::max(1, 32 / bits(type)); }

bool sums_to(Type sum, Type type) {
  if (type == s8 || type == u8) return sum == s32;
  if (type == f64) return sum == f64;
  return sum == f32 || (type == f16 && sum == f16);
}

/// The shape whose fragments have these sizes: of f64's the one that A tells, else the only one.
MmaShape shape_of(Type type, const Fragment& a, SourceLoc at) {
  if (type != f64) return mma_shape(type, at);
  if (a.size() == 1) return {8, 8, 4};
  return {16, 8, a.size() == 2 ? 4 : a.size() == 4 ? 8 : 16};
}

MmaShape require_fragments(const Fragment& c, const Fragment& a, const Fragment& b, SourceLoc at) {
  MmaShape shape = shape_of(a.type(), a, at);
  int a_size = shape.m * shape.k / 32;
  int b_size = shape.n * shape.k / 32;
  int c_size = shape.m * shape.n / 32;
  bool sizes = a.size() == a_size && b.size() == b_size && c.size() == c_size;
  if (sizes && a.type() == b.type() && sums_to(c.type(), a.type())) return shape;
  auto text = [](const Fragment& f) {
    return std::to_string(f.size()) + " " + std::string(name(f.type()));
  };
  throw Error(ErrorKind::user,
              "mma: A, B and C hold " + text(a) + ", " + text(b) + " and " + text(c) +
                  "; for A of " + std::string(name(a.type())) + " they hold " +
                  std::to_string(a_size) + ", " + std::to_string(b_size) + " and " +
                  std::to_string(c_size) + ", A and B of one type, C of " +
                  (sums_to(s32, a.type())   ? "s32"
                   : sums_to(f64, a.type()) ? "f64"
                   : a.type() == f16        ? "f32 or f16"
                                            : "f32"),
              at);
}

/// `narrow` says that the instruction moves whole elements of 16 bits, not bytes.
void require_rows(const char* what, const Element& row, int matrices, bool narrow, SourceLoc at) {
  Type type = row.tensor().type();
  bool count = matrices == 1 || matrices == 2 || matrices == 4;
  bool shared = row.tensor().space() == MemorySpace::shared;
  bool elements = narrow ? bits(type) == 16 : bits(type) >= 8 && bits(type) <= 32;
  if (count && shared && elements) {
    if (lang::known_alignment(row) % 16 == 0) return;
    throw Error(ErrorKind::user,
                std::string(what) + ": the row is known to be aligned to " +
                    std::to_string(lang::known_alignment(row)) +
                    " bytes; it must be to 16: pad or swizzle by whole rows of 8 elements",
                at);
  }
  throw Error(ErrorKind::user,
              std::string(what) + ": " + std::to_string(matrices) + " matrices of " +
                  std::string(name(type)) + " in " + lang::space_word(row.tensor().space()) +
                  " memory; it takes 1, 2 or 4 of elements of " +
                  (narrow ? "16 bits" : "8 to 32 bits") + " in shared memory",
              at);
}

std::string matrix_op(const char* stem, int matrices, Transposed transposed) {
  return std::string(stem) + ".sync.aligned.m8n8.x" + std::to_string(matrices) +
         (transposed == Transposed::yes ? ".trans" : "") + ".shared.b16";
}

}  // namespace

MmaShape mma_shape(Type type, SourceLoc at) {
  if (type == f16 || type == bf16) return {16, 8, 16};
  if (type == tf32) return {16, 8, 8};
  if (type == s8 || type == u8 || type == e4m3 || type == e5m2) return {16, 8, 32};
  if (type == f64) return {16, 8, 16};
  throw Error(ErrorKind::user,
              "mma: not defined for " + std::string(name(type)) +
                  "; it takes f16, bf16, tf32, s8, u8, e4m3, e5m2 and f64",
              at);
}

namespace {

void require_shape(Type type, MmaShape shape, SourceLoc at) {
  bool usual = shape == mma_shape(type, at);
  bool narrow = shape.n == 8 && ((shape.m == 16 && (shape.k == 8 || shape.k == 4)) ||
                                 (shape.m == 8 && shape.k == 4));
  if (usual || (type == f64 && narrow)) return;
  throw Error(ErrorKind::user,
              "mma: no shape m" + std::to_string(shape.m) + "n" + std::to_string(shape.n) + "k" +
                  std::to_string(shape.k) + " for " + std::string(name(type)) + "; see mma_shape()",
              at);
}

}  // namespace

Layout mma_layout_a(Type type, MmaShape shape, SourceLoc at) {
  require_shape(type, shape, at);
  int p = pack(type);
  return Layout(
      Shape{Shape{Int(4), Int(8)}, Shape{Int(p), Int(shape.m / 8), Int(shape.k / (4 * p))}},
      Stride{Stride{Int(shape.m * p), Int(1)}, Stride{Int(shape.m), Int(8), Int(4 * p * shape.m)}});
}

Layout mma_layout_b(Type type, MmaShape shape, SourceLoc at) {
  require_shape(type, shape, at);
  int p = pack(type);
  return Layout(Shape{Shape{Int(4), Int(8)}, Shape{Int(p), Int(shape.k / (4 * p))}},
                Stride{Stride{Int(8 * p), Int(1)}, Stride{Int(8), Int(32 * p)}});
}

Layout mma_layout_c(MmaShape shape) {
  return Layout(Shape{Shape{Int(4), Int(8)}, Shape{Int(2), Int(shape.m / 8)}},
                Stride{Stride{Int(2 * shape.m), Int(1)}, Stride{Int(shape.m), Int(8)}});
}

void mma(const Fragment& c, const Fragment& a, const Fragment& b, SourceLoc at) {
  Tracer& tracer = Tracer::current("mma", at);
  tracer.require_converged("mma", Uniformity::warp, at);
  MmaShape shape = require_fragments(c, a, b, at);
  std::string sum = "." + std::string(name(c.type()));
  std::string factor = "." + std::string(name(a.type()));
  std::string op = "mma.sync.aligned.m" + std::to_string(shape.m) + "n8k" +
                   std::to_string(shape.k) + ".row.col" + sum + factor + factor + sum;
  ptx::Operand sums = words_operand(c, at);
  tracer.emit(op, {sums, words_operand(a, at), words_operand(b, at), sums}, at);
}

Fragment ldmatrix(const Element& row, int matrices, Transposed transposed, SourceLoc at) {
  Tracer& tracer = Tracer::current("ldmatrix", at);
  tracer.require_converged("ldmatrix", Uniformity::warp, at);
  require_rows("ldmatrix", row, matrices, transposed == Transposed::yes, at);
  ptx::Operand address = lang::address_operand(row, at);
  Type type = row.tensor().type();
  Fragment fragment = Fragment::undefined(type, matrices * 4 / bytes(type), at);
  tracer.emit(matrix_op("ldmatrix", matrices, transposed), {words_operand(fragment, at), address},
              at);
  return fragment;
}

void stmatrix(const Element& row, const Fragment& fragment, Transposed transposed, SourceLoc at) {
  Tracer& tracer = Tracer::current("stmatrix", at);
  tracer.require_converged("stmatrix", Uniformity::warp, at);
  int matrices = fragment.size() % 2 == 0 ? fragment.size() / 2 : 0;
  require_rows("stmatrix", row, matrices, true, at);
  if (fragment.type() != row.tensor().type()) {
    throw Error(ErrorKind::user,
                "stmatrix: the fragment has type " + std::string(name(fragment.type())) +
                    " and the tensor " + std::string(name(row.tensor().type())) +
                    "; convert with .to()",
                at);
  }
  tracer.emit(matrix_op("stmatrix", matrices, transposed),
              {lang::address_operand(row, at), words_operand(fragment, at)}, at);
}

}  // namespace tilewright
