# SPDX-License-Identifier: Apache-2.0
# Runs PTX on the CPU, with checks and counters.
tilewright_part(emu DEPENDS ptx)
