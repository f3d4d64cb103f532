// SPDX-License-Identifier: Apache-2.0
// The checksum of bundles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tilewright::detail {

/// tw_bundle_hash() of tilewright_bundle.h.
std::uint64_t bundle_hash(std::span<const std::byte> bytes);

}  // namespace tilewright::detail
