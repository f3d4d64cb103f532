# SPDX-License-Identifier: Apache-2.0
# Tensors in files: npy, npz, safetensors.
tilewright_part(io DEPENDS runtime)
