# SPDX-License-Identifier: Apache-2.0
# Shapes, strides and the algebra over them.
tilewright_part(layout DEPENDS base)
