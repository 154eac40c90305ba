#!/usr/bin/env python3
"""Draws handwritten-style digits, trains a small convolutional network on them, and writes it as digits.onnx.

    make_digits.py [OUT_DIR]       default: the folder of this script

Every digit is a few strokes (polylines in the unit square) under random shear, rotation, scale, shift, wobble, thickness
and noise. The network is trained with plain numpy and checked on drawings that it has not seen; test_data_set_0 gets one
drawing and the probabilities in float64, and the programs in image_classifier and cortex_m get a picture to read. Needs
numpy and onnx. The result does not depend on the machine but for rounding.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZE = 28


def arc(cx, cy, rx, ry, start, end, steps=10):
    angles = np.radians(np.linspace(start, end, steps))
    return [(cx + rx * np.cos(a), cy + ry * np.sin(a)) for a in angles]


STROKES = [  # x to the right, y down
    [arc(.5, .5, .28, .40, 0, 360, 16)],
    [[(.32, .28), (.54, .10), (.54, .90)]],
    [arc(.5, .32, .26, .22, -170, 40) + [(.24, .88), (.80, .88)]],
    [arc(.46, .30, .26, .20, -150, 90) + arc(.46, .70, .30, .20, -90, 150)],
    [[(.62, .90), (.62, .10), (.20, .64), (.84, .64)]],
    [[(.76, .12), (.32, .12), (.29, .46)] + arc(.47, .66, .27, .23, -130, 150)],
    [[(.68, .10), (.36, .44)] + arc(.50, .68, .23, .22, -160, 200, 14)],
    [[(.20, .12), (.80, .12), (.42, .90)]],
    [arc(.5, .30, .20, .20, 0, 360, 12), arc(.5, .70, .26, .21, 0, 360, 14)],
    [arc(.52, .32, .23, .22, 0, 360, 14), [(.75, .32), (.66, .90)]],
]


def draw(digit, rng):
    """One digit as SIZE x SIZE floats in [0, 1], ink 1."""
    angle, shear = rng.normal(0, .12), rng.normal(0, .18)
    scale = rng.uniform(.72, 1.0, 2)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = turn @ np.array([[1, -shear], [0, 1]]) @ np.diag(scale)
    shift = .5 + rng.normal(0, .04, 2)
    thickness = rng.uniform(.035, .075)
    ys, xs = np.mgrid[0:SIZE, 0:SIZE]
    pixels = np.stack([(xs + .5) / SIZE, (ys + .5) / SIZE], -1).reshape(-1, 2)
    distance = np.full(SIZE * SIZE, 9.0)
    for stroke in STROKES[digit]:
        points = (np.array(stroke) - .5 + rng.normal(0, .012, (len(stroke), 2))) @ matrix.T + shift
        for a, b in zip(points[:-1], points[1:]):
            along = np.clip(((pixels - a) @ (b - a)) / max(((b - a) ** 2).sum(), 1e-9), 0, 1)
            distance = np.minimum(distance, np.hypot(*(pixels - a - along[:, None] * (b - a)).T))
    ink = np.clip((thickness - distance) * SIZE + .5, 0, 1)
    return np.clip(ink * rng.uniform(.8, 1) + rng.normal(0, .05, ink.shape), 0, 1).reshape(SIZE, SIZE)


def dataset(count, rng):
    labels = np.arange(count) % 10
    return np.stack([draw(d, rng) for d in labels])[:, None].astype(np.float32), labels


def patches(x):
    """3x3 stride 2 pad 1 windows: [N, C, H, W] -> [N, H/2, W/2, C*9]."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    h, w = x.shape[2] // 2, x.shape[3] // 2
    taps = [padded[:, :, i:i + 2 * h:2, j:j + 2 * w:2] for i in range(3) for j in range(3)]
    return np.stack(taps, 2).transpose(0, 3, 4, 1, 2).reshape(len(x), h, w, -1)


def unpatches(grad, shape):
    """The adjoint of patches."""
    n, c, height, width = shape
    h, w = height // 2, width // 2
    padded = np.zeros((n, c, height + 2, width + 2), grad.dtype)
    taps = grad.reshape(n, h, w, c, 9).transpose(0, 3, 4, 1, 2)
    for k in range(9):
        padded[:, :, k // 3:k // 3 + 2 * h:2, k % 3:k % 3 + 2 * w:2] += taps[:, :, k]
    return padded[:, :, 1:-1, 1:-1]


def forward(p, x):
    """Activations: conv 3x3/2 + relu, twice, then a dense layer; probabilities last."""
    a = patches(x)
    h1 = np.maximum(a @ p["w1"] + p["b1"], 0)
    x1 = h1.transpose(0, 3, 1, 2)
    b = patches(x1)
    h2 = np.maximum(b @ p["w2"] + p["b2"], 0)
    flat = h2.transpose(0, 3, 1, 2).reshape(len(x), -1)
    logits = flat @ p["w3"] + p["b3"]
    e = np.exp(logits - logits.max(1, keepdims=True))
    return a, h1, x1, b, h2, flat, e / e.sum(1, keepdims=True)


def gradients(p, x, labels):
    a, h1, x1, b, h2, flat, prob = forward(p, x)
    d = prob.copy()
    d[np.arange(len(x)), labels] -= 1
    d /= len(x)
    g = {"w3": flat.T @ d, "b3": d.sum(0)}
    d2 = (d @ p["w3"].T).reshape(len(x), h2.shape[3], *h2.shape[1:3]).transpose(0, 2, 3, 1) * (h2 > 0)
    g["w2"], g["b2"] = b.reshape(-1, b.shape[3]).T @ d2.reshape(-1, d2.shape[3]), d2.sum((0, 1, 2))
    d1 = unpatches(d2 @ p["w2"].T, x1.shape).transpose(0, 2, 3, 1) * (h1 > 0)
    g["w1"], g["b1"] = a.reshape(-1, a.shape[3]).T @ d1.reshape(-1, d1.shape[3]), d1.sum((0, 1, 2))
    return g


def train(rng):
    c1, c2 = 8, 16
    p = {"w1": rng.normal(0, .4, (9, c1)), "b1": np.zeros(c1), "w2": rng.normal(0, .15, (9 * c1, c2)), "b2": np.zeros(c2),
         "w3": rng.normal(0, .04, (c2 * 49, 10)), "b3": np.zeros(10)}
    p = {k: v.astype(np.float32) for k, v in p.items()}
    m = {k: np.zeros_like(v) for k, v in p.items()}
    v = {k: np.zeros_like(w) for k, w in p.items()}
    x, labels = dataset(8000, rng)
    step = 0
    for epoch in range(8):
        order = rng.permutation(len(x))
        for i in range(0, len(x), 64):
            step += 1
            g = gradients(p, x[order[i:i + 64]], labels[order[i:i + 64]])
            rate = .002 * (1 - epoch / 8) * np.sqrt(1 - .999 ** step) / (1 - .9 ** step)
            for k in p:  # Adam
                m[k] = .9 * m[k] + .1 * g[k]
                v[k] = .999 * v[k] + .001 * g[k] ** 2
                p[k] -= (rate * m[k] / (np.sqrt(v[k]) + 1e-8)).astype(np.float32)
    return p


def to_onnx(p):
    def conv(w):  # [C*9, O] -> [O, C, 3, 3]
        return np.ascontiguousarray(w.T.reshape(w.shape[1], -1, 3, 3))
    weights = {"conv1.weight": conv(p["w1"]), "conv1.bias": p["b1"], "conv2.weight": conv(p["w2"]), "conv2.bias": p["b2"],
               "dense.weight": np.ascontiguousarray(p["w3"].T), "dense.bias": p["b3"]}
    window = dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    nodes = [helper.make_node("Conv", ["image", "conv1.weight", "conv1.bias"], ["c1"], name="conv1", **window),
             helper.make_node("Relu", ["c1"], ["r1"], name="relu1"),
             helper.make_node("Conv", ["r1", "conv2.weight", "conv2.bias"], ["c2"], name="conv2", **window),
             helper.make_node("Relu", ["c2"], ["r2"], name="relu2"),
             helper.make_node("Flatten", ["r2"], ["flat"], name="flatten"),
             helper.make_node("Gemm", ["flat", "dense.weight", "dense.bias"], ["logits"], name="dense", transB=1),
             helper.make_node("Softmax", ["logits"], ["probabilities"], name="softmax", axis=1)]
    graph = helper.make_graph(nodes, "digits",
                              [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, SIZE, SIZE])],
                              [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, 10])],
                              [numpy_helper.from_array(w, name) for name, w in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8, producer_name="make_digits.py")


def write_pictures(out):
    """A seven as blue ink on paper, for image_classifier, and a five as numbers, for cortex_m."""
    rng = np.random.default_rng(3)
    ink = draw(7, rng).repeat(3, 0).repeat(3, 1)[:, :, None]
    pixels = np.round((1 - ink) * (250, 247, 235) + ink * (30, 40, 120)).astype(np.uint8)
    os.makedirs(os.path.join(out, "image_classifier"), exist_ok=True)
    with open(os.path.join(out, "image_classifier", "seven.ppm"), "wb") as file:
        file.write(b"P6\n# a drawing by make_digits.py\n%d %d\n255\n" % (3 * SIZE, 3 * SIZE) + pixels.tobytes())
    os.makedirs(os.path.join(out, "cortex_m"), exist_ok=True)
    with open(os.path.join(out, "cortex_m", "picture.h"), "w", encoding="utf-8") as file:
        file.write("// A five, drawn by make_digits.py: ink from 0 to 255, row by row.\n#pragma once\n\n"
                   "#include <cstdint>\n\n// clang-format off\nconstexpr std::uint8_t kPicture[28 * 28] = {\n")
        for row in np.round(draw(5, rng) * 255).astype(int):
            file.write("    " + ", ".join(map(str, row)) + ",\n")
        file.write("};\n// clang-format on\n")


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    rng = np.random.default_rng(7)
    p = train(rng)
    x, labels = dataset(2000, np.random.default_rng(99))
    accuracy = (forward(p, x)[-1].argmax(1) == labels).mean()
    print(f"accuracy on unseen drawings: {accuracy:.4f}")
    if accuracy < .97:
        sys.exit("too low: nothing written")
    write_pictures(out)
    folder = os.path.join(out, "digits", "test_data_set_0")
    os.makedirs(folder, exist_ok=True)
    onnx.save(to_onnx(p), os.path.join(out, "digits", "model.onnx"))
    wide = {k: w.astype(np.float64) for k, w in p.items()}
    probabilities = forward(wide, x[3:4].astype(np.float64))[-1].astype(np.float32)
    for kind, name, value in (("input", "image", x[3:4]), ("output", "probabilities", probabilities)):
        with open(os.path.join(folder, f"{kind}_0.pb"), "wb") as file:
            file.write(numpy_helper.from_array(value, name).SerializeToString())


if __name__ == "__main__":  # tools/bench/digits.py draws with it
    main()
