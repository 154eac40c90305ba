#!/usr/bin/env python3
"""Writes the network of models/digits with drawn weights, for batches of any size.

    write_digits.py OUT.onnx
"""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile"))
from model_writer import graph, ints, model, node, tensor, value  # noqa: E402 (the path is set above)


def drawn(name, scale, *dims):
    count = 1
    for dim in dims:
        count *= dim
    values = [((i * 37) % 101 - 50) / 50 * scale for i in range(count)]
    return tensor(name, dims, struct.pack(f"<{count}f", *values))


def conv(x, name, y):
    return node("Conv", [x, name + ".weight", name + ".bias"], [y], ints("pads", [1, 1, 1, 1]), ints("strides", [2, 2]))


nodes = [conv("image", "conv1", "c1"), node("Relu", ["c1"], ["r1"]), conv("r1", "conv2", "c2"), node("Relu", ["c2"], ["r2"]),
         node("Flatten", ["r2"], ["flat"]), node("Gemm", ["flat", "dense.weight", "dense.bias"], ["logits"]),
         node("Softmax", ["logits"], ["probabilities"])]
tensors = [drawn("conv1.weight", 0.4, 8, 1, 3, 3), drawn("conv1.bias", 0.1, 8), drawn("conv2.weight", 0.2, 16, 8, 3, 3),
           drawn("conv2.bias", 0.1, 16), drawn("dense.weight", 0.06, 784, 10), drawn("dense.bias", 0, 10)]
with open(sys.argv[1], "wb") as file:
    file.write(model(graph(nodes, [value("image", ["batch", 1, 28, 28])], [value("probabilities", ["batch", 10])], tensors)))
