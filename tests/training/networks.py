#!/usr/bin/env python3
"""Which tensors of ONNX models are trained: all initializers of floats with dims, also those that importers reshape, but no
statistics of batch norms and no numbers that decide shapes; for batches of any size.

    networks.py FIRN
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile"))
from model_writer import attribute, graph, ints, model, msg, node, tensor, value  # noqa: E402 (the path is set above)

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


def manifest(path, *options):
    done = subprocess.run([sys.argv[1], "compile", path, "--dim", "batch=1..4", "--emit=manifest", *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    if done.returncode:
        failures.append(f"{options}: {done.stderr}")
    return json.loads(done.stdout or "{}")


def expect_trained(path, wanted, *options):
    facts = manifest(path, "--train", "loss=bce_with_logits,optimizer=momentum", *options)
    states = [state["name"] for state in facts.get("states", [])]
    if states != wanted:
        failures.append(f"{options}: trains {states}, wanted {wanted}")
    entries = [entry.get("name", entry.get("entry")) for entry in facts.get("entries", [])]
    if len(entries) != 2:
        failures.append(f"{options}: has entries {entries}")


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "network.onnx")
    network(path)
    everything = ["c.weight", "c.bias", "n.weight", "n.bias", "fc.weight", "fc.bias"]
    for more in ([], ["--weights=init"], ["-O0"], ["--math=strict"], ["--target=arm-none-eabihf", "--mcpu=cortex-m4"]):
        expect_trained(path, everything, *more)
    expect_trained(path, ["c.bias", "n.bias", "fc.bias"], "--trainable=BIASES")
    expect_trained(path, ["fc.weight", "fc.bias"], "--trainable=LAST=1")
    expect_trained(path, ["n.weight", "n.bias"], "--trainable=n.*")
print("\n".join(failures) or "all as expected")
sys.exit(1 if failures else 0)
