#!/usr/bin/env python3
"""The largest error of each elementary function, in units in the last place, over a sweep of its arguments.

  elementary_errors.py FIRN [--cpu NAME] [--samples N] [FUNCTION...]

One model per function and type goes through `firn run`. Arguments are every value of f16, and of f32 and f64 N that are spread
evenly over the bits of all finite numbers, and as many over the range where the function changes most. What is expected comes from
numpy in long double, or for f16 and f32 in f64; where it is subnormal it does not count. Prints a table in Markdown. Needs numpy and
onnx.
"""
import argparse
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

WIDE = np.longdouble
TYPES = {"f16": (np.float16, TensorProto.FLOAT16), "f32": (np.float32, TensorProto.FLOAT), "f64": (np.float64, TensorProto.DOUBLE)}


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x.astype(np.float64))


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


# By operator: what it computes, the range where it changes most, the range of its arguments. erf is known in f64 alone.
FUNCTIONS = {
    "Exp": (np.exp, (-20, 20), None), "Log": (np.log, (0.5, 2), (0, None)), "Sqrt": (np.sqrt, (0, 4), (0, None)),
    "Tanh": (np.tanh, (-4, 4), None), "Sigmoid": (sigmoid, (-10, 10), None), "Erf": (erf, (-4, 4), None),
    "Softplus": (lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), (-10, 10), None),
    "Sin": (np.sin, (-10, 10), (-1e5, 1e5)), "Cos": (np.cos, (-10, 10), (-1e5, 1e5)), "Tan": (np.tan, (-10, 10), (-1e5, 1e5)),
    "Asin": (np.arcsin, (-1, 1), (-1, 1)), "Acos": (np.arccos, (-1, 1), (-1, 1)), "Atan": (np.arctan, (-4, 4), None),
    "Sinh": (np.sinh, (-4, 4), None), "Cosh": (np.cosh, (-4, 4), None), "Asinh": (np.arcsinh, (-4, 4), None),
    "Acosh": (np.arccosh, (1, 4), (1, None)), "Atanh": (np.arctanh, (-1, 1), (-1, 1)),
}


def arguments(dtype, near, domain, samples):
    """Finite arguments within the domain."""
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    if dtype == np.float16:
        x = np.arange(1 << 16, dtype=bits).view(dtype)
    else:
        every = np.random.default_rng(1).integers(0, np.iinfo(bits).max, samples, dtype=bits, endpoint=True).view(dtype)
        x = np.concatenate([every, np.linspace(*near, samples, dtype=dtype)])
    wide = x.astype(WIDE)
    low, high = domain or (None, None)
    return x[np.isfinite(x) & (wide >= (-np.inf if low is None else low)) & (wide <= (np.inf if high is None else high))]


def computed(firn, cpu, op, dtype, wire, x, folder):
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], op, [helper.make_tensor_value_info("x", wire, x.shape)],
                              [helper.make_tensor_value_info("y", wire, x.shape)])
    model, data = os.path.join(folder, "model.onnx"), os.path.join(folder, "x.npy")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10), model)
    np.save(data, x)
    done = subprocess.run([firn, "run", model, "--input", f"x={data}", "--output-dir", folder, f"-mcpu={cpu}"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{op}: {done.stderr}")
    return np.load(os.path.join(folder, "y.npy"))


def errors_in_units(got, wanted, dtype):
    """Of each element, in units in the last place of what is expected; infinities and NaN count as far as they differ."""
    with np.errstate(all="ignore"):
        rounded = wanted.astype(dtype)
        unit = np.spacing(np.abs(np.where(np.isfinite(rounded), rounded, np.finfo(dtype).max))).astype(WIDE)
        error = np.abs(got.astype(WIDE) - wanted.astype(WIDE)) / unit
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    error = np.where(same & ~np.isfinite(rounded), 0, error)
    error = np.where(np.abs(wanted) < np.finfo(dtype).tiny, 0, error)
    return np.where(np.isnan(error), np.inf, error)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("firn")
    parser.add_argument("--cpu", default="native")
    parser.add_argument("--samples", type=int, default=1 << 20)
    parser.add_argument("functions", nargs="*")
    options = parser.parse_args()
    print("| function | " + " | ".join(TYPES) + " |\n|---|" + "---|" * len(TYPES))
    with tempfile.TemporaryDirectory() as folder:
        for op, (function, near, domain) in FUNCTIONS.items():
            if options.functions and op not in options.functions:
                continue
            cells = []
            for dtype, wire in TYPES.values():
                if op == "Erf" and dtype == np.float64:
                    cells.append("")
                    continue
                x = arguments(dtype, near, domain, options.samples)
                got = computed(options.firn, options.cpu, op, dtype, wire, x, folder)
                with np.errstate(all="ignore"):
                    wanted = function(x.astype(WIDE if dtype == np.float64 else np.float64))
                error = errors_in_units(got, wanted, dtype)
                worst = int(np.argmax(error))
                cells.append(f"{float(error[worst]):.2f} at {float(x[worst]):.6g}")
            print(f"| {op} | " + " | ".join(cells) + " |", flush=True)


main()
