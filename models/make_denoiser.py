#!/usr/bin/env python3
"""Writes denoiser/model.onnx: a streaming noise suppressor for mono sound at 16 kHz, 64 samples per run.

    make_denoiser.py [OUT_DIR]       default: the folder of this script

Nothing in it is trained. Each run takes the spectrum of the last 128 samples, follows the quietest level that every
frequency has had lately (the noise), turns down what is near it, and adds the overlapping halves up again; `clean` is one
frame behind `frame`. What it carries from run to run are pairs of inputs and outputs (past and past_next ...): declared as
state, they stay in the instance. The script checks that a melody under white noise gains 5 dB, and stores a frame from
the middle of it with the states and float64 results as test_data_set_0. Needs numpy and onnx.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FRAME, WINDOW, BANDS, RATE = 64, 128, 65, 16000
SMOOTHING = .7  # of the power of a band, from run to run
GROWTH = 1.005  # of the estimated noise per run: it may rise by 3.5 dB a second
CAUTION = 5.0   # how far the minimum lies below the mean of noise, and a margin
FLOOR = .05     # what is left of a band of pure noise


def window():
    return np.sqrt(.5 - .5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW))


def transform():
    """The windowed Fourier transform: WINDOW samples to BANDS real and BANDS imaginary parts."""
    angles = 2 * np.pi * np.outer(np.arange(WINDOW), np.arange(BANDS)) / WINDOW
    return window()[:, None] * np.concatenate([np.cos(angles), -np.sin(angles)], 1)


def band_weights():
    """How often a band stands in the full spectrum, over its length: scales the transposed transform to the inverse."""
    return np.where(np.isin(np.arange(BANDS), (0, BANDS - 1)), 1, 2) / WINDOW


def initial_states():
    """By input, in the order of the model. The noise starts above all that can come, so that the first frame sets it."""
    return {"past": np.zeros((1, FRAME)), "power": np.zeros((1, BANDS)), "tail": np.zeros((1, FRAME)),
            "noise": np.full((1, BANDS), 1e6)}


def step(frame, state):
    """One run in float64: the clean frame and the next states."""
    samples = np.concatenate([state["past"], frame], 1)
    spectrum = samples @ transform()
    squares = spectrum ** 2
    power = SMOOTHING * state["power"] + (1 - SMOOTHING) * (squares[:, :BANDS] + squares[:, BANDS:])
    noise = np.minimum(power, GROWTH * state["noise"])
    gain = np.maximum(1 - CAUTION * noise / (power + 1e-9), FLOOR) * band_weights()
    out = (spectrum * np.concatenate([gain, gain], 1)) @ transform().T
    return out[:, :FRAME] + state["tail"], {"past": frame, "power": power, "tail": out[:, FRAME:], "noise": noise}


def to_onnx():
    constants = {"transform": transform(), "band_weights": band_weights()[None], "smoothing": [SMOOTHING], "rest": [1 - SMOOTHING],
                 "growth": [GROWTH], "caution": [CAUTION], "floor": [FLOOR], "one": [1.0], "tiny": [1e-9]}
    integers = {"zero": [0], "half": [FRAME], "whole": [WINDOW], "axis": [1], "bands": [BANDS, BANDS]}
    nodes = []

    def node(kind, inputs, output, **attributes):
        outputs = output.split()
        nodes.append(helper.make_node(kind, inputs.split(), outputs, name=outputs[0], **attributes))

    node("Concat", "past frame", "samples", axis=1)
    node("Slice", "samples half whole axis", "past_next")
    node("MatMul", "samples transform", "spectrum")
    node("Mul", "spectrum spectrum", "squares")
    node("Split", "squares bands", "real_squares imaginary_squares", axis=1)
    node("Add", "real_squares imaginary_squares", "power_now")
    node("Mul", "power smoothing", "power_before")
    node("Mul", "power_now rest", "power_added")
    node("Add", "power_before power_added", "power_next")
    node("Mul", "noise growth", "noise_risen")
    node("Min", "power_next noise_risen", "noise_next")
    node("Mul", "noise_next caution", "noise_assumed")
    node("Add", "power_next tiny", "power_positive")
    node("Div", "noise_assumed power_positive", "noise_share")
    node("Sub", "one noise_share", "signal_share")
    node("Max", "signal_share floor", "gain")
    node("Mul", "gain band_weights", "scaled_gain")
    node("Concat", "scaled_gain scaled_gain", "gains", axis=1)
    node("Mul", "spectrum gains", "clean_spectrum")
    node("Gemm", "clean_spectrum transform", "clean_samples", transB=1)
    node("Slice", "clean_samples zero half axis", "clean_head")
    node("Slice", "clean_samples half whole axis", "tail_next")
    node("Add", "clean_head tail", "clean")

    def values(names_and_widths):
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, width]) for name, width in names_and_widths]
    states = [(name, value.shape[1]) for name, value in initial_states().items()]
    initializers = [numpy_helper.from_array(np.asarray(v, np.float32), k) for k, v in constants.items()]
    initializers += [numpy_helper.from_array(np.asarray(v, np.int64), k) for k, v in integers.items()]
    initializers.append(numpy_helper.from_array(initial_states()["noise"].astype(np.float32), "noise"))
    graph = helper.make_graph(nodes, "denoiser", values([("frame", FRAME), *states]),
                              values([("clean", FRAME), *((name + "_next", width) for name, width in states)]), initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8,
                             producer_name="make_denoiser.py")


def melody(samples):
    time = np.arange(samples) / RATE
    beat = time % .25
    pitch = np.array([440, 554, 659, 880, 659, 554])[(time / .25).astype(int) % 6]
    envelope = .5 * np.minimum(beat / .01, 1) * np.exp(-8 * beat)
    return envelope * (np.sin(2 * np.pi * pitch * beat) + .4 * np.sin(4 * np.pi * pitch * beat))


def decibels(sound, truth):
    return 10 * np.log10((truth ** 2).sum() / ((sound - truth) ** 2).sum())


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    truth = melody(3 * RATE)
    noisy = (truth + np.random.default_rng(1).normal(0, .05, len(truth))).astype(np.float32).astype(np.float64)
    state, clean, stored = initial_states(), [], None
    for index, frame in enumerate(noisy.reshape(-1, 1, FRAME)):
        result, following = step(frame, state)
        if index == 100:
            stored = {"frame": frame, **state}, {"clean": result, **{k + "_next": v for k, v in following.items()}}
        state = following
        clean.append(result[0])
    before, after = decibels(noisy[:-FRAME], truth[:-FRAME]), decibels(np.concatenate(clean)[FRAME:], truth[:-FRAME])
    print(f"signal to noise: {before:.1f} dB before, {after:.1f} dB after")
    if after < before + 5:
        sys.exit("too little: nothing written")
    folder = os.path.join(out, "denoiser", "test_data_set_0")
    os.makedirs(folder, exist_ok=True)
    model = to_onnx()
    onnx.checker.check_model(model)
    onnx.save(model, os.path.join(out, "denoiser", "model.onnx"))
    for kind, tensors in zip(("input", "output"), stored):
        for index, (name, value) in enumerate(tensors.items()):
            with open(os.path.join(folder, f"{kind}_{index}.pb"), "wb") as file:
                file.write(numpy_helper.from_array(value.astype(np.float32), name).SerializeToString())


main()
