// SPDX-License-Identifier: Apache-2.0
// cuBLASLt as the peer of the GEMM benchmark: opened at run time, by declarations of our own.
#pragma once

#include "tilewright/buffer.h"
#include "tilewright/stream.h"
#include "tilewright/view.h"

#include <string>
#include <vector>

namespace bench {

namespace tw = tilewright;

/// C = A B^T of bf16 with f32 sums by the candidates of cuBLASLt's heuristic.
class CublasLt {
 public:
  /// Opens `path`, or the library where it usually is. Throws tw::Error if there is none.
  CublasLt(const tw::Device& device, const std::string& path);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  std::size_t version() const;
  /// Prepares the product; returns how many candidates there are.
  int prepare(const tw::View& a, const tw::View& b, const tw::View& c);
  void run(int candidate, const tw::Stream& stream) const;

 private:
  struct Library;
  struct Problem;
  Library* library_;
  Problem* problem_ = nullptr;
  tw::Buffer workspace_;
};

}  // namespace bench
