#!/usr/bin/env python3
"""How far the outputs of quantised models move when every scale moves by one unit in its last place.

    scale_noise.py QUANTISED/bert_base_s128_qdq QUANTISED/vit_tiny_qdq ...

Each folder has a model.onnx and its stored inputs in test_data_set_0. ONNX Runtime computes the model as written, once
with its own scales and a few times with all of them moved up or down at random; what is printed is the largest
difference over the largest output, as tools that compare engines have it, and that of ONNX Runtime's own optimised
code. A deep network turns one value that rounds the other way into many: engines that differ by no more than this are
as near as the model says.

Wants Python with numpy, onnx and onnxruntime.
"""
import glob
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

TRIALS = 4
LEVELS = onnxruntime.GraphOptimizationLevel


def stored_inputs(folder):
    paths = sorted(glob.glob(os.path.join(folder, "test_data_set_0", "input_*.pb")))
    return [numpy_helper.to_array(onnx.load_tensor(path)) for path in paths]


def run(model, inputs, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([i.name for i in session.get_inputs()], inputs)))


def difference(got, want):
    return max(float(np.abs(g - w).max() / max(np.abs(w).max(), 1e-30)) for g, w in zip(got, want))


def scale_names(model):
    return {node.input[1] for node in model.graph.node if node.op_type in ("QuantizeLinear", "DequantizeLinear")}


def moved(model, names, random):
    """The model with every such scale one unit in the last place higher or lower."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        if tensor.name in names and tensor.data_type == onnx.TensorProto.FLOAT:
            scale = numpy_helper.to_array(tensor)
            ends = np.where(random.random(scale.shape) < 0.5, -np.inf, np.inf).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(np.nextafter(scale, ends), tensor.name))
    return copy


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    for folder in sys.argv[1:]:
        model, inputs, random = onnx.load(os.path.join(folder, "model.onnx")), stored_inputs(folder), np.random.default_rng(1)
        want, names = run(model, inputs, LEVELS.ORT_DISABLE_ALL), scale_names(model)
        trials = [difference(run(moved(model, names, random), inputs, LEVELS.ORT_DISABLE_ALL), want) for _ in range(TRIALS)]
        optimised = difference(run(model, inputs, LEVELS.ORT_ENABLE_ALL), want)
        print(f"{os.path.basename(folder):28s} {len(names):4d} scales moved: "
              + " ".join(f"{trial:.1e}" for trial in trials) + f"   optimised: {optimised:.1e}", flush=True)


if __name__ == "__main__":
    main()
