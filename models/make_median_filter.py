#!/usr/bin/env python3
"""Writes median_filter/model.onnx: a signal without its spikes, by an operator that the program brings along.

    make_median_filter.py [OUT_DIR]       default: the folder of this script

com.acme:MedianFilter gives the median of the `size` samples around each; the ends count as often as it takes. What it takes
away are the spikes, of which the network gives the largest. Needs numpy and onnx.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LENGTH, SIZE = 200, 5


def model():
    signal = helper.make_tensor_value_info("signal", TensorProto.FLOAT, ["channels", LENGTH])
    clean = helper.make_tensor_value_info("clean", TensorProto.FLOAT, ["channels", LENGTH])
    largest = helper.make_tensor_value_info("largest_spike", TensorProto.FLOAT, ["channels"])
    axes = numpy_helper.from_array(np.array([1]), "axes")
    nodes = [helper.make_node("MedianFilter", ["signal"], ["clean"], domain="com.acme", size=SIZE),
             helper.make_node("Sub", ["signal", "clean"], ["spikes"]),
             helper.make_node("Abs", ["spikes"], ["sizes"]),
             helper.make_node("ReduceMax", ["sizes", "axes"], ["largest_spike"], keepdims=0)]
    graph = helper.make_graph(nodes, "median_filter", [signal], [clean, largest], [axes])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.acme", 1)], ir_version=10)


def main():
    folder = os.path.join(sys.argv[1] if sys.argv[1:] else os.path.dirname(os.path.abspath(__file__)), "median_filter")
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data, exist_ok=True)
    onnx.save(model(), os.path.join(folder, "model.onnx"))
    rng = np.random.default_rng(5)
    signal = np.sin(np.arange(LENGTH) / 9).astype(np.float32) * np.array([[1], [0.5]], np.float32)
    signal[rng.random(signal.shape) < 0.05] += 3
    padded = np.pad(signal, ((0, 0), (SIZE // 2, SIZE // 2)), mode="edge")
    clean = np.median(np.lib.stride_tricks.sliding_window_view(padded, SIZE, 1), 2).astype(np.float32)
    largest = np.abs(signal - clean).max(1)
    for name, value in (("input_0", signal), ("output_0", clean), ("output_1", largest)):
        tensor = {"input_0": "signal", "output_0": "clean", "output_1": "largest_spike"}[name]
        with open(os.path.join(data, name + ".pb"), "wb") as file:
            file.write(numpy_helper.from_array(value, tensor).SerializeToString())


main()
