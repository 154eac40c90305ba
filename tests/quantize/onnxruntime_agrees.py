#!/usr/bin/env python3
"""ONNX Runtime loads the quantised models and computes what Firn does."""
import os
import sys

try:
    import numpy as np
    import onnxruntime
except ImportError as error:
    print(f"SKIPPED: {error}")
    sys.exit(0)

from sample_models import MODELS, draw, npy, read_npy, stacked, write, write_samples
from tool import check, expect, finish, temporary_folder


def multiplies_bytes():
    """Whether ONNX Runtime's integer products are exact here: on CPUs of x86 that multiply no groups of bytes, two products
    of u8 and s8 saturate together."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            text = info.read()
    except OSError:
        return True
    return "avx" not in text or "vnni" in text


def session(path, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def check_model(name, make, activations):
    model, dims = make()
    path = write(f"{name}/model.onnx", model)
    write_samples(f"{name}/data", dims)
    quantised = f"{name}/{activations}.onnx"
    expect(["quantize", "--size", path, "--data", f"{name}/data", "-o", quantised, "--activations", activations], 0)
    values = draw(dims, 1000)
    x = np.array(values, np.float32).reshape(dims)
    exact, = session(path, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL).run(None, {"x": x})
    input_ = write(f"{name}/x.npy", npy(dims, values))
    expect(["run", quantised, "--input", "x=" + input_, "--output-dir", f"{name}/firn"], 0)
    ours = np.array(read_npy(f"{name}/firn/y.npy"), np.float32).reshape(exact.shape)
    # Sums in another order may round to the neighbouring step; with optimisations it computes in integers itself.
    levels = [(onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, .01)]
    if multiplies_bytes():
        levels.append((onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL, .05))
    for level, most in levels:
        found, = session(quantised, level).run(None, {"x": x})
        error = np.linalg.norm(found - ours) / np.linalg.norm(exact)
        check(error <= most, f"{name} {activations} at {level}: ONNX Runtime differs from Firn by {error}, wanted at most {most}")


def main():
    with temporary_folder() as folder:
        os.chdir(folder)
        for name, make in MODELS.items():
            check_model(name, make, "u8")
        check_model("stacked", stacked, "u8")
        check_model("convolutional", MODELS["convolutional"], "s8")
        check_model("transformer", MODELS["transformer"], "u16")
    finish()


main()
