# SPDX-License-Identifier: Apache-2.0
# Errors, source locations and assertions, which every part may use.
tilewright_part(base)
