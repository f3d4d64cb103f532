// SPDX-License-Identifier: Apache-2.0
// What DLPack adds to a bare tensor (tw_tensor is its DLTensor): owners, and the functions that a
// Python type may offer in its attribute __dlpack_c_exchange_api__ (dlpack.h, version 1.3).
#pragma once

#include "tilewright.h"

#include <cstdint>

namespace tilewright::python {

/// DLManagedTensor, in capsules named "dltensor".
struct ManagedTensor {
  tw_tensor tensor;
  void* owner;
  void (*deleter)(ManagedTensor*);
};

struct ExchangeVersion {
  std::uint32_t major;
  std::uint32_t minor;
};

/// DLPackExchangeAPI. Functions that are not called here are plain pointers.
struct ExchangeApi {
  ExchangeVersion version;
  ExchangeApi* older;  ///< the same of another major version; null: none
  void* allocate;
  void* managed_from_object;
  void* managed_to_object;
  /// Fills in a tensor that the object keeps alive; null where the type does not offer it. Not 0: a
  /// Python error is set.
  int (*tensor_from_object)(void* object, tw_tensor* tensor);
  /// The stream that the framework queues work on. Not 0: a Python error is set.
  int (*current_stream)(std::int32_t device_type, std::int32_t device_id, void** stream);
};

}  // namespace tilewright::python
