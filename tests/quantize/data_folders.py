#!/usr/bin/env python3
"""The same calibration data in every form that is read gives the same model."""
import io
import os
import struct
import zipfile

from sample_models import MODELS, draw, npy, write, write_samples
from tool import check, expect, finish, temporary_folder, tensor


def archive(arrays, compression=zipfile.ZIP_STORED):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", compression) as file:
        for name, data in arrays.items():
            file.writestr(name + ".npy", data)
    return memory.getvalue()


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
        expect(["quantize", path, "--data", "files", "-o", "files.onnx"], 0, "on 3 samples")
        wanted = open("files.onnx", "rb").read()
        for form in ("rows", "sets", "tensors", "named", "archives"):
            expect(["quantize", path, "--data", form, "-o", form + ".onnx"], 0, "on 3 samples")
            check(open(form + ".onnx", "rb").read() == wanted, f"{form}: another model")
        write("packed/a.npz", archive({"x": npy(dims, drawn[0])}, zipfile.ZIP_DEFLATED))
        expect(["quantize", path, "--data", "packed", "-o", "packed.onnx"], 2, "numpy.savez, not numpy.savez_compressed")
        write("other/a.npz", archive({"y": npy(dims, drawn[0]), "x": npy(dims, drawn[0])}))
        expect(["quantize", path, "--data", "other", "-o", "other.onnx"], 2, "holds 'y', the model's inputs are 'x'")
        write("cut/a.npz", archive({"x": npy(dims, drawn[0])})[:-30])
        expect(["quantize", path, "--data", "cut", "-o", "cut.onnx"], 2, "not a .npz file")
    finish()


main()
