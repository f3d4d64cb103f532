// SPDX-License-Identifier: Apache-2.0
// An operator's tensors on a device, ready to launch.
#pragma once

#include "tilewright/array.h"
#include "tilewright/buffer.h"
#include "tilewright/operator.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::tune {

/// Everything that a run of an operator needs from the host.
struct Inputs {
  const Operator* op = nullptr;
  std::vector<Array> arrays = {};
  std::vector<std::pair<std::string, std::string>> options = {};
};
/// Shapes of the inputs of one problem, with its options: for unplaced_arguments() alone.
Inputs make_problem_shapes(const Operator& op, const std::string& problem);
/// Inputs made for one problem, with its options.
Inputs make_problem_inputs(const Operator& op, const std::string& problem, std::uint64_t seed);

/// Memory of many tensors in few allocations, as frameworks have it. An allocation for each small
/// tensor is not what users' kernels meet.
class Slab {
 public:
  /// A tensor's bytes in a buffer.
  struct Piece {
    std::shared_ptr<const Buffer> buffer;
    std::int64_t offset_bytes = 0, size_bytes = 0;
    enum class Kind : std::uint8_t { own, window, next_window } kind = Kind::own;
    DeviceAddress address() const;  ///< 0 of no bytes
    /// Of a window: into its memory as often as it fits, if it is the first.
    void upload(std::span<const std::byte> bytes) const;
  };

  /// Copies of a table, 1024 rows or more, of more than `most_bytes` are windows on one allocation,
  /// each a row behind the other, so that the same indices find other memory in each.
  explicit Slab(const Device& device,
                std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max())
      : device_(device), most_bytes_(most_bytes) {}
  Piece take(std::int64_t size_bytes);
  /// Memory of a tensor, of integers never a window; those of a name have one shape.
  Piece take(std::string_view name, Type type, const std::vector<std::int64_t>& shape);

 private:
  struct Windows {
    std::string name;
    std::shared_ptr<const Buffer> buffer;
    std::int64_t taken = 0;
  };

  Device device_;
  std::int64_t most_bytes_;
  std::shared_ptr<const Buffer> buffer_;
  std::int64_t used_bytes_ = 0;
  std::vector<Windows> windows_;
};

class Session {
 public:
  /// Uploads the inputs and allocates the outputs: the required ones, and those named in `wanted`.
  /// Outputs on a GPU start as bytes of ones, which are NaN in floats. Tensors are allocations of
  /// their own, so that the emulator sees where each ends, or pieces of `slab`.
  Session(const Device& device, const Inputs& inputs, const std::vector<std::string>& wanted,
          Slab* slab = nullptr);

  void launch(const Stream& stream) const { op_->launch(device_, stream, arguments_); }
  const Arguments& arguments() const { return arguments_; }
  /// Outputs, and inouts as they are now.
  std::vector<Array> outputs() const;
  /// Where they are.
  struct Place {
    std::string_view name;
    DeviceAddress address = 0;
    std::int64_t size_bytes = 0;
  };
  std::vector<Place> written() const;
  std::int64_t size_bytes() const;  ///< of all tensors but windows, which sessions share

 private:
  struct Tensor {
    std::string name;
    Role role;
    View view;
    Slab::Piece memory;
  };
  void add(std::string_view name, Role role, Type type, const std::vector<std::int64_t>& shape,
           Slab* slab);

  const Operator* op_;
  Device device_;
  Arguments arguments_;
  std::vector<Tensor> tensors_;
  std::optional<Buffer> workspace_;
};

/// Arguments with addresses that are made up, for what needs no memory: shapes, plans, traces.
Arguments unplaced_arguments(const Inputs& inputs, const std::vector<std::string>& wanted);

}  // namespace tilewright::tune
