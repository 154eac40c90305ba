#!/usr/bin/env python3
"""Networks of bytes on a CPU without hardware for floats, under an emulator: every bit as the rules of plan/fixed_point.h and
plan/fixed_point_functions.h say.

  fixed_point.py FIRN SOURCE CXX EMULATOR TRIPLE CPU

All scales are powers of two, so that multipliers are exact and the rule is to round sums to nearest, halves up. One network has a
convolution with padding, zero points, bias and Relu, a depthwise one, their sum, a mean over positions and a product; the other has
softmax, a layer norm, and a product with a table.
"""
import math
import os
import random
import struct
import sys
import tempfile

from emulated import Machine

FIRN, SOURCE, CXX, EMULATOR, TRIPLE, CPU = sys.argv[1:7]
sys.path.insert(0, os.path.join(SOURCE, "tests", "hostile"))

from model_writer import attribute, graph, ints, model, node, num, tensor, value  # noqa: E402 (the path is set above)

U8, I8, I32 = 2, 3, 6
RANGES = {U8: (0, 255), I8: (-128, 127)}
CHANNELS, HIGH, WIDE, RESULTS = 6, 5, 7, 4


class Network:
    """Nodes and initializers, and beside them what every value is."""

    def __init__(self):
        self.nodes, self.initializers, self.random = [], [], random.Random(5)

    def constant(self, name, dims, numbers, dtype):
        form = {1: "f", U8: "B", I8: "b", I32: "i"}[dtype]
        self.initializers.append(tensor(name, dims, struct.pack(f"<{len(numbers)}{form}", *numbers), dtype))
        return name

    def scales(self, name, exponents, zero, dtype):
        """Names of scale and zero point."""
        dims = [] if len(exponents) == 1 else [len(exponents)]
        return [self.constant(name + "_scale", dims, [2.0**e for e in exponents], 1),
                self.constant(name + "_zero", dims, [zero] * len(exponents), dtype)]

    def dequantised(self, name, exponents, zero, dtype):
        axis = [attribute("axis", 2, num(3, 0))] if len(exponents) > 1 else []
        self.nodes.append(node("DequantizeLinear", [name, *self.scales(name, exponents, zero, dtype)], [name + "_f"], *axis))
        return name + "_f"

    def quantised(self, source, name, exponent, zero, dtype):
        self.nodes.append(node("QuantizeLinear", [source, *self.scales(name + "_q", [exponent], zero, dtype)], [name]))

    def weights(self, name, dims, exponents, most=127):
        count = 1
        for dim in dims:
            count *= dim
        numbers = [self.random.randint(-most, most) for _ in range(count)]
        self.constant(name, dims, numbers, I8)
        return numbers, self.dequantised(name, exponents, 0, I8)

    def bias(self, name, count, exponents, most):
        numbers = [self.random.randint(-most, most) for _ in range(count)]
        self.constant(name, [count], numbers, I32)
        return numbers, self.dequantised(name, exponents, 0, I32)


def rounded(total, exponent, zero, dtype, least=None):
    """total * 2^exponent to nearest, halves up; `least` is the number that a Relu leaves."""
    number = (total * 2 + (1 << -exponent)) // (2 << -exponent) if exponent < 0 else total << exponent
    low, high = RANGES[dtype]
    return min(max(number + zero, low if least is None else least), high)


def convolved(image, zero, weights, bias, groups):
    """Sums of a 3x3 convolution of [channel][y][x] whose padding is the zero point."""
    inputs = len(image) // groups
    outputs = len(weights) // (inputs * 9)
    sums = [[[0] * WIDE for _ in range(HIGH)] for _ in range(outputs)]
    for o in range(outputs):
        first = o // (outputs // groups) * inputs
        for y in range(HIGH):
            for x in range(WIDE):
                total = bias[o]
                for c in range(inputs):
                    for i in range(9):
                        row, column = y + i // 3 - 1, x + i % 3 - 1
                        if 0 <= row < HIGH and 0 <= column < WIDE:
                            total += (image[first + c][row][column] - zero) * weights[(o * inputs + c) * 9 + i]
                sums[o][y][x] = total
    return sums


def mapped(image, function):
    return [[[function(c, number) for number in row] for row in plane] for c, plane in enumerate(image)]


def network():
    """The model's bytes, an input and the output that it gives."""
    net, pads = Network(), ints("pads", [1, 1, 1, 1])
    image = [[[net.random.choice((0, 255, net.random.randint(0, 255))) for _ in range(WIDE)] for _ in range(HIGH)] for _ in range(3)]

    exponents = [-3 - c % 3 for c in range(CHANNELS)]
    weights, weights_f = net.weights("w1", [CHANNELS, 3, 3, 3], exponents)
    bias, bias_f = net.bias("b1", CHANNELS, [e - 4 for e in exponents], 4000)
    net.nodes.append(node("Conv", [net.dequantised("x", [-4], 7, U8), weights_f, bias_f], ["c1"], pads))
    net.nodes.append(node("Relu", ["c1"], ["r1"]))
    net.quantised("r1", "q1", 4, -3, I8)
    first = mapped(convolved(image, 7, weights, bias, 1), lambda c, n: rounded(n, exponents[c] - 4 - 4, -3, I8, -3))

    exponents = [-5 - c % 2 for c in range(CHANNELS)]
    weights, weights_f = net.weights("w2", [CHANNELS, 1, 3, 3], exponents)
    bias, bias_f = net.bias("b2", CHANNELS, [e + 4 for e in exponents], 900)
    first_f = net.dequantised("q1", [4], -3, I8)
    net.nodes.append(node("Conv", [first_f, weights_f, bias_f], ["c2"], pads, attribute("group", 2, num(3, CHANNELS))))
    net.quantised("c2", "q2", 5, 9, I8)
    second = mapped(convolved(first, -3, weights, bias, CHANNELS), lambda c, n: rounded(n, exponents[c] + 4 - 5, 9, I8))

    net.nodes.append(node("Add", [first_f, net.dequantised("q2", [5], 9, I8)], ["a"]))
    net.quantised("a", "q3", 6, 1, I8)
    third = [[[rounded((p + 3) + 2 * (s - 9), -2, 1, I8) for p, s in zip(*rows)] for rows in zip(*planes)]
             for planes in zip(first, second)]

    net.nodes.append(node("GlobalAveragePool", [net.dequantised("q3", [6], 1, I8)], ["m"]))
    net.quantised("m", "q4", 3, 0, I8)
    # One scale is no power of two: the mean over 35 positions. Of numbers so small rounding is exact all the same.
    means = [sum(n - 1 for row in plane for n in row) for plane in third]
    fourth = [min(max((2 * 8 * n + HIGH * WIDE) // (2 * HIGH * WIDE), -128), 127) for n in means]

    net.nodes.append(node("Flatten", [net.dequantised("q4", [3], 0, I8)], ["v"]))
    weights, weights_f = net.weights("w5", [CHANNELS, RESULTS], [-2])
    net.nodes.append(node("MatMul", ["v", weights_f], ["p"]))
    net.quantised("p", "y", 8, 100, U8)
    result = [rounded(sum(fourth[c] * weights[c * RESULTS + i] for c in range(CHANNELS)), 3 - 2 - 8, 100, U8) for i in range(RESULTS)]

    body = graph(net.nodes, [value("x", [1, 3, HIGH, WIDE], U8)], [value("y", [1, RESULTS], U8)], net.initializers)
    return model(body), [n for plane in image for row in plane for n in row], result


def softmax(row, exponent):
    """Numbers in units of 2^-15."""
    bits = 30 - math.ceil(math.log2(len(row)))
    powers = [round(math.exp(math.ldexp(n - max(row), exponent)) * 2**bits) for n in row]
    shift = 32 - sum(powers).bit_length()
    reciprocal = (2**32 - 1) // ((sum(powers) << shift) >> 16)
    return [((n << shift) >> 16) * reciprocal >> 17 for n in powers]


def layer_norm(row, epsilon):
    """Numbers in units of 2^(range - 19), and that range. Epsilon is in steps squared."""
    count, total = len(row), sum(row)
    spread = ((count * sum(n * n for n in row) - total * total) << 16) + round(epsilon * count * count * 2**16)
    shift = (62 - spread.bit_length()) // 2 * 2 if spread else 62
    value = (spread << shift) >> 46
    root = 69782 - (value * 39321 >> 16)
    for _ in range(3):
        root = root * ((196608 - (value * (root * root >> 16) >> 14)) >> 2) >> 15
    bits = math.ceil(math.log2(math.sqrt(count)))
    at = shift // 2 - 4 - bits

    def scaled(n):
        return n << at if at >= 0 else (n + (1 << -at >> 1)) >> -at

    return [scaled(count * n - total) * root >> 15 for n in row], bits


def functions():
    """The model's bytes, an input and the outputs that it gives."""
    net, rows, length = Network(), 6, 12
    image = [[net.random.choice((-128, 127, net.random.randint(-128, 127))) for _ in range(length)] for _ in range(rows)]
    x = net.dequantised("x", [-4], 7, I8)
    net.nodes.append(node("Softmax", [x], ["s"], attribute("axis", 2, num(3, 1))))
    net.quantised("s", "y0", -8, -128, I8)
    first = [rounded(n, 8 - 15, -128, I8) for row in image for n in softmax(row, -4)]

    scales, biases = [net.random.choice((-2.0, -0.5, 1.0, 2.0)) for _ in range(length)], [i / 8 - 0.5 for i in range(length)]
    net.nodes.append(node("LayerNormalization", [x, net.constant("g", [length], scales, 1), net.constant("b", [length], biases, 1)],
                          ["n"], attribute("epsilon", 1, b"\x15" + struct.pack("<f", 2.0**-10))))
    net.quantised("n", "y1", -5, 3, I8)
    second = []
    for row in image:
        numbers, bits = layer_norm(row, 2.0**-10 * 2**8)
        total = [round(n * s * 2 + b * 2**(20 - bits)) for n, s, b in zip(numbers, scales, biases)]  # in units of 2^(bits - 20)
        second += [rounded(n, bits - 20 + 5, 3, I8) for n in total]

    # The logistic function has a table of numbers in units of 2^-15, since its largest result is less than one by more than half of one.
    net.nodes.append(node("Sigmoid", [net.dequantised("g8", [-5], 0, I8)], ["t"]))
    gates = [[net.random.randint(-128, 127) for _ in range(length)] for _ in range(rows)]
    net.nodes.append(node("Mul", [x, "t"], ["m"]))
    net.quantised("m", "y2", -4, 0, I8)
    table = {n: round(2**15 / (1 + math.exp(-n / 32))) for row in gates for n in row}
    third = [rounded((n - 7) * table[g], -15, 0, I8) for row, gate in zip(image, gates) for n, g in zip(row, gate)]

    dims = [rows, length]
    body = graph(net.nodes, [value("x", dims, I8), value("g8", dims, I8)], [value(f"y{i}", dims, I8) for i in range(3)],
                 net.initializers)
    return model(body, opset=17), (image, gates), (first, second, third)


def check(machine, folder, name, made, inputs, outputs):
    """What is wrong; None: nothing. Inputs and outputs have a name, dims, numbers and a type."""
    case = os.path.join(folder, "cases", name)
    data = os.path.join(case, "test_data_set_0")
    os.makedirs(data)
    with open(os.path.join(case, "model.onnx"), "wb") as file:
        file.write(made)
    for what, tensors in (("input", inputs), ("output", outputs)):
        for i, (word, dims, numbers, dtype) in enumerate(tensors):
            with open(os.path.join(data, f"{what}_{i}.pb"), "wb") as file:
                file.write(tensor(word, dims, bytes(n & 255 for n in numbers), dtype))
    return machine.check(case)


def main():
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(FIRN, os.path.join(SOURCE, "include"), CXX, EMULATOR, TRIPLE, CPU, folder)
        made, image, result = network()
        wrong = check(machine, folder, "layers", made, [("x", [1, 3, HIGH, WIDE], image, U8)], [("y", [1, RESULTS], result, U8)])
        made, inputs, results = functions()
        dims = [len(inputs[0]), len(inputs[0][0])]
        wrong = wrong or check(machine, folder, "functions", made,
                               [(n, dims, [x for row in rows for x in row], I8) for n, rows in zip(("x", "g8"), inputs)],
                               [(f"y{i}", dims, numbers, I8) for i, numbers in enumerate(results)])
    print(f"{TRIPLE} {CPU}: {wrong or 'as the rules say'}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
