#!/usr/bin/env python3
"""The digit recogniser of models/digits in f32 and as `firn quantize` writes it: accuracy, time of a run, size.

    digits.py [--cpu native] [--samples 64] [--drawings 2000] [--budget 0.01] [--seconds 3]

Calibration and test are drawings that the network was not trained on, by make_digits.py and other seeds each. A line for
each model gives the percentage of drawings that it reads, the microseconds of a run on one thread, the bytes of weights,
code and object; the last line their difference and ratios. Firn's binary: $FIRN, default
build/release/tools/firn/firn; the program is built by $CXX.

Needs Python's numpy and onnx.
"""
import argparse
import importlib.util
import json
import os
import subprocess
import tempfile

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIRN = os.environ.get("FIRN") or os.path.join(ROOT, "build", "release", "tools", "firn", "firn")
CALIBRATION_SEED, TEST_SEED = 5, 6


def drawings(count, seed):
    source = importlib.util.spec_from_file_location("make_digits", os.path.join(ROOT, "models", "make_digits.py"))
    make_digits = importlib.util.module_from_spec(source)
    source.loader.exec_module(make_digits)
    return make_digits.dataset(count, np.random.default_rng(seed))


def build(scratch, model, name, flags):
    """Compiles the model as NAME::Digits; the bytes of its weights, code and object."""
    stem = os.path.join(scratch, name)
    subprocess.run([FIRN, "compile", model, "-o", stem, "--class", name + "::Digits", "-q", *flags], check=True)
    with open(stem + ".json", encoding="utf-8") as file:
        sizes = json.load(file)["sizes"]
    return sizes["weight_bytes"], sizes["code_bytes"], sizes["object_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", default="native")
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--drawings", type=int, default=2000)
    parser.add_argument("--budget", type=float, default=0.01)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    flags = ["-mcpu=" + options.cpu]
    exact = os.path.join(ROOT, "models", "digits", "model.onnx")
    with tempfile.TemporaryDirectory() as scratch:
        def inside(name):
            return os.path.join(scratch, name)
        np.save(inside("samples.npy"), drawings(options.samples, CALIBRATION_SEED)[0])
        os.mkdir(inside("data"))
        os.rename(inside("samples.npy"), inside("data/samples.npy"))
        print(subprocess.run([FIRN, "quantize", exact, "--data", inside("data"), "--budget", str(options.budget), "-o",
                              inside("quantized.onnx"), *flags], check=True, capture_output=True, text=True).stdout)
        sizes = [build(scratch, model, name, flags)
                 for name, model in (("exact", exact), ("quantized", inside("quantized.onnx")))]
        images, labels = drawings(options.drawings, TEST_SEED)
        images.astype(np.float32).tofile(inside("pixels"))
        labels.astype(np.uint8).tofile(inside("labels"))
        subprocess.run([os.environ.get("CXX", "c++"), "-std=c++17", "-O2", "-I" + scratch, "-I" + os.path.join(ROOT, "include"),
                        os.path.join(ROOT, "tools", "bench", "digits.cpp"), inside("exact.o"), inside("quantized.o"),
                        *(os.path.join(ROOT, "runtime", name) for name in ("status.cpp", "cpu_features.cpp")),
                        "-o", inside("digits")], check=True)
        told = subprocess.run([inside("digits"), inside("pixels"), inside("labels"), str(options.seconds)], check=True,
                              capture_output=True, text=True).stdout
    right, quantized_right, time, quantized_time, speed_up = map(float, told.split())
    print("| model | read % | us | weights B | code B | object B |\n|---|---|---|---|---|---|")
    for name, accuracy, run, (weights, code, whole) in (("f32", right, time, sizes[0]),
                                                        ("int8", quantized_right, quantized_time, sizes[1])):
        print(f"| {name} | {accuracy:.2f} | {run:.2f} | {weights} | {code} | {whole} |")
    ratios = [quantized / float for float, quantized in zip(*sizes)]
    print(f"| int8 beside f32 | {quantized_right - right:+.2f} | {speed_up:.2f} x faster | " +
          " | ".join(f"{ratio:.2f}" for ratio in ratios) + " |")


main()
