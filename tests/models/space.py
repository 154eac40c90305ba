#!/usr/bin/env python3
"""Winograd's filters are in the object where they pay for their bytes, the summary says so; prepared weights take the
model's own bytes of the object; and -Oz is -Os.

    space.py FIRN
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile"))
from hostile import graph, ints, model, node, tensor, value  # noqa: E402


def weights(name, dims, count):
    numbers = [(k * 7919 % 1000 - 500) / 500 for k in range(count)]
    return tensor(name, dims, struct.pack(f"<{count}f", *numbers))


def convolution(channels, size, product=0):
    """A 3x3 convolution, and beside it a product of that many rows, inner elements and columns."""
    image, square = [1, channels, size, size], [product, product]
    nodes = [node("Conv", ["x", "w"], ["y"], ints("pads", [1, 1, 1, 1]))]
    inputs, outputs = [value("x", image)], [value("y", image)]
    if product:
        nodes.append(node("MatMul", ["a", "b"], ["c"]))
        inputs += [value("a", square), value("b", square)]
        outputs.append(value("c", square))
    return model(graph(nodes, inputs, outputs, [weights("w", [channels, channels, 3, 3], channels * channels * 9)]))


def addition():
    return model(graph([node("Add", ["x", "w"], ["y"])], [value("x", [4, 30])], [value("y", [4, 30])], [weights("w", [4, 30], 120)]))


def main():
    firn = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        path, stem = os.path.join(folder, "model.onnx"), os.path.join(folder, "net")

        def compiled(content, *options):
            """The bytes of weights, convolutions that use the algorithm and that could, the summary, and the object."""
            with open(path, "wb") as file:
                file.write(content)
            command = [firn, "compile", path, "-o", stem, "-mcpu=x86-64-v3", *options]
            summary = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            with open(stem + ".o", "rb") as file, open(stem + ".json") as manifest:
                used = re.search(r"Winograd's algorithm for (\d+) of (\d+) convolutions", summary)
                sizes = json.load(manifest)["sizes"]
                return sizes, used and (int(used[1]), int(used[2])), summary, file.read()

        large = convolution(64, 28)
        model_bytes = 64 * 64 * 9 * 4
        sizes, used, summary, _ = compiled(large)
        assert used == (1, 1) and model_bytes < sizes["weight_bytes"] <= 2 * model_bytes, (summary, sizes)
        assert "--weights=init: +0 B; --no-winograd: none" in summary, summary
        sizes, used, summary, _ = compiled(large, "--weights=init")
        assert used == (1, 1) and sizes["raw_weight_bytes"] == model_bytes, (summary, sizes)
        assert model_bytes < sizes["prepared_weight_bytes"] <= 2 * model_bytes, sizes
        for options in (["--no-winograd"], ["-Os"], ["--math=strict"]):
            sizes, used, summary, _ = compiled(large, *options)
            assert not used and sizes["weight_bytes"] == model_bytes, (options, summary, sizes)

        beside = convolution(64, 28, product=2048)
        sizes, used, summary, _ = compiled(beside)
        assert used == (0, 1) and sizes["weight_bytes"] == model_bytes, (summary, sizes)
        assert "--weights=init" not in summary, summary
        sizes, used, summary, _ = compiled(beside, "--weights=init")
        assert used == (0, 1), (summary, sizes)

        # Weights with nothing to pack are read where they are.
        sizes, used, summary, _ = compiled(addition(), "--weights=init")
        assert not used and sizes["prepared_weight_bytes"] == 0, (summary, sizes)
        assert sizes["raw_weight_bytes"] == sizes["weight_bytes"] and "read in place" in summary, (summary, sizes)

        # Symbols are told apart by the options.
        smallest, largest = compiled(large, "-Os")[3], compiled(large, "-Oz")[3]
        assert len(smallest) == len(largest), f"-Oz differs from -Os: {len(largest)} and {len(smallest)} B"


main()
