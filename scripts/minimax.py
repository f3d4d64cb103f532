#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Computes the polynomial coefficients of src/lang/maths_*.h (needs mpmath): minimax.py [NAME...]
"""Weighted minimax polynomials by Remez exchange, with coefficients rounded to f32.

Each row of TABLE gives a target g, a weight w, an interval and a degree: the polynomial q minimises
the largest |w(x) (q(x) - g(x))|. Where it helps, the lowest coefficient is rounded first and the others
are fitted again, so that a rounding is made good by the coefficients after it.
"""
import struct
import sys

from mpmath import (asin, atan, atanh, cos, erf, erfc, exp, expm1, log, log1p, loggamma, lu_solve,
                    matrix, mp, mpf, pi, sin, sqrt, tan, tanh)

mp.dps = 60


def f32(x):
    """The f32 nearest to x, as an mpf."""
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def f64(x):
    return mpf(float(x))


def remez(g, w, a, b, powers):
    """Coefficients of `powers` and the largest weighted error on [a, b]."""
    n = len(powers)
    points = [a + (b - a) * (1 - mp.cos(pi * i / n)) / 2 for i in range(n + 1)]
    grid = [a + (b - a) * (1 - mp.cos(pi * (i + mpf(1) / 2) / (24 * n))) / 2
            for i in range(24 * n)]
    target = [g(x) for x in grid]
    weight = [abs(w(x)) for x in grid]
    points = [min(range(len(grid)), key=lambda i, p=p: abs(grid[i] - p)) for p in points]
    for _ in range(30):
        rows = matrix(n + 1, n + 1)
        right = matrix(n + 1, 1)
        for i, p in enumerate(points):
            for k, power in enumerate(powers):
                rows[i, k] = weight[p] * grid[p]**power
            rows[i, n] = (-1)**i
            right[i] = weight[p] * target[p]
        c = lu_solve(rows, right)
        error = [weight[i] * (sum(c[k] * x**powers[k] for k in range(n)) - target[i])
                 for i, x in enumerate(grid)]
        fresh = extremes(error)
        while len(fresh) > n + 1:
            fresh.pop(0 if abs(error[fresh[0]]) < abs(error[fresh[-1]]) else -1)
        worst = max(abs(e) for e in error)
        if len(fresh) < n + 1 or fresh == points or worst < abs(c[n]) * mpf("1.0001"):
            break
        points = fresh
    return [c[k] for k in range(n)], worst


def extremes(error):
    """The index of the largest |error| in each run of one sign."""
    best = [0]
    for i, e in enumerate(error):
        if (e < 0) != (error[best[-1]] < 0):
            best.append(i)
        elif abs(e) > abs(error[best[-1]]):
            best[-1] = i
    return best


def rounded(g, w, a, b, degree, to=f32):
    """Coefficients 0..degree as numbers of `to`, and the error that is left."""
    xs = [a + (b - a) * i / mpf(997) for i in range(998)]
    xs = [x for x in xs if x != 0]
    targets = [(x, g(x), w(x)) for x in xs]

    def worst(c):
        return max(abs(v * (sum(d * x**i for i, d in enumerate(c)) - t)) for x, t, v in targets)

    plain, _ = remez(g, w, a, b, list(range(degree + 1)))
    plain = [to(c) for c in plain]
    done = []
    for k in range(degree + 1):
        rest = list(range(k, degree + 1))
        c, _ = remez(lambda x: g(x) - sum(d * x**i for i, d in enumerate(done)), w, a, b, rest)
        done.append(to(c[0]))
    best = min(plain, done, key=worst)  # the second can fail where the interval holds 0
    return best, worst(best)


def normal_tail(v):
    """The normal distribution's tail beyond a = 1 / v - 4, over v 2^(-a^2 log2(e) / 2)."""
    a = 1 / v - mpf(4)
    return erfc(a / sqrt(mpf(2))) / 2 * 2**(a * a * f32(1 / log(mpf(4)))) / v


half_ln2 = log(2) / 2 * mpf("1.001")
tiny = mpf("1e-9")


def erfcx_shifted(q):
    """e^(a^2) erfc(a) / (1 - q) at a = 3 (1 + q) / (1 - q)."""
    a = 3 * (1 + q) / (1 - q)
    return exp(a * a) * erfc(a) / (1 - q)


def stirling_rest(v):
    """lgamma(v) less the leading terms of Stirling's series."""
    return loggamma(v) - (v - mpf("0.5")) * log(v) + v - log(2 * pi) / 2


def odd(f, to):
    """f(x) = x + x z q(z) with z = x^2 on (0, to]: relative error of f."""
    return (lambda z: (f(sqrt(z)) / sqrt(z) - 1) / z, lambda z: z * sqrt(z) / f(sqrt(z)), tiny,
            mpf(to)**2)


TABLE = {
    # exp(r) = 1 + r + r^2 q(r)
    "exp": (lambda r: (expm1(r) - r) / r**2, lambda r: r**2 * exp(-r), -half_ln2, half_ln2, 4),
    # expm1(r) = r + r^2 q(r)
    "expm1": (lambda r: (expm1(r) - r) / r**2, lambda r: r**2 / expm1(r), -mpf("0.41"),
              mpf("0.41"), 5),
    # log1p(f) = f + f^2 q(f)
    "log": (lambda f: (log1p(f) - f) / f**2, lambda f: f**2 / log1p(f), mpf("-0.25"), mpf("0.5"),
            8),
    # log2(1 + f) = f log2(e) + f^2 q(f)
    "log2": (lambda f: (log1p(f) - f) / f**2 / log(2), lambda f: f**2 / log1p(f) * log(2),
             1 / sqrt(mpf(2)) - 1, sqrt(mpf(2)) - 1, 8),
    "sin": (*odd(sin, pi / 4 * mpf("1.001")), 2),
    # cos(r) = 1 + z q(z)
    "cos": (lambda z: (cos(sqrt(z)) - 1) / z, lambda z: z / cos(sqrt(z)), tiny,
            (pi / 4 * mpf("1.001"))**2, 3),
    "tan": (*odd(tan, pi / 4 * mpf("1.001")), 6),
    "asin": (*odd(asin, mpf("0.5")), 4),
    "atan": (*odd(atan, 1), 8),
    "tanh": (*odd(tanh, 1), 6),
    "sinh": (*odd(mp.sinh, 1), 3),
    # erf(x) = x + x q(z)
    "erf": (lambda z: erf(sqrt(z)) / sqrt(z) - 1, lambda z: sqrt(z) / erf(sqrt(z)), tiny, mpf(1),
            6),
    # The same up to 3/4, for the absolute error of 1 - erf(x)
    "erf_small": (lambda z: erf(sqrt(z)) / sqrt(z) - 1, sqrt, tiny, mpf("0.5625"), 4),
    # log2(erfc(x)) = x q(x), weighted by its share in erf(x)
    "log2_erfc": (lambda x: log(erfc(x)) / log(2) / x,
                  lambda x: x * log(2) * erfc(x) / erf(x), mpf(1), mpf(4), 8),
    # e^(a^2) erfc(a) = (1 - q) h(q) with q = (a - 3) / (a + 3), for a in [0.75, 10.1]
    "erfc": (erfcx_shifted, lambda q: 1 / erfcx_shifted(q), mpf("-2.25") / mpf("3.75"),
             mpf("7.1") / mpf("13.1"), 9),
    # The normal distribution's tail, for a in [0, 13.5]
    "normal_tail": (normal_tail, lambda v: 1 / normal_tail(v), 1 / mpf("17.5"), 1 / mpf(4), 7),
    # The same for results of 8 bits
    "normal_tail_bf16": (normal_tail, lambda v: 1 / normal_tail(v), 1 / mpf("17.5"), 1 / mpf(4), 6),
    # log2(m) = s q(z) with s = (m - 1) / (m + 1), z = s^2; for pow, in f64 but to f32's needs
    "pow_log2": (lambda z: 2 * atanh(sqrt(z)) / sqrt(z) / log(2),
                 lambda z: sqrt(z) / atanh(sqrt(z)), tiny**2, mpf("0.0295"), 5, f64),
    # log(m) = f - f^2/2 + s (f^2/2 + z q(z)), f = m - 1
    "log_f64": (lambda z: 2 * (atanh(sqrt(z)) / sqrt(z) - 1) / z, lambda z: z, tiny**2,
                mpf("0.0295"), 6, f64),
    # log(m) = 2 s + 2/3 s^3 + s^5 q(z), the first two in double-double
    "log_tail_f64": (lambda z: 2 * (atanh(sqrt(z)) / sqrt(z) - 1 - z / 3) / z**2, lambda z: z**2,
                     mpf("1e-7"), mpf("0.0295"), 7, f64),
    "exp_f64": (lambda r: (expm1(r) - r) / r**2, lambda r: r**2 * exp(-r), -half_ln2, half_ln2, 9,
                f64),
    "sin_f64": (*odd(sin, pi / 4 * mpf("1.001")), 6, f64),
    # cos(r) = 1 - z / 2 + z^2 q(z)
    "cos_f64": (lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, lambda z: z**2 / cos(sqrt(z)),
                mpf("1e-6"), (pi / 4 * mpf("1.001"))**2, 5, f64),
    # Those of kernels/rope_table: within 2^-52
    "sin_table_f64": (*odd(sin, pi / 4 * mpf("1.001")), 5, f64),
    "cos_table_f64": (lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, lambda z: z**2 / cos(sqrt(z)),
                      mpf("1e-6"), (pi / 4 * mpf("1.001"))**2, 4, f64),
    # sin(pi f) = f q(f^2)
    "sin_pi_f64": (lambda z: sin(pi * sqrt(z)) / sqrt(z), lambda z: sqrt(z) / sin(pi * sqrt(z)),
                   tiny**2, mpf("0.25"), 7, f64),
    # lgamma(v) = (v - 1/2) log(v) - v + log(2 pi) / 2 + q(1 / v^2) / v for v >= 8
    "stirling_f64": (lambda u: stirling_rest(1 / sqrt(u)) / sqrt(u), lambda u: sqrt(u), mpf("1e-7"),
                     mpf(1) / 64, 5, f64),
    # lgamma(t + 2) = (t + 1) t q(t)
    "lgamma_f64": (lambda t: loggamma(t + 2) / ((t + 1) * t), lambda t: (t + 1) * t / loggamma(t + 2),
                   mpf("-0.9999999999"), mpf("1.0000000001"), 28, f64),
    # As stirling_f64, for f64's own needs
    "stirling_wide_f64": (lambda u: stirling_rest(1 / sqrt(u)) / sqrt(u), lambda u: sqrt(u), mpf("1e-7"),
                          mpf(1) / 64, 7, f64),
    # sin(pi f) = pi f (1 - z q(z)), z = f^2
    "sinc_pi_f64": (lambda z: (1 - sin(pi * sqrt(z)) / (pi * sqrt(z))) / z,
                    lambda z: z * pi * sqrt(z) / sin(pi * sqrt(z)), mpf("1e-9"), mpf("0.25"), 8, f64),
}


def main():
    for name in sys.argv[1:] or TABLE:
        c, worst = rounded(*TABLE[name])
        print(f"{name}: error 2^{float(mp.log(worst, 2)):.2f}")
        narrow = len(TABLE[name]) < 6  # f32
        for x in c:
            digits = float(x).hex()
            print("    " + (digits.replace("0000000p", "p") + "f" if narrow else digits) + ",")


if __name__ == "__main__":
    main()
