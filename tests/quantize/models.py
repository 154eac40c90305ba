#!/usr/bin/env python3
"""Small networks are quantised: how near the results are on data that the quantiser did not see, what the report says, that
budgets hold, that the bytes are the same every time."""
import os
import re
import struct

from sample_models import MODELS, customised, draw, embedding, npy, read_npy, write, write_samples
from tool import check, expect, finish, firn, temporary_folder, tensor

# Layers, and the largest relative error on unseen data.
EXPECTED = {"convolutional": (6, .03), "gated": (10, .03), "perceptron": (2, .02), "transformer": (8, .03)}
# Another type of activations, and the error that it may leave.
ACTIVATIONS = {"gated": ("u16", .01), "transformer": ("s8", .03)}


def outputs(model, name, dims):
    """The output on an input that no calibration saw."""
    unseen = write("unseen/x.npy", npy(dims, draw(dims, 1000)))
    expect(["run", model, "--input", "x=" + unseen, "--output-dir", name], 0)
    return read_npy(os.path.join(name, "y.npy"))


def relative_error(exact, found):
    return (sum((a - b) ** 2 for a, b in zip(exact, found)) / sum(a * a for a in exact)) ** .5


def check_model(name):
    model, dims = MODELS[name]()
    layers, most = EXPECTED[name]
    path = write(os.path.join(name, "model.onnx"), model)
    data = write_samples(os.path.join(name, "data"), dims)
    done = expect(["quantize", "--size", path, "--data", data, "-o", name + "/q.onnx"], 0, f" of {layers} layers in int8")
    exact = outputs(path, name + "/exact", dims)
    error = relative_error(exact, outputs(name + "/q.onnx", name + "/found", dims))
    check(0 < error < most, f"{name}: the error on unseen data is {error}, wanted below {most}: {done.stdout}")
    check(os.path.getsize(name + "/q.onnx") < os.path.getsize(path) + 10000, f"{name}: the file grew")
    with open(name + "/q.html", encoding="utf-8") as page:
        check(page.read().count("<tr>") >= layers, f"{name}: the page lacks layers")

    if name in ACTIVATIONS:
        activations, limit = ACTIVATIONS[name]
        expect(["quantize", "--size", path, "--data", data, "-o", name + "/other.onnx", "--activations", activations], 0,
               f"0 of {layers} layers in int8, " if activations == "u16" else f" of {layers} layers in int8")
        error = relative_error(exact, outputs(name + "/other.onnx", name + "/other", dims))
        check(0 < error < limit, f"{name} on {activations}: the error is {error}, wanted below {limit}")


def check_same_bytes():
    expect(["quantize", "--size", "gated/model.onnx", "--data", "gated/data", "-o", "gated/again.onnx", "-q"], 0)
    check(open("gated/q.onnx", "rb").read() == open("gated/again.onnx", "rb").read(), "other bytes the second time")


def check_budget():
    """A budget that 8 bits miss takes some layers out; the error that is reported holds it. One of almost nothing takes all, and it is
    said where even that misses it."""
    done = expect(["quantize", "--size", "convolutional/model.onnx", "--data", "convolutional/data", "--budget", "0.004"], 0, "in f32", "for the budget")
    found = re.search(r"error +([0-9.e-]+)", done.stdout)
    check(found and float(found[1]) <= .004 and "missed" not in done.stdout + done.stderr, f"the budget does not hold: {done.stdout}")
    check(os.path.exists("convolutional/model.int8.onnx") and os.path.exists("convolutional/model.int8.html"), "no output beside the model")
    expect(["quantize", "--size", "convolutional/model.onnx", "--data", "convolutional/data", "--budget", "1e-9"], 0, "0 of 6 layers in int8",
           "the budget of 1e-09 is missed: the error is ")
    done = expect(["quantize", "--size", "convolutional/model.onnx", "--data", "convolutional/data", "--budget", "1e-9", "-q"], 0)
    check("warning: the budget of 1e-09 is missed" in done.stderr and not done.stdout, f"--quiet hides a missed budget: {done.stderr}")
    with open("convolutional/model.int8.html", encoding="utf-8") as page:
        check("is missed" in page.read(), "the page does not say that the budget is missed")


def check_gains():
    """Layers that gain no time stay in floats, with the reason and what they would have saved; a model that is no faster is told to
    be none, and for which CPU. Bytes are the answer only where they are asked for."""
    for cpu in ("x86-64-v2", "x86-64-v3", "cortex-m4"):
        done = expect(["quantize", "convolutional/model.onnx", "--data", "convolutional/data", "-mcpu=" + cpu,
                       *(["--target=arm-none-eabi"] if cpu == "cortex-m4" else [])], 0)
        ratio = re.search(r"predicted +([0-9.]+) of the time in f32, on " + cpu, done.stdout)
        check(ratio and float(ratio[1]) <= 1, f"{cpu}: slower, or no prediction: {done.stdout}")
        rows = [line for line in done.stdout.splitlines() if re.match(r"(conv|classifier)", line)]
        check(rows and all((" f32 " in row) == ("faster" in row) for row in rows), f"{cpu}: layers without a reason: {rows}")
        slow = [row for row in rows if " f32 " in row]
        check((len(slow) == len(rows)) == ("no layer is predicted to be faster" in done.stderr and "--size" in done.stderr),
              f"{cpu}: the warning is missing, or wrong: {done.stderr}")


def check_custom_operator():
    """A function of the program computes between layers."""
    model, dims = customised()
    path = write("custom/model.onnx", model)
    data = write_samples("custom/data", dims)
    write("custom/scale.c", b"""#include <firn/custom_op.h>
int32_t scale(const firn_custom_call* call) {
  const firn_custom_tensor x = firn_custom_input(call, 0), y = firn_custom_output(call, 0);
  for (int32_t i = 0; i < x.dims[0] * x.dims[1]; ++i) ((float*)y.data)[i] = 3 * ((const float*)x.data)[i];
  return 0;
}
""")
    options = ["--custom-op=com.acme:Scale=scale", "--value=s=f32[4,16]", "--link", "custom/scale.c"]
    expect(["quantize", "--size", path, "--data", data, "-o", "custom/q.onnx", "--depfile", "custom/q.d", *options], 0, "2 of 2 layers in int8")
    found = []
    unseen = write("custom/unseen.npy", npy(dims, draw(dims, 1000)))
    for each in (path, "custom/q.onnx"):
        expect(["run", each, "--input", "x=" + unseen, "--output-dir", each + ".out", *options], 0)
        found.append(read_npy(each + ".out/y.npy"))
    error = relative_error(*found)
    check(0 < error < .03, f"custom: the error on unseen data is {error}")
    with open("custom/q.d", encoding="utf-8") as rule:
        words = rule.read().replace("\\\n", " ").split()
    check(words[:2] == ["custom/q.onnx", "custom/q.html:"] and
          set(words[2:]) == {path, "custom/scale.c", *(f"{data}/{i:02d}.npy" for i in range(8))}, f"another rule: {words}")


def check_keep():
    done = expect(["quantize", "--size", "convolutional/model.onnx", "--data", "convolutional/data", "--keep", "conv2", "--keep", "classifier"], 0,
                  " of 3 layers in int8")
    check("conv2 " not in done.stdout, "a kept node is listed as a layer")


def check_embedding():
    """A table of rows that are looked up is stored in bytes."""
    path = write("embedding/model.onnx", embedding())
    for i in range(8):
        words = struct.pack("<6q", *[(7 * i + 11 * j) % 64 - 32 for j in range(6)])
        write(f"embedding/data/{i}/input_0.pb", tensor("words", [1, 6], words, dtype=7))
    expect(["quantize", "--size", path, "--data", "embedding/data", "-o", "embedding/q.onnx"], 0, "2 of 2 layers in int8", "lookup", "a scale for each row")
    check(os.path.getsize("embedding/q.onnx") < .4 * os.path.getsize(path), "the table is not stored in bytes")
    unseen = write("embedding/unseen.pb", tensor("words", [1, 6], struct.pack("<6q", 63, 0, -1, -64, 31, 5), dtype=7))
    found = []
    for model in (path, "embedding/q.onnx"):
        expect(["run", model, "--input", "words=" + unseen, "--output-dir", model + ".out"], 0)
        found.append(read_npy(model + ".out/y.npy"))
    error = relative_error(*found)
    check(0 < error < .03, f"embedding: the error on unseen words is {error}")


def check_old_opset():
    """Opset 11 becomes 13; the result is the same as of the newer file."""
    model, dims = MODELS["convolutional"](opset=11)
    path = write("old/model.onnx", model)
    expect(["quantize", "--size", path, "--data", "convolutional/data", "-o", "old/q.onnx"], 0)
    check(outputs("old/q.onnx", "old/found", dims) == outputs("convolutional/q.onnx", "old/same", dims), "opset 11 differs from 15")
    check("ai.onnx 13" in firn("inspect", "old/q.onnx").stdout, "the opset was not raised")


def main():
    with temporary_folder() as folder:
        os.chdir(folder)
        for name in MODELS:
            check_model(name)
        check_same_bytes()
        check_budget()
        check_gains()
        check_keep()
        check_old_opset()
        check_embedding()
        check_custom_operator()
    finish()


main()
