#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantisation to fp8, MXFP8, MXFP4 and NVFP4, alone, in norms and in an activation, and back, beside PyTorch and Triton.

    python3 bench/peers/quantisation.py [--json OUT] [--tokens 1,64,4096]

No peer here is bound to the last bit: it may divide by its reciprocal or sum in another order. Codes of eight bits may
be the next one, and a thousandth of an output's numbers may differ further, as all of a group do whose scale rounds the
other way.
"""
import collections

import torch
import torch.nn.functional as F

import measure
import triton_codes
from tilewright import ops

LARGEST = 448.0
FLOOR = 1e-10
EPS = 1e-6
ENCODE = 2688 / 28.7  # for numbers up to 28.7, beyond which few are cut


def by_group(width):
    def function(x):
        groups = x.float().unflatten(-1, (-1, width))
        scales = groups.abs().amax(-1).clamp(min=FLOOR) / LARGEST
        return (groups / scales[..., None]).flatten(-2).to(torch.float8_e4m3fn), scales
    return function


def by_token(x):
    scales = x.float().abs().amax(-1).clamp(min=FLOOR) / LARGEST
    return (x.float() / scales[:, None]).to(torch.float8_e4m3fn), scales


def by_tensor(x, given):
    return (x.float() / given).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)


def over_powers_of_two(x, exponent_of_largest, mantissa_of_largest):
    """x over the powers of two, for each 32 elements, at or above their largest over that of the format; their exponents."""
    groups = x.float().unflatten(-1, (-1, 32))
    bits = groups.abs().amax(-1).view(torch.int32)
    exponent = ((bits >> 23) - exponent_of_largest + ((bits & 0x7FFFFF) > mantissa_of_largest).int()).clamp(min=0)
    numbers = groups * ((254 - exponent) << 23).view(torch.float32)[..., None]
    return numbers.flatten(-2), exponent.to(torch.uint8)


def e2m1_pairs(x):
    """Two codes a byte; see triton_codes.py for the rounding."""
    bits = (x * 2.0 ** -126).view(torch.int32)
    size = bits & 0x7FFFFFFF
    code = ((size + 0x1FFFFF + ((size >> 22) & 1)) >> 22).clamp(max=7) | ((bits >> 28) & 8)
    return (code[..., ::2] | (code[..., 1::2] << 4)).to(torch.uint8)


def numbers_of_pairs(q):
    """The way back: e2m1's bits are those of f16 with an exponent that is 14 less."""
    bits = torch.stack((q & 0xF, q >> 4), -1).flatten(-2).int()
    return (((bits & 7) << 9) | ((bits & 8) << 12)).to(torch.int16).view(torch.float16).float() * 2.0 ** 14


def mxfp8(x):
    numbers, scales = over_powers_of_two(x, 8, 0x600000)  # 448 is 1.75 * 2^8
    return numbers.to(torch.float8_e4m3fn), scales


def mxfp4(x):
    numbers, scales = over_powers_of_two(x, 2, 0x400000)  # 6 is 1.5 * 2^2
    return e2m1_pairs(numbers), scales


def nvfp4(x, encode):
    groups = x.float().unflatten(-1, (-1, 16))
    scales = (groups.abs().amax(-1) / 6 * encode).clamp(max=LARGEST).to(torch.float8_e4m3fn)
    scale = scales.float()[..., None]
    return e2m1_pairs(torch.where(scale > 0, groups * encode / scale, 0).flatten(-2)), scales


Format = collections.namedtuple("Format", "function group scale_type kind")  # group 0: all of the row
FORMATS = {
    "fp8_token": Format(by_token, 0, torch.float32, "fp8"),
    "fp8_block": Format(by_group(128), 128, torch.float32, "fp8"),
    "mxfp8": Format(mxfp8, 32, torch.float8_e8m0fnu, "mxfp8"),
    "mxfp4": Format(mxfp4, 32, torch.float8_e8m0fnu, "mxfp4"),
    "nvfp4": Format(nvfp4, 16, torch.float8_e4m3fn, "nvfp4"),
}


def random(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def codes_of(form, t, h):
    """Memory for codes, uint8 where they are pairs, and for scales."""
    pairs = form in ("mxfp4", "nvfp4")
    group = FORMATS[form].group
    return [torch.zeros(t, h // 2 if pairs else h, device="cuda", dtype=torch.uint8 if pairs else torch.float8_e4m3fn),
            torch.zeros((t, h // group) if group else (t,), device="cuda").to(FORMATS[form].scale_type)]


def codes(tensor):
    """As our operators take them."""
    return tensor.view(torch.float4_e2m1fn_x2) if tensor.dtype == torch.uint8 else tensor


def plain(scales):
    """As Triton takes them."""
    return scales.view(torch.uint8) if scales.dtype == torch.float8_e8m0fnu else scales


def quantised(name, problem, form, shape, inputs, more_outputs, numbers, ours, variants):
    """A case of functions of the inputs, an encode scale or None, codes, scales and further outputs.

    `numbers(*inputs)` has what is quantised, and further outputs behind it if there are any.
    """
    format_ = FORMATS[form]
    encode = [torch.full((1,), ENCODE, device="cuda")] if form == "nvfp4" else []

    def make():
        return (*inputs(), *encode, *codes_of(form, *shape), *more_outputs())

    def function(*tensors):
        found = numbers(*tensors[:len(tensors) - len(encode)])
        first, *others = found if isinstance(found, tuple) else (found,)
        return (*format_.function(first, *tensors[len(tensors) - len(encode):]), *others)

    outputs = 2 + len(more_outputs())

    def parts(tensors):
        """Inputs, encode scale or None, outputs."""
        given = tensors[:len(tensors) - outputs]
        return *given[:len(given) - len(encode)], (given[-1] if encode else None), *tensors[len(tensors) - outputs:]

    case = measure.Case(name, problem, make, outputs, function, tolerance=0.13, strays=3e-3)
    case.ways[measure.OURS] = lambda *tensors: ours(*parts(tensors))
    case.ways["triton"] = [lambda *tensors, run=run: run(*parts(tensors)) for run in variants]
    return case


def quantize(form, t, h):
    format_ = FORMATS[form]
    group = format_.group or h

    def ours(x, encode, q, scales):
        ops.quantize(x, encode_scale=encode, q=codes(q), scales=scales, format=form)

    variants = [lambda x, encode, q, scales, run=run: run(x, encode, q, plain(scales))
                for run in triton_codes.groups(format_.kind, t * h // group, group)]
    encode = ",encode_scale=f32" if form == "nvfp4" else ""
    return quantised("quantize", f"T={t},H={h},x=bf16{encode},format={form}", form, (t, h), lambda: [random(t, h)],
                     list, lambda x: x, ours, variants)


def quantize_tensor(t, h):
    def make():
        return (random(t, h), torch.full((1,), 0.02, device="cuda"),
                torch.empty(t, h, device="cuda", dtype=torch.float8_e4m3fn))

    case = measure.Case("quantize", f"T={t},H={h},x=bf16,scale=f32,format=fp8_tensor", make, 1, by_tensor, tolerance=0.13)
    case.ways[measure.OURS] = lambda x, given, q: ops.quantize(x, given, q=q, format="fp8_tensor")[0]
    case.ways["triton"] = [lambda x, given, q, run=run: run(x, given, q, given)
                           for run in triton_codes.groups("tensor", t * h // 1024, 1024)]
    return case


def rms_norm(form, t, h):
    format_ = FORMATS[form]

    def ours(x, w, encode, q, scales):
        ops.rms_norm(x, w, encode_scale=encode, q=codes(q), scales=scales, quant=form, eps=EPS)

    variants = [lambda x, w, encode, q, scales, run=run: run(x, None, w, None, encode, q, plain(scales), None)
                for run in triton_codes.norms(format_.kind, t, h, EPS, format_.group)]
    encode = ",encode_scale=f32" if form == "nvfp4" else ""
    return quantised("rms_norm", f"T={t},H={h},x=bf16,w=bf16{encode},quant={form}", form, (t, h),
                     lambda: [random(t, h), random(h)], list,
                     lambda x, w: F.rms_norm(x.float(), (h,), w.float(), EPS), ours, variants)


def fused_add_rms_norm(form, t, h):
    format_ = FORMATS[form]

    def numbers(x, residual, w):
        total = x + residual
        return F.rms_norm(total.float(), (h,), w.float(), EPS), total

    def ours(x, residual, w, encode, q, scales, out):
        ops.fused_add_rms_norm(x, residual, w, encode_scale=encode, residual_out=out, q=codes(q), scales=scales,
                               quant=form, eps=EPS)

    variants = [lambda x, residual, w, encode, q, scales, out, run=run: run(
        x, residual, w, None, encode, q, plain(scales), out)
                for run in triton_codes.norms(format_.kind, t, h, EPS, format_.group, add=True)]
    encode = ",encode_scale=f32" if form == "nvfp4" else ""
    return quantised("fused_add_rms_norm", f"T={t},H={h},x=bf16,residual=bf16,w=bf16{encode},quant={form}", form, (t, h),
                     lambda: [random(t, h), random(t, h), random(h)], lambda: [random(t, h)], numbers, ours, variants)


def layer_norm(form, t, h):
    format_ = FORMATS[form]

    def ours(x, w, bias, encode, q, scales):
        ops.layer_norm(x, w, bias, encode_scale=encode, q=codes(q), scales=scales, quant=form, eps=EPS)

    variants = [lambda x, w, bias, encode, q, scales, run=run: run(x, None, w, bias, encode, q, plain(scales), None)
                for run in triton_codes.norms(format_.kind, t, h, EPS, format_.group, centre=True)]
    return quantised("layer_norm", f"T={t},H={h},x=bf16,w=bf16,bias=bf16,quant={form}", form, (t, h),
                     lambda: [random(t, h), random(h), random(h)], list,
                     lambda x, w, bias: F.layer_norm(x.float(), (h,), w.float(), bias.float(), EPS), ours, variants)


def silu_and_mul(form, t, n):
    format_ = FORMATS[form]
    d = n // 2

    def numbers(x):
        gate, up = x.float().chunk(2, -1)
        return F.silu(gate) * up

    def ours(x, encode, q, scales):
        ops.silu_and_mul(x, encode_scale=encode, q=codes(q), scales=scales, quant=form)

    variants = [lambda x, encode, q, scales, run=run: run(x, encode, q, plain(scales))
                for run in triton_codes.silus(format_.kind, t, d, format_.group)]
    encode = ",encode_scale=f32" if form == "nvfp4" else ""
    return quantised("silu_and_mul", f"T={t},N={n},x=bf16{encode},quant={form}", form, (t, d), lambda: [random(t, n)],
                     list, numbers, ours, variants)


def dequantize(form, t, h):
    format_ = FORMATS[form]
    decode = [torch.full((1,), 1 / ENCODE, device="cuda")] if form == "nvfp4" else []

    def make():
        q, scales = codes_of(form, t, h)
        if q.dtype == torch.uint8:
            q = torch.randint(256, q.shape, device="cuda", dtype=torch.uint8)
        else:
            q = (100 * torch.randn(q.shape, device="cuda")).clamp(-LARGEST, LARGEST).to(q.dtype)
        scales = torch.rand(scales.shape, device="cuda") + 0.5
        if form == "mxfp4":  # bytes, as the compiler of PyTorch has no arithmetic on their type
            scales = (scales * 127).to(torch.uint8)
        return q, scales.to(torch.uint8 if form == "mxfp4" else format_.scale_type), *decode, random(t, h)

    def function(q, scales, *decode):
        if form == "mxfp4":
            scales = (scales.int() << 23).view(torch.float32)
        elif form == "nvfp4":
            scales = scales.float() * decode[0]
        numbers = q.float() if form == "fp8_block" else numbers_of_pairs(q)
        return (numbers.unflatten(-1, (-1, format_.group)) * scales[..., None]).flatten(-2).bfloat16()

    def ours(q, scales, *others):
        scales = scales.view(torch.float8_e8m0fnu) if form == "mxfp4" else scales
        ops.dequantize(codes(q), scales, others[0] if decode else None, y=others[-1], format=form)

    tensors = {"fp8_block": "q=e4m3,scales=f32", "mxfp4": "q=e2m1,scales=ue8m0",
               "nvfp4": "q=e2m1,scales=e4m3,decode_scale=f32"}[form]
    case = measure.Case("dequantize", f"T={t},H={h},format={form},{tensors}", make, 1, function)
    case.ways[measure.OURS] = ours
    case.ways["triton"] = [lambda q, scales, *others, run=run: run(q, scales, others[0] if decode else None, others[-1])
                           for run in triton_codes.numbers(format_.kind, t * h, format_.group)]
    return case


def cases(tokens):
    for form in ("fp8_block", "fp8_token"):
        yield from (silu_and_mul(form, t, n) for n, t in measure.at_ends((4096,), (24576,), tokens))
    for form in ("fp8_token", "fp8_block"):
        yield from (rms_norm(form, t, h) for h, t in measure.at_ends((7168,), (4096,), tokens))
    for form in ("fp8_token", "fp8_block", "mxfp8"):
        yield from (quantize(form, t, h) for h, t in measure.at_ends((7168,), (), tokens))
    yield from (quantize_tensor(t, h) for h, t in measure.at_ends((7168,), (), tokens))
    for operator, width, forms in ((rms_norm, 7168, ("mxfp8", "nvfp4")), (silu_and_mul, 24576, ("mxfp8", "nvfp4")),
                                   (fused_add_rms_norm, 7168, ("fp8_token", "fp8_block", "nvfp4")),
                                   (layer_norm, 4096, ("fp8_token",)), (quantize, 7168, ("mxfp4", "nvfp4")),
                                   (dequantize, 7168, ("fp8_block", "mxfp4", "nvfp4"))):
        for form in forms:
            yield from (operator(form, t, width) for width, t in measure.at_ends((), (width,), tokens))


if __name__ == "__main__":
    measure.main(__doc__, cases)
