// SPDX-License-Identifier: Apache-2.0
// Whether a thread wants dependent launches: the number of its objects that live.
#include "tilewright/dependent_launches.h"

namespace tilewright {
namespace {

thread_local int living = 0;

}  // namespace

DependentLaunches::DependentLaunches() { ++living; }
DependentLaunches::~DependentLaunches() { --living; }
bool DependentLaunches::wanted() { return living > 0; }

}  // namespace tilewright
