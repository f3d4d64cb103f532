// SPDX-License-Identifier: Apache-2.0
// Writes rows as codes and scales from the registers of the threads that computed them. Traced.
#pragma once

#include "kernels/quantize/quant_output.h"
#include "kernels/rows/row_share.h"
#include "tilewright/fragment.h"

#include <optional>
#include <span>

namespace tilewright {

class QuantWriter {
 public:
  /// Pre: `tensors` are a QuantOutputPlan's.
  QuantWriter(const QuantOutputConfig& config, QuantOutputArguments<Tensor> tensors,
              const Value& floor)
      : config_(config), t_(std::move(tensors)), floor_(floor) {}

  /// The numbers that are quantised, of a result in f32.
  Fragment rounded(const Fragment& wide) const { return wide.to(config_.rounded); }

  /// Whether write() wants the row's largest magnitude: all threads' own, reduced by the caller.
  bool needs_largest_of_row() const { return config_.coding.format == QuantFormat::fp8_token; }
  Value largest_of_thread(std::span<const rows::RowShare> shares,
                          std::span<const Fragment> numbers) const;

  /// Writes what a thread has of a row, and scales. All threads of the warp take part; `lanes`
  /// neighbours, a power of two or whole warps, have the row's accesses in turn.
  void write(std::span<const rows::RowShare> shares, std::span<const Fragment> numbers, int lanes,
             const std::optional<Value>& largest_of_row = {}) const;

  /// For the threads of QuantOutputPlan::padding_blocks, counted from 0.
  void pad(const Value& row_count, const Value& thread) const;

 private:
  void write_group(std::span<const rows::RowShare> shares, std::span<const Fragment> numbers,
                   const Value& starts, const GroupCodes& codes) const;

  const QuantOutputConfig config_;
  QuantOutputArguments<Tensor> t_;
  Value floor_;
};

}  // namespace tilewright
