// SPDX-License-Identifier: Apache-2.0
// Checks and views of experts' codes and scales.
#include "kernels/quantize/codes_of_batch.h"

#include "kernels/rows/row_batch.h"

namespace tilewright {

void check_codes_of_batch(const View& q, const View& rows, const rows::Caller& caller) {
  rows::check_batch(q, "q", caller);
  if (q.shape[0] != rows.shape[0]) {
    caller.refuse("q is " + to_string(q) + "; it must have " + std::to_string(rows.shape[0]) +
                  " experts");
  }
  if (q.type == e2m1 && q.stride[0] % 2 != 0) {
    caller.refuse("q is " + to_string(q) +
                  "; experts of e2m1 must be an even number of elements apart");
  }
}

View scales_of_batch(const View& scales, const QuantCoding& coding, const View& q,
                     const rows::Caller& caller) {
  const View one = rows::first_of(q);
  if (coding.format == QuantFormat::fp8_tensor) return scales_view(scales, coding, one, caller);
  if (scales.rank < 1 || scales.shape[0] != q.shape[0]) {
    caller.refuse("scales is " + to_string(scales) + " and q " + to_string(q) +
                  "; both must have as many experts");
  }
  const rows::Caller each{caller.op, caller.at, "of each expert"};
  return rows::batch_of(scales_view(rows::first_of(scales), coding, one, each), scales);
}

TensorArg scales_arg_of_batch(const View& scales, const QuantCoding& coding) {
  const DynamicModes modes = dynamic_scale_modes(coding.layout);
  const bool one = coding.format == QuantFormat::fp8_tensor;
  return tensor_arg(scales, one ? modes : rows::modes_of_batch(modes));
}

void check_tokens(const View& tokens, std::int64_t experts, const rows::Caller& caller) {
  rows::check_type(tokens, "tokens_per_expert", s32, caller);
  rows::check_vector(tokens, "tokens_per_expert", experts, caller);
}

}  // namespace tilewright
