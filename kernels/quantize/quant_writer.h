// SPDX-License-Identifier: Apache-2.0
// Writes rows as codes and scales from the registers of the threads that computed them. Traced.
#pragma once

#include "kernels/quantize/quant_output.h"
#include "tilewright/fragment.h"

#include <optional>
#include <vector>

namespace tilewright {

/// What a thread has of a row: accesses, `lanes` of them apart.
struct RowPart {
  Value row, column;              ///< of the first access
  std::vector<Value> inside;      ///< a predicate for each
  std::vector<Fragment> numbers;  ///< QuantWriter::rounded()
  int lanes = 1;  ///< neighbours that have accesses in turn: a power of two or whole warps
};

class QuantWriter {
 public:
  /// Pre: `tensors` are a QuantOutputPlan's.
  QuantWriter(const QuantOutputConfig& config, QuantOutputArguments<Tensor> tensors,
              const Value& floor)
      : config_(config), t_(std::move(tensors)), floor_(floor) {}

  /// The numbers that are quantised, of a result in f32.
  Fragment rounded(const Fragment& wide) const { return wide.to(config_.rounded); }

  /// Writes the scale that is an input, if there is one, in a thread that is `mine`: write() then
  /// leaves it. For rows of which the first may be left out.
  void store_input(const Value& mine);

  /// Reads the scale that is an input, if there is one, now rather than in write().
  void load_input();
  const std::optional<Fragment>& input() const { return input_; }  ///< if load_input() read it

  /// Whether write() wants the row's largest magnitude: all threads' own, reduced by the caller.
  bool needs_largest_of_row() const { return config_.coding.format == QuantFormat::fp8_token; }
  Value largest_of_thread(const RowPart& part) const;

  /// Writes what a thread has of a row, and scales. All threads of the warp take part.
  void write(const RowPart& part, const std::optional<Value>& largest_of_row = {}) const;

  /// For the threads of QuantOutputPlan::padding_blocks, counted from 0.
  void pad(const Value& row_count, const Value& thread) const;

 private:
  /// Of a row, on its way out.
  struct Row {
    Tensor q, scales;
    Value starts;  ///< the thread has the first elements of its groups
    Value group;   ///< of its first access
  };
  bool is_ragged() const { return config_.h % config_.group != 0; }
  /// Accesses beyond the row added, so that the last group has as many as the others.
  RowPart whole_groups(RowPart part) const;
  int accesses_of_group(const RowPart& part) const;
  int threads_of_group(const RowPart& part) const;
  Value magnitude_of(const RowPart& part, std::size_t access) const;
  /// An input of one element.
  Value number(const Tensor& input) const { return input_ ? (*input_)[0].get() : input(0).load(); }
  /// How the groups of a part lie among accesses and threads.
  struct Spread {
    std::size_t accesses;  ///< of a thread in a group
    int threads;           ///< of a group
    int distance;          ///< from one of a thread's groups to the next
  };
  Spread spread_of(const RowPart& part) const;
  /// What the thread itself has in each of its groups.
  std::vector<Value> largest_in_groups(const RowPart& part, const Spread& spread) const;
  std::vector<GroupCodes> of_largest(const std::vector<Value>& largest) const;

  /// Writes the part's scales, and makes its codes.
  std::vector<Fragment> write_scales(const RowPart& part, const Row& row,
                                     const std::vector<Fragment>& wide,
                                     const std::optional<Value>& largest_of_row) const;
  /// The same where each thread computes some of its groups' scales, and has those of the others
  /// from threads that share them.
  std::vector<Fragment> write_scales_by_lanes(const RowPart& part, const Row& row,
                                              const std::vector<Fragment>& wide,
                                              const Spread& spread,
                                              std::vector<Value> largest) const;
  /// Of the group that is `further` after `group`, where the thread `stores` it.
  void store_scale(const RowPart& part, const Row& row, const Value& stores, const Value& group,
                   int further, const GroupCodes& codes) const;

  const QuantOutputConfig config_;
  QuantOutputArguments<Tensor> t_;
  Value floor_;
  std::optional<Fragment> input_ = {};
  bool stores_input_ = true;  ///< in write()
};

}  // namespace tilewright
