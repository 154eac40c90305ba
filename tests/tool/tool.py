"""What the tests of the command line share: running firn, small models, failures that are collected."""
import os
import struct
import subprocess
import sys
import tempfile

FIRN, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "tests", "hostile"))
DIGITS = os.path.join(SOURCE, "models", "digits")
MODEL = os.path.join(DIGITS, "model.onnx")
IMAGE = os.path.join(DIGITS, "test_data_set_0", "input_0.pb")

from model_writer import attribute, graph, model, msg, node, num, tensor, value  # noqa: E402 (the path is set above)

failures = []


def firn(*arguments, **more):
    """Runs the tool; the finished process with its two outputs as text."""
    more.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([FIRN, *arguments], stderr=subprocess.PIPE, text=True, timeout=120, **more)


def check(condition, what):
    if not condition:
        failures.append(what)


def expect(arguments, code, *texts, **more):
    """Fails unless firn ends with this code and one of its outputs holds each text."""
    done = firn(*arguments, **more)
    said = (done.stdout or "") + done.stderr
    check(done.returncode == code, f"firn {' '.join(arguments)}: exit code {done.returncode}, wanted {code}: {said[:400]}")
    for text in texts:
        check(text in said, f"firn {' '.join(arguments)}: no '{text}' in: {said[:600]}")
    return done


def write_model(path, nodes, inputs, outputs, initializers=()):
    with open(path, "wb") as file:
        file.write(model(graph(nodes, inputs, outputs, initializers)))
    return path


def symbolic_model(folder):
    """y = relu(x) with x: f32[batch,3,height]."""
    dims = ["batch", 3, "height"]
    return write_model(os.path.join(folder, "symbolic.onnx"), [node("Relu", ["x"], ["y"])], [value("x", dims)], [value("y", dims)])


def counted_model(folder):
    """The determinant of as many rows as hold something: their number depends on data."""
    nodes = [node("NonZero", ["x"], ["at"]), node("Cast", ["at"], ["row"], attribute("to", 2, num(3, 1))), node("Transpose", ["row"], ["column"]),
             node("MatMul", ["column", "row"], ["square"]), node("Det", ["square"], ["y"])]
    return write_model(os.path.join(folder, "counted.onnx"), nodes, [value("x", [4])], [value("y", [])])


def shapeless_model(folder):
    """An input without a shape."""
    return write_model(os.path.join(folder, "shapeless.onnx"), [node("Relu", ["x"], ["y"])], [msg(1, "x") + msg(2, msg(1, num(1, 1)))], [value("y", [2, 3])])


# Types of tensors by their numbers in ONNX, with their words in .npy files and in struct.
F32, I64, BOOL = 1, 7, 9
FORMS = {F32: ("<f4", "f"), I64: ("<i8", "q"), BOOL: ("|b1", "?")}


def write_npy(path, dtype, dims, numbers):
    descriptor, letter = FORMS[dtype]
    header = f"{{'descr': '{descriptor}', 'fortran_order': False, 'shape': ({''.join(f'{d},' for d in dims)}), }}"
    header += " " * (-(11 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(numbers)}{letter}", *numbers))


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix="firn-tool-")


def finish():
    print("\n".join(failures) or "all as expected")
    sys.exit(1 if failures else 0)
