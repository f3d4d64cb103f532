# SPDX-License-Identifier: Apache-2.0
tilewright_part(lang DEPENDS layout ptx)
