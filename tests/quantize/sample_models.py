"""Small networks with weights drawn from a seed, and calibration data for them: what the tests of the quantiser share."""
import os
import random
import struct
import sys

SOURCE = os.path.abspath(sys.argv[2])
sys.path.insert(0, os.path.join(SOURCE, "tests", "tool"))

from tool import attribute, graph, model, msg, node, num, tensor, value  # noqa: E402 (the path is set above)
from model_writer import ints  # noqa: E402


class Weights:
    """Initializers, drawn as they are asked for."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.tensors = []

    def add(self, name, dims, scale, offset=0.0):
        count = 1
        for dim in dims:
            count *= dim
        values = [offset + self.random.gauss(0, scale) for _ in range(count)]
        self.tensors.append(tensor(name, dims, struct.pack(f"<{count}f", *values)))
        return name

    def uneven(self, name, dims, scale):
        """Each next index along the first axis is 1.5 times as large, from the eighth on as the first."""
        row = 1
        for dim in dims[1:]:
            row *= dim
        values = [self.random.gauss(0, scale) * 1.5 ** (i // row % 8) for i in range(dims[0] * row)]
        self.tensors.append(tensor(name, dims, struct.pack(f"<{len(values)}f", *values)))
        return name

    def ints(self, name, values):
        self.tensors.append(tensor(name, [len(values)], struct.pack(f"<{len(values)}q", *values), dtype=7))
        return name


def batch_norm(weights, name, channels):
    return [weights.add(name + ".gamma", [channels], .1, 1), weights.add(name + ".beta", [channels], .1),
            weights.add(name + ".mean", [channels], .1), weights.add(name + ".variance", [channels], .02, .5)]


def convolutional(opset=15):
    """Convolutions with batch norms, a residual sum, pooling, a classifier; x: f32[1,3,16,16] -> y: f32[1,10]."""
    w = Weights(1)
    pads = ints("pads", [1, 1, 1, 1])
    nodes = [
        node("Conv", ["x", w.add("w1", [8, 3, 3, 3], .25)], ["c1"], pads, name="conv1"),
        node("BatchNormalization", ["c1", *batch_norm(w, "bn1", 8)], ["n1"], name="bn1"),
        node("Relu", ["n1"], ["r1"], name="relu1"),
        node("MaxPool", ["r1"], ["p1"], ints("kernel_shape", [2, 2]), ints("strides", [2, 2]), name="pool"),
        node("Conv", ["p1", w.add("w2", [8, 8, 3, 3], .12), w.add("b2", [8], .1)], ["c2"], pads, name="conv2"),
        node("BatchNormalization", ["c2", *batch_norm(w, "bn2", 8)], ["n2"], name="bn2"),
        node("Add", ["n2", "p1"], ["s"], name="sum"),
        node("Relu", ["s"], ["r2"], name="relu2"),
        node("Conv", ["r2", w.add("w3", [16, 1, 3, 3], .3)], ["c3"], attribute("group", 2, num(3, 8)), pads, name="depthwise"),
        node("GlobalAveragePool", ["c3"], ["g"], name="mean"),
        node("Flatten", ["g"], ["f"], name="flatten"),
        node("Gemm", ["f", w.add("w4", [10, 16], .3), w.add("b4", [10], .1)], ["y"], attribute("transB", 2, num(3, 1)), name="classifier"),
    ]
    return model(graph(nodes, [value("x", [1, 3, 16, 16])], [value("y", [1, 10])], w.tensors), opset=opset), [1, 3, 16, 16]


def gated():
    """An inverted bottleneck with squeeze and excitation whose channels reach unequally far; x: f32[1,4,12,12] -> y: f32[1,6]."""
    w = Weights(4)

    def swish(x, name):
        return [node("Sigmoid", [x], [name + ".s"], name=name + ".s"), node("Mul", [x, name + ".s"], [name], name=name)]

    nodes = [
        node("Conv", ["x", w.uneven("w1", [16, 4, 1, 1], .3)], ["c1"], name="expand"), *swish("c1", "a1"),
        node("Conv", ["a1", w.uneven("w2", [16, 1, 3, 3], .3)], ["c2"], attribute("group", 2, num(3, 16)), ints("pads", [1, 1, 1, 1]), name="depthwise"),
        *swish("c2", "a2"), node("GlobalAveragePool", ["a2"], ["m"], name="mean"),
        node("Conv", ["m", w.add("w3", [4, 16, 1, 1], .2), w.add("b3", [4], .1)], ["c3"], name="squeeze"), *swish("c3", "a3"),
        node("Conv", ["a3", w.add("w4", [16, 4, 1, 1], .4), w.add("b4", [16], .1)], ["c4"], name="excite"),
        node("Sigmoid", ["c4"], ["g"], name="gate"), node("Mul", ["a2", "g"], ["e"], name="gated"),
        node("Conv", ["e", w.add("w5", [4, 16, 1, 1], .2)], ["c5"], name="project"), node("Add", ["c5", "x"], ["s"], name="sum"),
        node("GlobalAveragePool", ["s"], ["p"], name="pool"), node("Flatten", ["p"], ["f"], name="flatten"),
        node("Gemm", ["f", w.add("w6", [6, 4], .4), w.add("b6", [6], .1)], ["y"], attribute("transB", 2, num(3, 1)), name="classifier"),
    ]
    return model(graph(nodes, [value("x", [1, 4, 12, 12])], [value("y", [1, 6])], w.tensors), opset=17), [1, 4, 12, 12]


def perceptron():
    """Two products with a sum of their own; x: f32[batch,24] -> y: f32[batch,6]."""
    w = Weights(2)
    nodes = [node("MatMul", ["x", w.add("w1", [24, 32], .2)], ["m"], name="first"),
             node("Add", ["m", w.add("b1", [32], .1)], ["s"], name="bias"),
             node("Relu", ["s"], ["r"], name="relu"),
             node("Gemm", ["r", w.add("w2", [32, 6], .2), w.add("b2", [6], .1)], ["y"], name="second")]
    return model(graph(nodes, [value("x", ["batch", 24])], [value("y", ["batch", 6])], w.tensors)), [4, 24]


def transformer():
    """One block of one head: norm, attention, norm, two products; x: f32[1,12,16] -> y: f32[1,12,16]."""
    w = Weights(3)

    def norm(x, name):
        return node("LayerNormalization", [x, w.add(name + ".gamma", [16], .2, 1), w.add(name + ".beta", [16], .1)], [name], name=name)

    def product(x, name, rows, columns):
        return node("MatMul", [x, w.add(name + ".w", [rows, columns], .25)], [name], name=name)

    nodes = [norm("x", "norm1"), product("norm1", "q", 16, 16), product("norm1", "k", 16, 16), product("norm1", "v", 16, 16),
             node("Transpose", ["k"], ["kt"], ints("perm", [0, 2, 1]), name="transpose"),
             node("MatMul", ["q", "kt"], ["scores"], name="scores"),
             node("Mul", ["scores", w.add("quarter", [1], 0, .25)], ["scaled"], name="scale"),
             node("Softmax", ["scaled"], ["weights"], attribute("axis", 2, num(3, -1)), name="softmax"),
             node("MatMul", ["weights", "v"], ["context"], name="context"), product("context", "project", 16, 16),
             node("Add", ["x", "project"], ["middle"], name="residual1"), norm("middle", "norm2"),
             product("norm2", "widen", 16, 64), node("Relu", ["widen"], ["wide"], name="relu"), product("wide", "narrow", 64, 16),
             node("Add", ["middle", "narrow"], ["y"], name="residual2")]
    return model(graph(nodes, [value("x", [1, 12, 16])], [value("y", [1, 12, 16])], w.tensors), opset=17), [1, 12, 16]


def embedding():
    """Rows of a table for words, then a product; words: i64[1,6] -> y: f32[1,6,8]. Its data are folders."""
    w = Weights(5)
    nodes = [node("Gather", [w.uneven("table", [64, 80], .2), "words"], ["rows"], name="lookup"),
             node("MatMul", ["rows", w.add("w", [80, 8], .2)], ["y"], name="product")]
    return model(graph(nodes, [value("words", [1, 6], 7)], [value("y", [1, 6, 8])], w.tensors))


def stacked():
    """A product by a matrix of its own for each entry of the batch; x: f32[2,5,6] -> y: f32[2,5,4]."""
    w = Weights(6)
    nodes = [node("MatMul", ["x", w.add("w", [2, 6, 4], .3)], ["y"], name="product")]
    return model(graph(nodes, [value("x", [2, 5, 6])], [value("y", [2, 5, 4])], w.tensors)), [2, 5, 6]


def gained():
    """A product whose result is multiplied by an input and added to a state; x: f32[2,24], gain: f32[6], past: f32[2,6] -> y, present:
    f32[2,6]."""
    w = Weights(7)
    nodes = [node("MatMul", ["x", w.add("w", [24, 6], .3)], ["m"], name="product"), node("Mul", ["m", "gain"], ["g"], name="gained"),
             node("Add", ["g", "past"], ["present"], name="sum"), node("MatMul", ["present", w.add("v", [6, 6], .3)], ["y"], name="mix")]
    inputs = [value("gain", [6]), value("past", [2, 6]), value("x", [2, 24])]
    return model(graph(nodes, inputs, [value("y", [2, 6]), value("present", [2, 6])], w.tensors)), [2, 24]


def customised():
    """An operator of the program between two products; x: f32[4,24] -> y: f32[4,6]."""
    w = Weights(8)
    nodes = [node("MatMul", ["x", w.add("w1", [24, 16], .2)], ["m"], name="first"),
             node("Scale", ["m"], ["s"], name="scale", domain="com.acme"),
             node("MatMul", ["s", w.add("w2", [16, 6], .2)], ["y"], name="second")]
    domain = msg(8, msg(1, "com.acme") + num(2, 1))
    return model(graph(nodes, [value("x", [4, 24])], [value("y", [4, 6])], w.tensors), extra=domain), [4, 24]


MODELS = {"convolutional": convolutional, "gated": gated, "perceptron": perceptron, "transformer": transformer}


def npy(dims, values):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "".join(f"{d}," for d in dims) + "), }"
    header += " " * (64 - (len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}f", *values)


def draw(dims, seed, scale=1.0):
    generator = random.Random(seed)
    count = 1
    for dim in dims:
        count *= dim
    return [generator.gauss(0, scale) for _ in range(count)]


def write(path, data):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return path


def write_samples(folder, dims, count=8):
    for i in range(count):
        write(os.path.join(folder, f"{i:02d}.npy"), npy(dims, draw(dims, i)))
    return folder


def read_npy(path):
    """The values of a file that firn wrote."""
    with open(path, "rb") as file:
        data = file.read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack(f"<{(len(data) - start) // 4}f", data[start:])
