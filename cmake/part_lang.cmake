# SPDX-License-Identifier: Apache-2.0
# The kernel language: traced values, control flow, tensors, copies.
tilewright_part(lang DEPENDS layout ptx)
