#!/usr/bin/env python3
"""Stored inputs of a model that lists an initializer among its inputs: it may have a value or not, as a constant and as a
state, and tensors count by name or in the order of ONNX.

    stored_inputs.py FIRN
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile"))
from model_writer import graph, model, node, tensor, value  # noqa: E402 (the path is set above)


def floats(name, *values):
    return tensor(name, [len(values)], struct.pack(f"<{len(values)}f", *values))


# next = w + x, double = next + x; w is [1, 2] unless it is given.
MODEL = model(graph([node("Add", ["w", "x"], ["next"]), node("Add", ["next", "x"], ["double"])],
                    [value("w", [2]), value("x", [2])], [value("double", [2]), value("next", [2])], [floats("w", 1, 2)]))
X, PLAIN, OTHER = (10, 20), [(21, 42), (11, 22)], [(25, 47), (15, 27)]
# Name: stored inputs, stored outputs, whether they are right.
CASES = {
    "required": ([floats("", *X)], PLAIN, True),
    "required_by_name": ([floats("x", *X)], PLAIN, True),
    "required_wrong": ([floats("", *X)], OTHER, False),
    "all": ([floats("", 5, 7), floats("", *X)], OTHER, True),
    "all_by_name": ([floats("x", *X), floats("w", 5, 7)], OTHER, True),
    "all_wrong": ([floats("", 5, 7), floats("", *X)], PLAIN, False),
    "missing": ([], PLAIN, False),
    "too_many": ([floats("", *X)] * 3, PLAIN, False),
}


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def main():
    firn, bad = sys.argv[1], []
    with tempfile.TemporaryDirectory() as folder:
        for name, (inputs, outputs, _) in CASES.items():
            case = os.path.join(folder, name)
            for number in range(2):  # every set starts from the first values again
                data = os.path.join(case, f"test_data_set_{number}")
                os.makedirs(data)
                for i, each in enumerate(inputs):
                    write(os.path.join(data, f"input_{i}.pb"), each)
                for i, each in enumerate(outputs):
                    write(os.path.join(data, f"output_{i}.pb"), floats("", *each))
            write(os.path.join(case, "model.onnx"), MODEL)
            write(os.path.join(folder, "x.pb"), floats("x", *X))
            write(os.path.join(folder, "w.pb"), floats("w", 5, 7))
        for options in ([], ["--engine=eval"], ["--state=w=next"], ["--state=w=next", "--engine=eval"]):
            for name, (_, _, right) in CASES.items():
                done = subprocess.run([firn, "verify", os.path.join(folder, name), *options], capture_output=True, text=True)
                if done.returncode != (0 if right else 1):
                    bad.append(f"verify {name} {options}: exit code {done.returncode}: {done.stdout}{done.stderr}")
            for given, first in ([], "[21, 42]"), (["--input", "w=" + os.path.join(folder, "w.pb")], "[25, 47]"):
                done = subprocess.run([firn, "run", os.path.join(folder, "all", "model.onnx"), *options, "--input",
                                       "x=" + os.path.join(folder, "x.pb"), *given], capture_output=True, text=True)
                if done.returncode != 0 or "double: f32[2] = " + first not in done.stdout:
                    bad.append(f"run {options} {given}: exit code {done.returncode}: {done.stdout}{done.stderr}")
        # The benchmark's worker counts as verify does.
        for name in ("required", "all_by_name", "all"):
            case, worker = os.path.join(folder, name), os.path.join(folder, "worker")
            for options in ([], ["--state=w=next"]):
                subprocess.run([firn, "bench", "--build", case, "-o", worker, *options], check=True, capture_output=True)
                ready = subprocess.run([worker, case, "1"], input="quit\n", capture_output=True, text=True).stdout
                answer = json.loads(ready.splitlines()[0]) if ready else {}
                if not answer.get("ready") or answer["max_error"] > 0:
                    bad.append(f"bench --build {name} {options}: {ready}")
    sys.exit("\n".join(bad) or 0)


main()
