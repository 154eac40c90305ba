#!/usr/bin/env python3
"""Fails if a network's arena is more than 5 % above the bound of its schedule, or above a number of bytes.

    arena.py FIRN MODEL|FOLDER... [--most BYTES]

A folder holds model.onnx and perhaps test_data_set_0, whose shapes bind the symbolic dims.
"""
import json
import os
import re
import subprocess
import sys

RATIO = 1.05


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def tensor_header(path):
    """Name and dims of a TensorProto."""
    with open(path, "rb") as file:
        data = file.read()
    name, dims, at = "", [], 0
    while at < len(data):
        key, at = varint(data, at)
        field, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
            if field == 1:
                dims.append(value)
        elif wire == 2:
            size, at = varint(data, at)
            if field == 8:
                name = data[at:at + size].decode()
            inner = at
            while field == 1 and inner < at + size:
                value, inner = varint(data, inner)
                dims.append(value)
            at += size
        else:
            at += 8 if wire == 1 else 4
    return name, dims


def bound_dims(firn, model, folder):
    """--dim options for the symbols in the types of the inputs, as the stored inputs have them."""
    inputs = json.loads(subprocess.run([firn, "inspect", model, "--json"], capture_output=True, text=True).stdout)["inputs"]
    options = {}
    for i, value in enumerate(inputs):
        path = os.path.join(folder, "test_data_set_0", f"input_{i}.pb")
        dims = re.search(r"\[(.*)\]", value["type"])
        if not dims or not os.path.exists(path):
            continue
        for name, extent in zip(dims.group(1).split(","), tensor_header(path)[1]):
            if not name.isdigit():
                options[name] = extent
    return [word for name, extent in options.items() for word in ("--dim", f"{name}={extent}")]


def main():
    firn, *paths = sys.argv[1:]
    most = None
    if "--most" in paths:
        most = int(paths[paths.index("--most") + 1])
        paths = paths[:paths.index("--most")]
    failed = not paths
    for path in paths:
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        model = os.path.join(path, "model.onnx") if os.path.isdir(path) else path
        command = [firn, "compile", model, "--emit=manifest", *bound_dims(firn, model, folder)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{path}: {done.stderr or done.stdout}")
            failed = True
            continue
        manifest = json.loads(done.stdout)
        arena, bound = manifest["sizes"]["arena_bytes"], manifest["sizes"]["arena_lower_bound"]
        wrong = arena > RATIO * bound or (most is not None and arena > most)
        failed |= wrong
        print(f"{path}: arena {arena:,} B, lower bound {bound:,} B, ratio {arena / max(bound, 1):.3f}{'  TOO LARGE' if wrong else ''}")
    sys.exit(1 if failed else 0)


main()
