# SPDX-License-Identifier: Apache-2.0
tilewright_part(io DEPENDS runtime)
