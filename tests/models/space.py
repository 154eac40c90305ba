#!/usr/bin/env python3
"""The summary says what Winograd's filters take and how to do without them, and -Oz is -Os.

    space.py FIRN
"""
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile"))
from hostile import graph, ints, model, node, tensor, value  # noqa: E402


def convolution():
    numbers = [(k * 7919 % 1000 - 500) / 500 for k in range(64 * 64 * 9)]
    filters = tensor("w", [64, 64, 3, 3], struct.pack(f"<{len(numbers)}f", *numbers))
    image = [1, 64, 28, 28]
    return model(graph([node("Conv", ["x", "w"], ["y"], ints("pads", [1, 1, 1, 1]))], [value("x", image)], [value("y", image)],
                       [filters]))


def main():
    firn = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(convolution())

        def compiled(*options):
            """The summary, and the object's bytes."""
            stem = os.path.join(folder, "net")
            command = [firn, "compile", path, "-o", stem, "-mcpu=x86-64-v3", *options]
            summary = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            with open(stem + ".o", "rb") as file:
                return summary, file.read()

        advice = "--winograd=init or off makes the object smaller"
        summary, transformed = compiled()
        assert advice in summary, summary
        for options in (["--winograd=off"], ["--winograd=init"], ["-Os"]):
            summary, plain = compiled(*options)
            assert advice not in summary, summary
            assert len(plain) < len(transformed) / 2, (options, len(plain), len(transformed))
        # Their symbols are told apart by the options.
        small, smallest = compiled("-Os")[1], compiled("-Oz")[1]
        assert len(small) == len(smallest), f"-Oz differs from -Os: {len(smallest)} and {len(small)} B"


main()
