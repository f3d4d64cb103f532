# SPDX-License-Identifier: Apache-2.0
tilewright_part(layout DEPENDS base)
