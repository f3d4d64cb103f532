// SPDX-License-Identifier: Apache-2.0
// Places of chunks: sequence n of a ragged batch begins at place cu_seqlens[n] / chunk + n, so that
// nothing has to be counted before a launch.
#include "kernels/kda_prefill/chunk_place.h"

#include "tilewright/control.h"

namespace tilewright {
namespace {

Value first_token(const Tensor& cu_seqlens, const Value& n) {
  return cu_seqlens(n).load({.read_only = true});
}

Value first_place(const Tensor& cu_seqlens, const Value& n, int chunk) {
  return (first_token(cu_seqlens, n) / chunk).to(s64) + n;
}

Value chunks_of(const Value& tokens, int chunk) { return ((tokens + (chunk - 1)) / chunk).to(s64); }

}  // namespace

SequenceSpan sequence_span(const std::optional<Tensor>& cu_seqlens, const Value& n,
                           const Value& tokens, int chunk) {
  if (!cu_seqlens) return {n, constant(s32, 0), tokens, n * chunks_of(tokens, chunk)};
  return {constant(s64, 0), first_token(*cu_seqlens, n), first_token(*cu_seqlens, n + 1),
          first_place(*cu_seqlens, n, chunk)};
}

Value sequence_of(const std::optional<Tensor>& cu_seqlens, const Value& place, const Value& tokens,
                  int chunk) {
  if (!cu_seqlens) return place / chunks_of(tokens, chunk);
  Var low(constant(s64, 0), Uniformity::block);
  Var high(to_value(cu_seqlens->shape()[0].value()).to(s64) - 1, Uniformity::block);
  while_([&] { return high - low > 1; },
         [&] {
           Value middle = (low + high) / 2;
           Value before = first_place(*cu_seqlens, middle, chunk) <= place;
           low = select(before, middle, low);
           high = select(before, high, middle);
         });
  return low;
}

}  // namespace tilewright
