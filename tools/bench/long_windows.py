#!/usr/bin/env python3
"""Networks whose windows are long along one dim, as folders that compare.py of the benchmark data takes.

    long_windows.py OUT_DIR [--force] [NAME ...]

Layers of one convolution with bias and ReLU over a line of 1024 elements, padded so that it keeps its length:

    conv_kK_cC         K taps, C channels to as many
    front_kK           one channel to 64
    depthwise_kK_c64   of 64 channels
    column_kK_c16      a window of Kx1 over columns

`front_kK_sS` are first layers of audio networks: frames of a signal at a stride of S. `crepe_tiny` is CREPE (Kim et al.,
2018, arXiv:1802.06182) with capacity 4: six blocks of a convolution, ReLU, batch norm and pooling by two over a frame of
1024 samples, windows of 512 taps at a stride of 4 and then 64 taps at one, and a dense layer to 360 pitches.

Weights are random, seeded by the network's name. Expected outputs are ONNX Runtime's without its optimiser. Needs numpy,
onnx and onnxruntime.
"""
import argparse
import os
import zlib

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
LENGTH = 1024
WINDOWS = (32, 64, 512, 1024)
NETWORKS = {}  # name -> function(Network)


class Network:
    """Nodes and initializers, in a chain from `x` to `y`."""

    def __init__(self, name, shape):
        self.random = numpy.random.default_rng(zlib.crc32(name.encode()))
        self.name, self.shape, self.nodes, self.constants, self.last = name, shape, [], [], "x"

    def constant(self, values):
        name = f"w{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(values.astype(numpy.float32), name))
        return name

    def weights(self, *shape, scale=1.0):
        return self.constant(self.random.standard_normal(shape) * scale)

    def add(self, op, *operands, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [self.last, *operands], [name], **attributes))
        self.last = name

    def conv(self, channels, filters, window, pads, stride=1, group=1):
        """`window` along the first spatial dim; others, as many as the input has, are one wide."""
        others = len(self.shape) - 3
        taps = (channels // group) * window
        self.add("Conv", self.weights(filters, channels // group, window, *[1] * others, scale=taps ** -0.5),
                 self.weights(filters, scale=0.1), strides=[stride] + [1] * others, group=group,
                 pads=[pads[0]] + [0] * others + [pads[1]] + [0] * others)
        self.add("Relu")

    def model(self):
        self.nodes[-1].output[0] = "y"
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
                 for name, shape in (("x", self.shape), ("y", None))]
        graph = helper.make_graph(self.nodes, self.name, infos[:1], infos[1:], self.constants)
        model = helper.make_model(graph, producer_name="long_windows", ir_version=9,
                                  opset_imports=[helper.make_opsetid("", OPSET)])
        return onnx.shape_inference.infer_shapes(model)


def same(window):
    return (window - 1) // 2, window // 2


def layer(name, channels, filters, window, columns=False, **options):
    def make():
        network = Network(name, [1, channels, LENGTH] + [1] * columns)
        network.conv(channels, filters, window, options.pop("pads", same(window)), **options)
        return network
    NETWORKS[name] = make


def crepe_tiny():
    network = Network("crepe_tiny", [1, 1, 1024, 1])
    channels = 1
    for i, filters in enumerate((128, 16, 16, 16, 32, 64)):
        network.conv(channels, filters, *((512, (254, 254), 4) if i == 0 else (64, (31, 32))))
        norm = [numpy.abs(network.random.standard_normal(filters)) + 0.5 for _ in range(4)]
        network.add("BatchNormalization", *(network.constant(values) for values in norm), epsilon=1e-3)
        network.add("MaxPool", kernel_shape=[2, 1], strides=[2, 1])
        channels = filters
    network.add("Transpose", perm=[0, 2, 3, 1])
    network.add("Flatten")
    network.add("Gemm", network.weights(channels * 4, 360, scale=0.05), network.weights(360, scale=0.1))
    network.add("Sigmoid")
    return network


for taps in WINDOWS:
    for count in 4, 16, 64:
        layer(f"conv_k{taps}_c{count}", count, count, taps)
    layer(f"front_k{taps}", 1, 64, taps)
    layer(f"depthwise_k{taps}_c64", 64, 64, taps, group=64)
    layer(f"column_k{taps}_c16", 16, 16, taps, columns=True)
for taps, stride in (512, 4), (512, 128), (1024, 160):
    layer(f"front_k{taps}_s{stride}", 1, 64, taps, stride=stride)
NETWORKS["crepe_tiny"] = crepe_tiny


def write(name, folder):
    network = NETWORKS[name]()
    model = network.model()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    x = network.random.standard_normal(network.shape).astype(numpy.float32)
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data, exist_ok=True)
    for file, values in ("input_0", x), ("output_0", session.run(None, {"x": x})[0]):
        with open(os.path.join(data, file + ".pb"), "wb") as out:
            out.write(numpy_helper.from_array(values).SerializeToString())
    onnx.save(model, os.path.join(folder, "model.onnx"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out_dir")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--force", action="store_true", help="write networks that are there again")
    options = parser.parse_args()
    for name in options.names or NETWORKS:
        folder = os.path.join(options.out_dir, name)
        if options.force or not os.path.exists(os.path.join(folder, "model.onnx")):
            write(name, folder)
            print(name)


if __name__ == "__main__":
    main()
