// SPDX-License-Identifier: Apache-2.0
// What a kernel says while it runs: printed lines, and assertions about values of the device.
#pragma once

#include "tilewright/call_text.h"
#include "tilewright/value.h"

#include <initializer_list>

namespace tilewright {

namespace detail {
void print(const CallText& format, std::initializer_list<Arg> values);
}  // namespace detail

/// CUDA's printf. `%d %i %u %o %x %X %c` take integers of up to 32 bits and predicates; with `l` or
/// `ll`, 64-bit ones; `%e %f %g %a` any floating-point type, `%p` a 64-bit address. Width,
/// precision and flags are numbers of the text. Lines of one thread keep their order. A GPU prints
/// to standard output at the next synchronisation (up to 1 MiB in between); an emulated device adds
/// to LaunchReport::output:
///   printf_("thread %d: %f\n", thread_idx().x, x);
template <class... Values>
void printf_(const CallText& format, const Values&... values) {
  detail::print(format, {Arg(values, format.at())...});
}

/// Stops the kernel where the condition does not hold, with `text`, this file and line, and the
/// thread: CUDA prints them, and the next call of the driver fails; an emulated device reports a
/// finding. Nothing is recorded for a condition known to hold.
void assert_(const Arg& condition, const char* text);

}  // namespace tilewright
