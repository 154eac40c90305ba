#!/usr/bin/env python3
"""Which tensors of ONNX models are trained: all initializers of floats with dims, also those that importers reshape, but no
statistics of batch norms, which are states that steps move, and no numbers that decide shapes; for batches of any size.
What batch norms and dropouts do in steps and elsewhere.

    networks.py FIRN
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile"))
from model_writer import attribute, graph, ints, model, msg, node, num, tensor, value, varint  # noqa: E402 (the path is set above)

failures = []


def floats(name, dims, values):
    return tensor(name, dims, struct.pack(f"<{len(values)}f", *values))


def drawn(name, *dims):
    count = 1
    for dim in dims:
        count *= dim
    return floats(name, dims, [((i * 37) % 101 - 50) / 128 for i in range(count)])


def network(path):
    """Convolution, batch norm, resizing, a dense layer and a sigmoid."""
    nodes = [node("Conv", ["x", "c.weight", "c.bias"], ["a"], ints("pads", [1, 1, 1, 1])),
             node("BatchNormalization", ["a", "n.weight", "n.bias", "n.mean", "n.variance"], ["b"]),
             node("Resize", ["b", "", "scales"], ["d"], attribute("mode", 3, msg(4, "linear"))),
             node("GlobalAveragePool", ["d"], ["e"]), node("Flatten", ["e"], ["f"]),
             node("Gemm", ["f", "fc.weight", "fc.bias"], ["g"]), node("Sigmoid", ["g"], ["y"])]
    tensors = [drawn("c.weight", 4, 3, 3, 3), drawn("c.bias", 4), drawn("n.weight", 4), drawn("n.bias", 4),
               drawn("n.mean", 4), floats("n.variance", [4], [1, 2, 1, 2]), floats("scales", [4], [1, 1, 2, 2]),
               drawn("fc.weight", 4, 2), drawn("fc.bias", 2)]
    with open(path, "wb") as file:
        file.write(model(graph(nodes, [value("x", ["batch", 3, 8, 8])], [value("y", ["batch", 2])], tensors)))


def firn(verb, path, *options):
    done = subprocess.run([sys.argv[1], verb, path, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120)
    if done.returncode:
        failures.append(f"{verb} {options}: {done.stderr}")
    return done.stdout


def manifest(path, *options):
    return json.loads(firn("compile", path, "--emit=manifest", *options) or "{}")


def expect_trained(path, wanted, *options, freeze=False, batch="batch=1..4"):
    words = "loss=bce_with_logits,optimizer=momentum" + (",freeze_norms" if freeze else "")
    facts = manifest(path, "--dim", batch, "--train", words, *options)
    states = [state["name"] for state in facts.get("states", [])]
    if states != wanted:
        failures.append(f"{options}: trains {states}, wanted {wanted}")
    entries = [entry.get("name", entry.get("entry")) for entry in facts.get("entries", [])]
    if len(entries) != 2:
        failures.append(f"{options}: has entries {entries}")


def expect_same_inference(path):
    """The option changes nothing of a model without it: norms and dropouts are simplified as ever."""
    graph = firn("compile", path, "--dim", "batch=2", "--emit=graph")
    if "running_norm" in graph or "stop_gradient" in graph:
        failures.append("a model without a training step has forms of one")
    trained = firn("compile", path, "--dim", "batch=2", "--emit=graph", "--train", "loss=mse,optimizer=sgd")
    if "running_norm" in trained:
        failures.append("functions of a training step have forms that kernels do not know")


def modes(path, opset, *nodes):
    """A dense layer before the nodes, from "a" to "y"."""
    tensors = [drawn("w", 3, 4), *(drawn(name, 4) for name in ("scale", "shift", "mean")), floats("variance", [4], [1, 2, 1, 2]),
               tensor("ratio", [], struct.pack("<f", 0.25)), tensor("training", [], b"\1", dtype=9)]
    with open(path, "wb") as file:
        file.write(model(graph([node("MatMul", ["x", "w"], ["a"]), *nodes], [value("x", ["batch", 3])],
                               [value("y", ["batch", 4])], tensors), opset=opset))


def functions_of(path, words=""):
    text = firn("compile", path, "--dim", "batch=2", "--emit=graph", "--passes=differentiate", "--train",
                "loss=mse,optimizer=sgd" + words)
    return {part.split("(")[0]: part for part in text.split("func @")[1:]}


def forms(folder):
    """Modes that nodes have are not looked at: @step alone trains."""
    path = os.path.join(folder, "forms.onnx")
    dropouts = {10: [node("Dropout", ["a"], ["y"], attribute("ratio", 1, varint(2 << 3 | 5) + struct.pack("<f", 0.25)))],
                13: [node("Dropout", ["a", "ratio"], ["y"])],
                14: [node("Dropout", ["a", "ratio", "training"], ["y", "mask"])]}
    for opset, nodes in dropouts.items():
        modes(path, opset, *nodes)
        functions = functions_of(path)
        for name, wanted in (("main", False), ("evaluate", False), ("step", True)):
            if ("constant [1073741824] : u32" in functions.get(name, "")) != wanted:
                failures.append(f"dropout of opset {opset}: @{name} drops, or does not: {functions.get(name)}")
        if "u32" in functions_of(path, ",dropout=off").get("step", ""):
            failures.append(f"dropout of opset {opset} is not off")
    inputs = ["a", "scale", "shift", "mean", "variance"]
    norms = {13: node("BatchNormalization", inputs, ["y"]),
             15: node("BatchNormalization", inputs, ["y", "m", "v"], attribute("training_mode", 2, num(3, 1)))}
    for opset, norm in norms.items():
        modes(path, opset, norm)
        functions = functions_of(path)
        for name, wanted in (("main", False), ("evaluate", False), ("step", True)):
            if ("next mean" in functions.get(name, "")) is False or ("batch_norm" in functions.get(name, "")) != wanted:
                failures.append(f"norm of opset {opset}: @{name} goes by the wrong statistics: {functions.get(name)}")


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "network.onnx")
    network(path)
    trained = ["c.weight", "c.bias", "n.weight", "n.bias", "fc.weight", "fc.bias"]
    statistics = ["n.mean", "n.variance"]
    everything = trained + statistics
    for more in ([], ["--weights=init"], ["-O0"], ["--math=strict"], ["--target=arm-none-eabihf", "--mcpu=cortex-m4"]):
        expect_trained(path, everything, *more)
    expect_trained(path, trained, freeze=True)
    expect_trained(path, ["c.bias", "n.bias", "fc.bias", *statistics], "--trainable=BIASES")
    expect_trained(path, ["n.weight", "n.bias", *statistics], "--trainable=NORMS")
    expect_trained(path, ["fc.weight.lora_a", "fc.weight.lora_b"], "--lora=rank=1:fc.*")
    expect_trained(path, ["n.bias", "fc.weight.lora_a", "fc.weight.lora_b", *statistics], "--lora=rank=2,alpha=1:fc.weight",
                   "--trainable=n.bias")
    expect_trained(path, ["fc.weight", "fc.bias"], "--trainable=LAST=1")
    expect_trained(path, [*trained[2:4], *statistics], "--trainable=n.*")
    for batch, size in (("batch=1..4", 1), ("batch=2..8:2", 2)):
        expect_trained(path, everything, f"--micro-batch={size}", batch=batch)
    expect_same_inference(path)
    forms(folder)
print("\n".join(failures) or "all as expected")
sys.exit(1 if failures else 0)
