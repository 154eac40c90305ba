"""The shapes of stored inputs as values of a network's symbolic dims.

    bound_dims.py FIRN FOLDER      prints name=value, one a line
"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))
from onnx_messages import read_tensor  # noqa: E402


def bound_dims(firn, model, folder):
    """name=value for the symbols in the types of the inputs, as the stored inputs have them."""
    inputs = json.loads(subprocess.run([firn, "inspect", model, "--json"], capture_output=True, text=True).stdout)["inputs"]
    values = {}
    for i, value in enumerate(inputs):
        path = os.path.join(folder, "test_data_set_0", f"input_{i}.pb")
        dims = re.search(r"\[(.*)\]", value["type"])
        if not dims or not os.path.exists(path):
            continue
        for name, extent in zip(dims.group(1).split(","), read_tensor(path).dims):
            if not name.isdigit():
                values[name] = extent
    return [f"{name}={extent}" for name, extent in values.items()]


if __name__ == "__main__":
    print("\n".join(bound_dims(sys.argv[1], os.path.join(sys.argv[2], "model.onnx"), sys.argv[2])))
