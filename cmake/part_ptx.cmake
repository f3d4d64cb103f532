# SPDX-License-Identifier: Apache-2.0
tilewright_part(ptx DEPENDS base)
