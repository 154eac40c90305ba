#!/usr/bin/env python3
"""Writes keyword_spotter/model.onnx: 49 frames of 10 bands of sound to the scores of four words.

    make_keyword_spotter.py [OUT_DIR]       default: the folder of this script

The words are synthetic: a formant that rises, falls, does the one and then the other, or the other and then the one. The
filters are drawn; the dense layer is fitted to words of ordinary speakers by least squares. The script checks that the words
of other such speakers are told apart, and that those of one whose formant lies elsewhere, in a room with another response,
are not: models/training.md adapts the network to that speaker. test_data_set_0 gets two words and the scores in float64.
Needs numpy and onnx.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FRAMES, BANDS, WORDS, CHANNELS = 49, 10, 4, 24
ORDINARY, PERSON = (0.0, 0.0), (1.6, 0.5)  # of a speaker: by how many bands the formant is off, and the room's response


def say(word, speaker, rng):
    """A word as FRAMES x BANDS energies."""
    offset, room = speaker
    start, length = 4 + 8 * rng.random(), 24 + 9 * rng.random()
    along = (np.arange(FRAMES) - start) / length
    height = [along, 1 - along, 1 - np.abs(2 * along - 1), np.abs(2 * along - 1)][word]
    formant = 1 + 6 * height + offset + .6 * (rng.random() - .5)
    bands = np.arange(BANDS)
    energy = np.maximum(0, 1 - np.abs(bands - formant[:, None]) / 2) * ((along >= 0) & (along <= 1))[:, None]
    return energy + room * bands / BANDS + .3 * rng.random((FRAMES, BANDS))


def spoken(count, speaker, rng):
    words = np.arange(count) % WORDS
    return np.stack([say(word, speaker, rng) for word in words])[:, None], words


def convolve(x, weight, bias, stride):
    """Windows without padding: [N, C, H, W] by [O, C, h, w], or by [C, 1, h, w] with a filter for each channel."""
    views = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    rule = "nchwij,cij->nchw" if weight.shape[1] != x.shape[1] else "nchwij,ocij->nohw"
    return np.maximum(np.einsum(rule, views, weight[:, 0] if weight.shape[1] != x.shape[1] else weight) + bias[:, None, None], 0)


def features(x, w):
    """Means over six parts of the time: [N, CHANNELS * 6]."""
    a = convolve(x, w["conv.weight"], w["conv.bias"], 2)
    b = convolve(a, w["depthwise.weight"], w["depthwise.bias"], 1)
    return b.reshape(len(x), CHANNELS, 6, -1).mean(3).reshape(len(x), -1)


def weights():
    rng = np.random.default_rng(5)
    w = {"conv.weight": rng.normal(0, .35, (CHANNELS, 1, 6, 4)), "conv.bias": rng.normal(0, .1, CHANNELS),
         "depthwise.weight": rng.normal(.1, .4, (CHANNELS, 1, 5, 3)), "depthwise.bias": rng.normal(0, .1, CHANNELS)}
    w = {name: value.astype(np.float32).astype(np.float64) for name, value in w.items()}
    x, words = spoken(2000, ORDINARY, rng)
    rows = np.concatenate([features(x, w), np.ones((len(x), 1))], 1)
    wanted = 4 * np.eye(WORDS)[words] - 1
    fitted = np.linalg.solve(rows.T @ rows + .3 * np.eye(rows.shape[1]), rows.T @ wanted)
    w["dense.weight"], w["dense.bias"] = fitted[:-1].T, fitted[-1]
    return {name: value.astype(np.float32) for name, value in w.items()}


def scores(x, w):
    w = {name: value.astype(np.float64) for name, value in w.items()}
    return features(x, w) @ w["dense.weight"].T + w["dense.bias"]


def to_onnx(w):
    nodes = [helper.make_node("Conv", ["sound", "conv.weight", "conv.bias"], ["c"], name="conv", kernel_shape=[6, 4], strides=[2, 2]),
             helper.make_node("Relu", ["c"], ["r"], name="relu1"),
             helper.make_node("Conv", ["r", "depthwise.weight", "depthwise.bias"], ["d"], name="depthwise", kernel_shape=[5, 3],
                              group=CHANNELS),
             helper.make_node("Relu", ["d"], ["s"], name="relu2"),
             helper.make_node("AveragePool", ["s"], ["means"], name="pool", kernel_shape=[3, 2], strides=[3, 2]),
             helper.make_node("Flatten", ["means"], ["flat"], name="flatten"),
             helper.make_node("Gemm", ["flat", "dense.weight", "dense.bias"], ["scores"], name="dense", transB=1)]
    graph = helper.make_graph(nodes, "keyword_spotter",
                              [helper.make_tensor_value_info("sound", TensorProto.FLOAT, ["batch", 1, FRAMES, BANDS])],
                              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", WORDS])],
                              [numpy_helper.from_array(value, name) for name, value in w.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8,
                             producer_name="make_keyword_spotter.py")


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    w = weights()
    rates = []
    for speaker in (ORDINARY, PERSON):
        x, words = spoken(1000, speaker, np.random.default_rng(9))
        rates.append((scores(x, w).argmax(1) == words).mean())
    print(f"right: {rates[0]:.3f} of ordinary speakers' words, {rates[1]:.3f} of the person's")
    if rates[0] < .97 or rates[1] > .8:
        sys.exit("not what is wanted: nothing written")
    folder = os.path.join(out, "keyword_spotter", "test_data_set_0")
    os.makedirs(folder, exist_ok=True)
    model = to_onnx(w)
    onnx.checker.check_model(model)
    onnx.save(model, os.path.join(out, "keyword_spotter", "model.onnx"))
    sound = spoken(2, ORDINARY, np.random.default_rng(10))[0].astype(np.float32)
    for kind, name, value in (("input", "sound", sound), ("output", "scores", scores(sound.astype(np.float64), w).astype(np.float32))):
        with open(os.path.join(folder, f"{kind}_0.pb"), "wb") as file:
            file.write(numpy_helper.from_array(value, name).SerializeToString())


main()
