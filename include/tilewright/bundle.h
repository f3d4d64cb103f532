// SPDX-License-Identifier: Apache-2.0
// Bundles: files of machine code that a serving process loads instead of compiling.
#pragma once

#include "tilewright/assembler.h"
#include "tilewright/device.h"
#include "tilewright/launch.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

namespace detail {
struct BundleFile;
void retain(BundleFile* file) noexcept;
void release(BundleFile* file) noexcept;
}  // namespace detail

/// A kernel ready for its target, and how it is found and launched.
struct BundleKernel {
  std::string front_key;  ///< as KernelCache::get takes it
  std::string entry;
  ptx::Target target{};
  std::string options;  ///< canonical_text() of the AssembleOptions
  std::string recipe;   ///< one line a parameter, see recipe_text() in compile.h
  std::string problem;  ///< the launch that needed it, in words
  Assembled assembled;
  LaunchConfig launch;  ///< of that launch
  std::int64_t parameter_bytes = 0;
};

/// Writes a bundle, in one step: readers see the old file or the new one. Of kernels with equal
/// key, target and options the first is kept. Throws Error(user) if the file cannot be written.
/// The format is in tilewright_bundle.h, which reads it in C with the driver alone.
void write_bundle(const std::string& path, std::span<const BundleKernel> kernels,
                  SourceLoc at = SourceLoc::here());

/// A bundle in memory; copies share it. Reading checks everything but the machine code, whose
/// checksum is checked when a kernel is taken out.
class Bundle {
 public:
  /// Throws Error(user) with the reason for a file that is damaged, foreign, newer or not there.
  static Bundle open(const std::string& path, SourceLoc at = SourceLoc::here());

  const std::string& path() const;
  std::int64_t size() const;  ///< number of kernels
  /// Throws Error(user) if the kernel's checksum does not fit. Pre: index < size().
  BundleKernel kernel(std::int64_t index, SourceLoc at = SourceLoc::here()) const;
  /// The index of a kernel, -1: none.
  std::int64_t find(std::string_view front_key, ptx::Target target,
                    const AssembleOptions& options) const;

 private:
  explicit Bundle(detail::Ref<detail::BundleFile> file) : file_(std::move(file)) {}
  detail::Ref<detail::BundleFile> file_;
};

}  // namespace tilewright
