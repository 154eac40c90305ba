"""The shapes of stored inputs as values of a network's symbolic dims.

    bound_dims.py FIRN FOLDER      prints name=value, one a line
"""
import json
import os
import re
import subprocess
import sys


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
    """name=value for the symbols in the types of the inputs, as the stored inputs have them."""
    inputs = json.loads(subprocess.run([firn, "inspect", model, "--json"], capture_output=True, text=True).stdout)["inputs"]
    values = {}
    for i, value in enumerate(inputs):
        path = os.path.join(folder, "test_data_set_0", f"input_{i}.pb")
        dims = re.search(r"\[(.*)\]", value["type"])
        if not dims or not os.path.exists(path):
            continue
        for name, extent in zip(dims.group(1).split(","), tensor_header(path)[1]):
            if not name.isdigit():
                values[name] = extent
    return [f"{name}={extent}" for name, extent in values.items()]


if __name__ == "__main__":
    print("\n".join(bound_dims(sys.argv[1], os.path.join(sys.argv[2], "model.onnx"), sys.argv[2])))
