// SPDX-License-Identifier: Apache-2.0
// The order of f32 as that of u32: the sign bit of a positive number's key is 1, and a negative
// one's bits are inverted.
#include "kernels/moe_topk/score_key.h"

namespace tilewright::topk {
namespace {

constexpr std::uint32_t kSign = 0x80000000u;
constexpr std::uint32_t kNan = 0x1000;
constexpr std::uint32_t kExpertBits = 0xfff;

}  // namespace

Value key_of(const Value& score) {
  Value word = score.bitcast(u32);
  Value flip = (word.bitcast(s32) >> 31).bitcast(u32) | kSign;
  return select(score == score, word ^ flip, kNan);
}

Value score_of(const Value& key) {
  return select((key & kSign) != 0, key ^ kSign, ~key).bitcast(f32);
}

Value is_number(const Value& key) { return key >= kLeastNumber; }

Value key_with_expert(const Value& score, const Value& expert) {
  return (key_of(score) & ~kExpertBits) | (kExpertBits - expert.bitcast(u32));
}

Value expert_of(const Value& key) { return (kExpertBits - (key & kExpertBits)).bitcast(s32); }

Value score_beside_expert(const Value& key) {
  Value positive = (key & ~kExpertBits) ^ kSign;
  return select((key & kSign) != 0, positive, ~(key | kExpertBits)).bitcast(f32);
}

}  // namespace tilewright::topk
