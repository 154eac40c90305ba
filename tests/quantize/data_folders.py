#!/usr/bin/env python3
"""The same calibration data in every form that is read gives the same model."""
import io
import os
import struct
import zipfile

from sample_models import MODELS, draw, gained, npy, write, write_samples
from tool import check, expect, finish, temporary_folder, tensor


def archive(arrays, compression=zipfile.ZIP_STORED):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", compression) as file:
        for name, data in arrays.items():
            file.writestr(name + ".npy", data)
    return memory.getvalue()


def check_inputs_left_out():
    """Inputs that options fix need no data, and what there is of them is not read; states start from zeros, or from the data's."""
    path = write("gained/model.onnx", gained()[0])
    for i in range(4):
        x, zeros = npy([2, 24], draw([2, 24], i)), npy([2, 6], [0.0] * 12)
        write(f"gained/x/{i}.npy", x)
        write(f"gained/all/{i}/x.npy", x)
        write(f"gained/all/{i}/past.npy", zeros)
        write(f"gained/all/{i}/gain.npy", npy([6], [9.0] * 6))
        write(f"gained/archives/{i}.npz", archive({"x": x, "past": zeros}))
        write(f"gained/sets/{i}/input_0.pb", tensor("", [2, 24], x[-192:]))
        write(f"gained/past/{i}.npz", archive({"x": x, "past": npy([2, 6], draw([2, 6], 100 + i))}))
    options = ["--state=past=present", "--const=gain=1,-2,.5,3,1,.25"]
    for form in ("x", "sets", "past", "all", "archives"):
        done = expect(["quantize", "--size", path, "--data", "gained/" + form, "-o", f"gained/{form}.onnx", *options], 0, "on 4 samples")
        sum_row, = [line for line in done.stdout.splitlines() if line.startswith("sum ")]
        reason = "int8" if form == "past" else "no range in f32 for its input 'past'" if form in ("x", "sets") else "'past' is constant on"
        check(reason in sum_row, f"{form}: no '{reason}' in: {sum_row}")
        check("no range in f32 for its input 'gain'" in done.stdout, f"{form}: data of a fixed input was read: {done.stdout}")
    for form in ("sets", "all", "archives"):
        check(open("gained/x.onnx", "rb").read() == open(f"gained/{form}.onnx", "rb").read(), f"{form}: another model")
    expect(["compile", "gained/past.onnx", "-o", "gained/past", *options], 0)


def check_rows():
    """A dim that an option sets says how many rows are a sample."""
    path = write("perceptron/model.onnx", MODELS["perceptron"]()[0])
    write("perceptron/data/all.npy", npy([12, 24], draw([12, 24], 0)))
    for option, samples in (("--dim=batch=3", 4), ("--shape=x=4x24", 3), ("--dim=batch=1..16", 1)):
        expect(["quantize", "--size", path, "--data", "perceptron/data", "-o", "perceptron/q.onnx", option], 0, f"on {samples} samples")


def main():
    with temporary_folder() as folder:
        os.chdir(folder)
        model, dims = MODELS["convolutional"]()
        path = write("net/model.onnx", model)
        write_samples("files", dims, 3)
        drawn = [draw(dims, i) for i in range(3)]
        write("rows/all.npy", npy([3, *dims[1:]], sum(drawn, [])))
        for i, values in enumerate(drawn):
            stored = tensor("x", dims, struct.pack(f"<{len(values)}f", *values))
            write(f"sets/test_data_set_{i}/input_0.pb", stored)
            write(f"tensors/{i}.pb", stored)
            write(f"named/{i}/x.npy", npy(dims, values))
            write(f"archives/{i}.npz", archive({"x": npy(dims, values)}))
        expect(["quantize", "--size", path, "--data", "files", "-o", "files.onnx"], 0, "on 3 samples")
        wanted = open("files.onnx", "rb").read()
        for form in ("rows", "sets", "tensors", "named", "archives"):
            expect(["quantize", "--size", path, "--data", form, "-o", form + ".onnx"], 0, "on 3 samples")
            check(open(form + ".onnx", "rb").read() == wanted, f"{form}: another model")
        write("packed/a.npz", archive({"x": npy(dims, drawn[0])}, zipfile.ZIP_DEFLATED))
        expect(["quantize", "--size", path, "--data", "packed", "-o", "packed.onnx"], 2, "numpy.savez, not numpy.savez_compressed")
        write("other/a.npz", archive({"y": npy(dims, drawn[0]), "x": npy(dims, drawn[0])}))
        expect(["quantize", "--size", path, "--data", "other", "-o", "other.onnx"], 2, "holds 'y', the model's inputs are 'x'")
        check_inputs_left_out()
        check_rows()
        write("cut/a.npz", archive({"x": npy(dims, drawn[0])})[:-30])
        expect(["quantize", "--size", path, "--data", "cut", "-o", "cut.onnx"], 2, "not a .npz file")
    finish()


main()
