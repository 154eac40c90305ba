#!/usr/bin/env python3
"""What the quantiser edits in a model before it rounds leaves the results what they were: factors moved between layers of other
ranks than images have, constants folded, norms folded, operators of older opsets."""
import os
import struct

from sample_models import Weights, batch_norm, draw, npy, read_npy, write, write_samples
from tool import attribute, check, expect, finish, graph, model, node, num, temporary_folder, tensor, value
from model_writer import ints


def small(nodes, weights, dims, result, opset=17):
    return model(graph(nodes, [value("x", dims)], [value("y", result)], weights.tensors), opset=opset), dims


def gate_along_a_line():
    """A gate by means of a signal, whose channels have one dim behind them."""
    w = Weights(11)
    pads = ints("pads", [1, 1])
    nodes = [node("Conv", ["x", w.uneven("w1", [16, 4, 3], .3)], ["a"], pads), node("Relu", ["a"], ["v"]),
             node("Conv", ["x", w.add("w2", [16, 4, 3], .3)], ["u"], pads), node("GlobalAveragePool", ["u"], ["m"]),
             node("Conv", ["m", w.add("w3", [16, 16, 1], .2)], ["c"]), node("Sigmoid", ["c"], ["g"]), node("Mul", ["v", "g"], ["e"]),
             node("Conv", ["e", w.add("w4", [4, 16, 1], .2)], ["r"]), node("GlobalAveragePool", ["v"], ["p"]),
             node("Flatten", ["p"], ["f"]), node("Gemm", ["f", w.add("w5", [16, 4], .2)], ["z"]),
             node("Unsqueeze", ["z", w.ints("last", [2])], ["zz"]), node("Add", ["r", "zz"], ["y"])]
    return small(nodes, w, [1, 4, 20], [1, 4, 20])


def pool_over_channels():
    """The mean over the last dims of a product mixes what factors would tell apart."""
    w = Weights(12)
    nodes = [node("MatMul", ["x", w.uneven("w1", [16, 16], .3)], ["a"]),
             node("AveragePool", ["a"], ["p"], ints("kernel_shape", [1, 3]), ints("pads", [0, 1, 0, 1])),
             node("MatMul", ["p", w.uneven("w2", [16, 8], .3)], ["y"])]
    return small(nodes, w, [1, 2, 12, 16], [1, 2, 12, 8])


def weights_behind_moves():
    """Weights that are transposed, reshaped or renamed are weights."""
    w = Weights(13)
    nodes = [node("Transpose", [w.add("w1", [32, 24], .2)], ["t1"], ints("perm", [1, 0])), node("MatMul", ["x", "t1"], ["a"]),
             node("Reshape", [w.add("w2", [16, 64], .2), w.ints("shape", [32, 32])], ["r2"]), node("Gemm", ["a", "r2"], ["b"]),
             node("Relu", ["b"], ["c"]), node("Identity", [w.add("w3", [32, 8], .2)], ["i3"]), node("MatMul", ["c", "i3"], ["y"])]
    return small(nodes, w, [4, 24], [4, 8])


def weights_that_are_bytes():
    """Weights that are integers in the file stay those."""
    w = Weights(14)
    integers = bytes((7 * i + 3 * (i // 24)) % 256 for i in range(24 * 32))
    w.tensors.append(tensor("q", [24, 32], integers, dtype=3))
    w.tensors.append(tensor("step", [], struct.pack("<f", 2**-8)))
    nodes = [node("DequantizeLinear", ["q", "step"], ["d"]), node("MatMul", ["x", "d"], ["a"]), node("Relu", ["a"], ["b"]),
             node("MatMul", ["b", w.add("w2", [32, 8], .2)], ["y"])]
    return small(nodes, w, [4, 24], [4, 8])


def weights_of_almost_nothing():
    """Weights below what a scale can say stay in floats."""
    w = Weights(15)
    nodes = [node("MatMul", ["x", w.add("w1", [24, 32], .2)], ["a"]), node("MatMul", ["a", w.add("w2", [32, 8], 1e-36)], ["s"]),
             node("Mul", ["s", w.add("back", [1], 0, 1e36)], ["y"])]
    return small(nodes, w, [4, 24], [4, 8])


def softmax_of_an_older_opset():
    """The last axis by its number, which older softmaxes take as one with those behind it."""
    w = Weights(19)
    nodes = [node("MatMul", ["x", w.add("w1", [16, 16], .3)], ["q"]), node("Transpose", ["x"], ["t"], ints("perm", [0, 1, 3, 2])),
             node("MatMul", ["q", "t"], ["s"]), node("Softmax", ["s"], ["p"], attribute("axis", 2, num(3, 3))),
             node("MatMul", ["p", "x"], ["c"]), node("MatMul", ["c", w.add("w2", [16, 8], .3)], ["y"])]
    return small(nodes, w, [1, 2, 12, 16], [1, 2, 12, 8], opset=11)


def scatter_of_an_older_opset():
    w = Weights(16)
    nodes = [node("Gemm", ["x", w.add("w1", [24, 32], .2), w.add("b1", [32], .1)], ["a"]),
             node("Scatter", ["a", indices(w), w.add("into", [1, 2], .5)], ["s"], attribute("axis", 2, num(3, 1))),
             node("Gemm", ["s", w.add("w2", [32, 8], .2), w.add("b2", [8], .1)], ["y"])]
    return small(nodes, w, [4, 24], [4, 8], opset=10)


def indices(weights):
    weights.tensors.append(tensor("places", [1, 2], struct.pack("<2q", 3, 17), dtype=7))
    return "places"


# The model, what the report says of its layers, and the largest relative error.
CASES = [(gate_along_a_line, " of 8 layers in int8", .05), (pool_over_channels, "3 of 3 layers in int8", .05),
         (weights_behind_moves, "3 of 3 layers in int8", .03), (weights_that_are_bytes, "2 of 2 layers in int8", .03),
         (weights_of_almost_nothing, "too small for a scale", .03), (softmax_of_an_older_opset, "4 of 4 layers in int8", .05),
         (scatter_of_an_older_opset, "2 of 2 layers in int8", .03)]


def outputs(path, name, dims):
    unseen = write("unseen/x.npy", npy(dims, draw(dims, 1000)))
    expect(["run", path, "--input", "x=" + unseen, "--output-dir", name], 0)
    return read_npy(os.path.join(name, "y.npy"))


def check_case(build, layers, most):
    name = build.__name__
    encoded, dims = build()
    path = write(name + "/model.onnx", encoded)
    data = write_samples(name + "/data", dims)
    done = expect(["quantize", "--size", path, "--data", data, "-o", name + "/q.onnx"], 0, layers)
    exact, found = outputs(path, name + "/exact", dims), outputs(name + "/q.onnx", name + "/found", dims)
    check(len(exact) == len(found), f"{name}: {len(found)} elements for {len(exact)}")
    error = (sum((a - b) ** 2 for a, b in zip(exact, found)) / sum(a * a for a in exact)) ** .5
    check(0 < error < most, f"{name}: the error on unseen data is {error}, wanted below {most}: {done.stdout}")


def check_kept_norm():
    """A norm that would become part of its convolution can be kept, and is no layer."""
    w = Weights(17)
    nodes = [node("Conv", ["x", w.add("w1", [8, 3, 3, 3], .25)], ["c"], name="conv"),
             node("BatchNormalization", ["c", *batch_norm(w, "bn", 8)], ["y"], name="norm")]
    encoded, dims = small(nodes, w, [1, 3, 8, 8], [1, 8, 6, 6])
    path, data = write("norm/model.onnx", encoded), write_samples("norm/data", dims)
    expect(["quantize", "--size", path, "--data", data, "-o", "norm/q.onnx", "--keep", "norm"], 0)
    check(b"BatchNormalization" in open("norm/q.onnx", "rb").read(), "the kept norm was folded")


def check_refusals():
    """Weights that are no numbers are the reason."""
    w = Weights(18)
    w.tensors.append(tensor("w", [4, 4], struct.pack("<16f", float("nan"), *[.5] * 15)))
    encoded, dims = small([node("MatMul", ["x", "w"], ["y"])], w, [4, 4], [4, 4])
    path, data = write("nan/model.onnx", encoded), write_samples("nan/data", dims)
    expect(["quantize", path, "--data", data, "-o", "nan/q.onnx"], 1, "its weights are not all finite")


def main():
    with temporary_folder() as folder:
        os.chdir(folder)
        for case in CASES:
            check_case(*case)
        check_kept_norm()
        check_refusals()
    finish()


main()
