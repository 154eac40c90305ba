#!/usr/bin/env python3
"""Writes small_transformer/model.onnx: texts of up to 32 bytes to vectors of 32 numbers, by two layers of a transformer.

    make_small_transformer.py [OUT_DIR]       default: the folder of this script

Nothing in it is trained: it stands for a network that a program gets and adapts, as models/training.md does. Its weights
have names that PyTorch would give them (layers.0.query.weight). test_data_set_0 gets two texts and the vectors in float64.
Needs numpy and onnx.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LENGTH, WIDTH, HEADS, HIDDEN, LAYERS = 32, 32, 2, 64, 2


def weights():
    rng = np.random.default_rng(21)
    w = {"embedding.weight": rng.normal(0, 1, (256, WIDTH)), "positions": rng.normal(0, .5, (LENGTH, WIDTH))}
    for layer in range(LAYERS):
        for name, inputs, outputs in (("query", WIDTH, WIDTH), ("key", WIDTH, WIDTH), ("value", WIDTH, WIDTH),
                                      ("out", WIDTH, WIDTH), ("up", WIDTH, HIDDEN), ("down", HIDDEN, WIDTH)):
            w[f"layers.{layer}.{name}.weight"] = rng.normal(0, inputs ** -.5, (inputs, outputs))
        for norm in ("norm1", "norm2"):
            w[f"layers.{layer}.{norm}.weight"] = np.ones(WIDTH)
            w[f"layers.{layer}.{norm}.bias"] = np.zeros(WIDTH)
    return {name: value.astype(np.float32) for name, value in w.items()}


def normalized(x, scale, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5) * scale + bias


def split(x):
    return x.reshape(len(x), LENGTH, HEADS, -1).transpose(0, 2, 1, 3)


def encode(text, w):
    """The vectors in float64; `text` is u8[batch, LENGTH]."""
    w = {name: value.astype(np.float64) for name, value in w.items()}
    x = w["embedding.weight"][text] + w["positions"]
    for layer in range(LAYERS):
        def of(name):
            return w[f"layers.{layer}.{name}"]
        h = normalized(x, of("norm1.weight"), of("norm1.bias"))
        q, k, v = (split(h @ of(name + ".weight")) for name in ("query", "key", "value"))
        scores = q @ k.transpose(0, 1, 3, 2) * (WIDTH // HEADS) ** -.5
        e = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (e / e.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = x + mixed @ of("out.weight")
        h = normalized(x, of("norm2.weight"), of("norm2.bias"))
        x = x + np.maximum(h @ of("up.weight"), 0) @ of("down.weight")
    return x.mean(1)


def to_onnx(w):
    nodes = []

    def node(kind, inputs, output, **attributes):
        nodes.append(helper.make_node(kind, inputs.split(), [output], name=output, **attributes))

    node("Cast", "text", "codes", to=TensorProto.INT32)
    node("Gather", "embedding.weight codes", "letters", axis=0)
    node("Add", "letters positions", "x0")
    for layer in range(LAYERS):
        p, x = f"layers.{layer}.", f"x{layer}"
        node("LayerNormalization", f"{x} {p}norm1.weight {p}norm1.bias", f"{p}h", axis=-1, epsilon=1e-5)
        for name in ("query", "key", "value"):
            node("MatMul", f"{p}h {p}{name}.weight", f"{p}{name}")
            node("Reshape", f"{p}{name} split", f"{p}{name}.split")
            node("Transpose", f"{p}{name}.split", f"{p}{name}.heads", perm=[0, 2, 3, 1] if name == "key" else [0, 2, 1, 3])
        node("MatMul", f"{p}query.heads {p}key.heads", f"{p}products")
        node("Mul", f"{p}products scale", f"{p}scores")
        node("Softmax", f"{p}scores", f"{p}shares", axis=-1)
        node("MatMul", f"{p}shares {p}value.heads", f"{p}mixed")
        node("Transpose", f"{p}mixed", f"{p}mixed.rows", perm=[0, 2, 1, 3])
        node("Reshape", f"{p}mixed.rows join", f"{p}joined")
        node("MatMul", f"{p}joined {p}out.weight", f"{p}attended")
        node("Add", f"{x} {p}attended", f"{p}y")
        node("LayerNormalization", f"{p}y {p}norm2.weight {p}norm2.bias", f"{p}g", axis=-1, epsilon=1e-5)
        node("MatMul", f"{p}g {p}up.weight", f"{p}up")
        node("Relu", f"{p}up", f"{p}active")
        node("MatMul", f"{p}active {p}down.weight", f"{p}down")
        node("Add", f"{p}y {p}down", f"x{layer + 1}")
    nodes.append(helper.make_node("ReduceMean", [f"x{LAYERS}"], ["embedding"], name="embedding", axes=[1], keepdims=0))
    initializers = [numpy_helper.from_array(value, name) for name, value in w.items()]
    initializers += [numpy_helper.from_array(np.array([0, 0, HEADS, WIDTH // HEADS]), "split"),
                     numpy_helper.from_array(np.array([0, 0, WIDTH]), "join"),
                     numpy_helper.from_array(np.float32((WIDTH // HEADS) ** -.5), "scale")]
    graph = helper.make_graph(nodes, "small_transformer",
                              [helper.make_tensor_value_info("text", TensorProto.UINT8, ["batch", LENGTH])],
                              [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", WIDTH])], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                             producer_name="make_small_transformer.py")


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    w = weights()
    model = to_onnx(w)
    onnx.checker.check_model(model)
    folder = os.path.join(out, "small_transformer", "test_data_set_0")
    os.makedirs(folder, exist_ok=True)
    onnx.save(model, os.path.join(out, "small_transformer", "model.onnx"))
    text = np.stack([np.frombuffer(line.ljust(LENGTH).encode(), np.uint8) for line in ("lamp on", "what is the time")])
    for kind, name, value in (("input", "text", text), ("output", "embedding", encode(text, w).astype(np.float32))):
        with open(os.path.join(folder, f"{kind}_0.pb"), "wb") as file:
            file.write(numpy_helper.from_array(value, name).SerializeToString())


main()
