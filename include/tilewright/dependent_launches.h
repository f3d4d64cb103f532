// SPDX-License-Identifier: Apache-2.0
// Programmatic dependent launch for all operators.
#pragma once

namespace tilewright {

/// While one lives, operators that this thread launches or prepares begin before the kernel in
/// front of them on the stream ends: their blocks take the places of those that have ended, and
/// wait for the rest before they touch memory. Results are the same; what is saved is the time
/// between kernels, in graphs too. Cooperative kernels and targets before sm_90 are launched as
/// usual.
class DependentLaunches {
 public:
  DependentLaunches();
  ~DependentLaunches();
  DependentLaunches(const DependentLaunches&) = delete;
  DependentLaunches& operator=(const DependentLaunches&) = delete;

  static bool wanted();  ///< by this thread
};

}  // namespace tilewright
