#!/usr/bin/env python3
"""Firn's quantiser beside ONNX Runtime's static one, on data that neither has seen.

    quantizers.py FOLDER... [--samples 16] [--unseen 16] [--objects 2] [--flags "-mcpu=native"] [--keep DIR] [--markdown]

FOLDER has model.onnx and test_data_set_0. Samples are like the stored inputs: floats are the stored values in another
order, made 0.7 to 1.2 times as large; integers are drawn from the range of the stored ones, but flags, rising numbers and
single values stay. Both quantisers get the same samples; ONNX Runtime's takes the minimum and maximum, a scale per channel of
weights, and writes QuantizeLinear and DequantizeLinear, behind the preparation that its guide asks for.

A line gives the signal-to-noise ratio of the worst float output against the f32 model over all unseen samples, in decibels:
of both files computed by ONNX Runtime, and the gain; that of ours as Firn compiles it, over the first --objects of the
unseen samples (beside ONNX Runtime's on the same); the quantisers' seconds; the file as a share of the f32 one. `-`: it is
not to be had, and a line below says why. Firn's binary: $FIRN, default build/release/tools/firn/firn.

Needs Python's onnx, onnxruntime and numpy.
"""
import argparse
import os
import shlex
import subprocess
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIRN = os.environ.get("FIRN") or os.path.join(ROOT, "build", "release", "tools", "firn", "firn")


def stored_inputs(folder, names):
    arrays = {}
    for i, name in enumerate(names):
        tensor = onnx.TensorProto()
        with open(os.path.join(folder, "test_data_set_0", f"input_{i}.pb"), "rb") as file:
            tensor.ParseFromString(file.read())
        arrays[name] = numpy_helper.to_array(tensor)
    return arrays


def like(stored, random):
    if stored.dtype.kind == "f":
        return (random.permutation(stored.ravel()) * random.uniform(.7, 1.2)).astype(stored.dtype).reshape(stored.shape)
    flat = stored.ravel()
    stays = stored.dtype.kind not in "iu" or flat.size < 2 or flat.max() < 2 or (np.diff(flat.astype(np.int64)) > 0).all()
    return stored if stays else random.integers(flat.min(), flat.max(), stored.shape, stored.dtype, endpoint=True)


def write_samples(folder, names, samples):
    for i, sample in enumerate(samples):
        data = os.path.join(folder, f"test_data_set_{i}")
        os.makedirs(data, exist_ok=True)
        for number, name in enumerate(names):
            with open(os.path.join(data, f"input_{number}.pb"), "wb") as file:
                file.write(numpy_helper.from_array(sample[name], name).SerializeToString())


def session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def outputs(path, samples):
    runner = session(path)
    names = [output.name for output in runner.get_outputs()]
    return [dict(zip(names, runner.run(None, sample))) for sample in samples]


def firn_outputs(path, samples, names, flags, scratch):
    """For each sample a function from an output's name to its value."""
    for sample in samples:
        given = []
        for i, name in enumerate(names):
            np.save(os.path.join(scratch, f"{i}.npy"), sample[name])
            given += ["--input", f"{name}={scratch}/{i}.npy"]
        result = os.path.join(scratch, "firn")
        subprocess.run([FIRN, "run", path, *given, "--output-dir", result, *flags], check=True, capture_output=True, text=True)
        yield lambda name, folder=result: np.load(os.path.join(folder, name.replace("/", "_").replace(":", "_") + ".npy"))


def decibels(exact, found):
    """Of the worst output of floats; a value per sample and output by `found(name)`."""
    noise, signal = {}, {}
    for wanted, get in zip(exact, found):
        for name, value in wanted.items():
            if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
                continue
            value, other = value.astype(np.float64), get(name).astype(np.float64)
            signal[name] = signal.get(name, 0) + np.square(value).sum()
            noise[name] = noise.get(name, 0) + (np.square(other - value).sum() if other.shape == value.shape else np.inf)
    if not signal:
        raise ValueError("no output of floats")
    return min(10 * np.log10(signal[name] / max(noise[name], 1e-300)) for name in signal)


class Reader:
    def __init__(self, samples):
        self.rest = iter(samples)

    def get_next(self):
        return next(self.rest, None)


def quantise_by_onnxruntime(model, result, samples, scratch):
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
    prepared = os.path.join(scratch, "prepared.onnx")
    quant_pre_process(model, prepared, skip_symbolic_shape=True)
    quantize_static(prepared, result, Reader(samples), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, calibrate_method=CalibrationMethod.MinMax)


class Row:
    """What is measured of one network; what fails leaves its reason."""

    def __init__(self, folder):
        self.name, self.folder, self.values, self.reasons = os.path.basename(os.path.normpath(folder)), folder, {}, []

    def attempt(self, what, measure):
        try:
            return measure()
        except subprocess.CalledProcessError as error:
            self.reasons.append(f"{what}: {error.stderr.strip().splitlines()[-1] if error.stderr else error}")
        except Exception as error:  # onnxruntime raises its own, by the operator
            self.reasons.append(f"{what}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        return None

    def measure(self, options, scratch):
        model = os.path.join(self.folder, "model.onnx")
        names = [value.name for value in session(model).get_inputs()]
        stored, random = stored_inputs(self.folder, names), np.random.default_rng(1)
        drawn = [{name: like(stored[name], random) for name in names} for _ in range(options.samples + options.unseen)]
        seen, unseen = drawn[:options.samples], drawn[options.samples:]
        write_samples(os.path.join(scratch, "data"), names, seen)
        exact = outputs(model, unseen)
        ours, theirs = os.path.join(scratch, "firn.onnx"), os.path.join(scratch, "ort.onnx")
        quantisers = {
            "ort": (theirs, lambda: quantise_by_onnxruntime(model, theirs, seen, scratch)),
            "firn": (ours, lambda: subprocess.run([FIRN, "quantize", "--size", model, "--data", os.path.join(scratch, "data"), "-o", ours,
                                                   *options.flags], check=True, capture_output=True, text=True))}
        for who, (path, quantise) in quantisers.items():
            start = time.time()
            self.attempt(who + " quantises", quantise)
            if not os.path.exists(path):
                continue
            self.values[who + " s"] = time.time() - start
            self.values[who + " size"] = os.path.getsize(path) / os.path.getsize(model)
            found = self.attempt(who + "'s file in ONNX Runtime", lambda p=path: outputs(p, unseen))
            if found:
                self.values[who] = self.attempt("SQNR", lambda f=found: decibels(exact, [one.__getitem__ for one in f]))
            if found and who == "firn" and options.objects > 0:
                few = unseen[:options.objects]
                self.values["object"] = self.attempt("firn run", lambda: decibels(
                    exact, firn_outputs(path, few, names, options.flags, scratch)))
                self.values["ort same"] = self.attempt("SQNR", lambda f=found: decibels(
                    exact[:len(few)], [one.__getitem__ for one in f[:len(few)]]))
        if self.values.get("ort") is not None and self.values.get("firn") is not None:
            self.values["gain"] = self.values["firn"] - self.values["ort"]

    def cells(self):
        def cell(key, form):
            value = self.values.get(key)
            return "-" if value is None else format(value, form)
        return [self.name, cell("ort", ".1f"), cell("firn", ".1f"), cell("gain", "+.1f"),
                f"{cell('object', '.1f')} ({cell('ort same', '.1f')})", cell("ort s", ".1f"), cell("firn s", ".1f"),
                cell("ort size", ".2f"), cell("firn size", ".2f")]


HEADINGS = ["network", "ORT dB", "Firn dB", "gain", "object (ORT) dB", "ORT s", "Firn s", "ORT size", "Firn size"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--unseen", type=int, default=16)
    parser.add_argument("--objects", type=int, default=2, help="unseen samples that are run by Firn too")
    parser.add_argument("--flags", type=shlex.split, default=["-mcpu=native"], help="for firn quantize and firn run")
    parser.add_argument("--keep", metavar="DIR", help="leave models and data there, a folder for each network")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    form = "| " + " | ".join(["{}"] * len(HEADINGS)) + " |" if options.markdown else \
        "{:24} {:>7} {:>7} {:>6} {:>16} {:>7} {:>7} {:>8} {:>9}"
    print(form.format(*HEADINGS))
    if options.markdown:
        print("|" + "---|" * len(HEADINGS))
    for folder in options.folders:
        with tempfile.TemporaryDirectory() as scratch:
            if options.keep:
                scratch = os.path.join(options.keep, os.path.basename(os.path.normpath(folder)))
                os.makedirs(scratch, exist_ok=True)
            row = Row(folder)
            row.attempt("f32", lambda: row.measure(options, os.path.abspath(scratch)))
        print(form.format(*row.cells()), flush=True)
        for reason in row.reasons:
            print(f"  {row.name}: {reason}", flush=True)


main()
