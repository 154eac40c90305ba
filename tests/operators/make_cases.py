#!/usr/bin/env python3
"""Writes the cases of this folder: models of several nodes each, with inputs and with ONNX Runtime's outputs, or, of
operators that it does not have on CPUs, those of a formula.

    make_cases.py FOLDER [NAME...]

Operators outside of ai.onnx, which ONNX's own cases hardly cover. Needs: pip install numpy onnx onnxruntime.
"""
import math
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

ML, CONTRIB, TRAINING = "ai.onnx.ml", "com.microsoft", "ai.onnx.preview.training"
VERSIONS = {"": 18, ML: 3, CONTRIB: 1}
random = np.random.default_rng(17)


def normal(*dims):
    return random.standard_normal(dims).astype(np.float32)


def numbers(array):
    return [float(v) for v in np.asarray(array, np.float32).ravel()]


def value_info(name, value):
    """Of an array, of a map (a dict), or of a list of maps."""
    kind = helper.np_dtype_to_tensor_dtype
    if isinstance(value, np.ndarray):
        return helper.make_tensor_value_info(name, kind(value.dtype), value.shape)
    first = value[0] if isinstance(value, list) else value
    key, held = next(iter(first.items()))
    of_held = helper.make_tensor_type_proto(kind(np.asarray(held).dtype if not isinstance(held, str) else np.dtype(object)), [])
    if isinstance(held, float):
        of_held = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [])
    of_map = helper.make_map_type_proto(onnx.TensorProto.STRING if isinstance(key, str) else onnx.TensorProto.INT64, of_held)
    return helper.make_value_info(name, helper.make_sequence_type_proto(of_map) if isinstance(value, list) else of_map)


def stored(name, value):
    """The bytes of a file of a data set."""
    if isinstance(value, np.ndarray):
        return numpy_helper.from_array(value, name)
    if isinstance(value, list):
        sequence = onnx.SequenceProto(name=name, elem_type=onnx.SequenceProto.MAP)
        sequence.map_values.extend(stored(name, each) for each in value)
        return sequence
    texts = isinstance(next(iter(value)), str)
    made = onnx.MapProto(name=name, key_type=onnx.TensorProto.STRING if texts else onnx.TensorProto.INT64)
    (made.string_keys if texts else made.keys).extend(k.encode() if texts else k for k in value)
    made.values.elem_type = onnx.SequenceProto.TENSOR
    for held in value.values():
        array = np.array(held, dtype=object if isinstance(held, str) else np.float32 if isinstance(held, float) else None)
        made.values.tensor_values.append(numpy_helper.from_array(array))
    return made


class Model:
    """Nodes over inputs; the same array is the same input."""

    def __init__(self, name, **versions):
        self.name, self.versions = name, {**VERSIONS, **versions}
        self.nodes, self.inputs, self.outputs = [], [], []
        self.results = None  # of formulas

    def add(self, op, inputs, count=1, domain=ML, **attributes):
        names = []
        for array in inputs:
            if isinstance(array, str):  # an output of a node before
                names.append(array)
                continue
            if array is not None and not any(array is known for known in self.inputs):
                self.inputs.append(array)
            names.append("" if array is None else self.name_of(array))
        outputs = [f"o{len(self.outputs) + i}" for i in range(count)]
        self.outputs += outputs
        self.nodes.append(helper.make_node(op, names, outputs, domain=domain, **attributes))
        return outputs

    def name_of(self, value):
        return value if isinstance(value, str) else f"i{[known is value for known in self.inputs].index(True)}"

    def write(self, folder):
        inputs = [value_info(f"i{i}", a) for i, a in enumerate(self.inputs)]
        opsets = [helper.make_opsetid(domain, version) for domain, version in self.versions.items()]

        def model(outputs):
            return helper.make_model(helper.make_graph(self.nodes, self.name, inputs, outputs), opset_imports=opsets, ir_version=10)
        results = self.results or self.run(model([helper.make_empty_tensor_value_info(o) for o in self.outputs]))
        data = os.path.join(folder, self.name, "test_data_set_0")
        os.makedirs(data, exist_ok=True)
        onnx.save(model([value_info(o, r) for o, r in zip(self.outputs, results)]),
                  os.path.join(folder, self.name, "model.onnx"))
        for stem, names, arrays in (("input", [i.name for i in inputs], self.inputs), ("output", self.outputs, results)):
            for i, (name, array) in enumerate(zip(names, arrays)):
                with open(os.path.join(data, f"{stem}_{i}.pb"), "wb") as file:
                    file.write(stored(name, array).SerializeToString())

    def run(self, model):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, {f"i{i}": a for i, a in enumerate(self.inputs)})


def features():
    m, x = Model("features"), normal(5, 6)
    holes, words = x.copy(), random.integers(0, 5, (3, 11))
    holes.flat[::4] = np.nan
    m.add("Scaler", [x], offset=numbers(normal(6)), scale=numbers(normal(6)))
    for norm in ("MAX", "L1", "L2"):
        m.add("Normalizer", [x], norm=norm)
    m.add("Imputer", [holes], imputed_value_floats=numbers(normal(6)), replaced_value_float=float("nan"))
    m.add("Imputer", [words], imputed_value_int64s=[9], replaced_value_int64=2)
    m.add("OneHotEncoder", [words], cats_int64s=[4, 0, 2], zeros=1)
    m.add("FeatureVectorizer", [x, holes], inputdimensions=[4, 8])
    m.add("ArrayFeatureExtractor", [x, np.array([[5, 0, 0]])])
    m.add("Binarizer", [x], threshold=0.25)
    m.add("LabelEncoder", [words], keys_int64s=[3, 1, 2], values_floats=[0.5, 1.5, -2.0], default_float=7.0)
    m.add("LabelEncoder", [x], keys_floats=numbers(x[:2]), values_int64s=list(range(12)))
    for mode, longest in (("TF", 2), ("IDF", 2), ("TFIDF", 3)):
        m.add("TfIdfVectorizer", [words], domain="", mode=mode, min_gram_length=1, max_gram_length=longest, max_skip_count=2,
              pool_int64s=[1, 4, 0, 1, 2, 2, 3, 0, 1, 2, 3], ngram_counts=[0, 2, 8], ngram_indexes=[2, 0, 1, 5, 4, 3], weights=numbers(normal(6)))
    return m


def linear_models():
    m, x = Model("linear_models"), normal(7, 4)
    m.add("LinearRegressor", [x], coefficients=numbers(normal(4)), intercepts=[0.5])
    m.add("LinearRegressor", [x], coefficients=numbers(normal(3, 4)), targets=3, post_transform="SOFTMAX")
    m.add("LinearClassifier", [x], 2, coefficients=numbers(normal(3, 4)), intercepts=numbers(normal(3)), classlabels_ints=[5, 0, 2],
          post_transform="SOFTMAX_ZERO")
    for transform in ("NONE", "LOGISTIC"):
        m.add("LinearClassifier", [x], 2, coefficients=numbers(normal(4)), intercepts=[0.1], classlabels_ints=[3, 8], post_transform=transform)
    for kernel, per_class in (("RBF", [2, 3, 1]), ("POLY", [3, 2]), ("SIGMOID", [1, 2, 2]), ("LINEAR", [2, 2])):
        count, vectors = len(per_class), sum(per_class)
        pairs = count * (count - 1) // 2
        chances = {"prob_a": numbers(-abs(normal(pairs))), "prob_b": numbers(normal(pairs))} if kernel != "LINEAR" else {}
        m.add("SVMClassifier", [x], 2, kernel_type=kernel, kernel_params=[0.4, 0.5, 2.0], coefficients=numbers(normal(count - 1, vectors)),
              support_vectors=numbers(normal(vectors, 4)), vectors_per_class=per_class, rho=numbers(normal(pairs)),
              classlabels_ints=[4, 1, 6][:count], **chances)
        m.add("SVMRegressor", [x], kernel_type=kernel, kernel_params=[0.4, 0.5, 3.0], coefficients=numbers(normal(vectors)),
              support_vectors=numbers(normal(vectors, 4)), n_supports=vectors, rho=[0.25], one_class=int(kernel == "POLY"))
    m.add("SVMClassifier", [x], 2, kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0], coefficients=numbers(normal(2, 4)), rho=[0.2],
          classlabels_ints=[1, 2])
    return m


MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def grow(trees, depth, features, modes):
    """Attributes of random trees, and their leaves as (tree, node)."""
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")
    lists, leaves = {f"nodes_{name}": [] for name in names}, []
    for tree in range(trees):
        rows = []

        def node(level):
            at = len(rows)
            rows.append(None)
            if level == 0 or (level < depth and random.random() < 0.2):
                rows[at] = (tree, at, 0, 0.0, "LEAF", 0, 0, 0)
                leaves.append((tree, at))
                return at
            question = (int(random.integers(features)), float(random.integers(-3, 4)) / 2, str(random.choice(modes)))
            rows[at] = (tree, at, *question, node(level - 1), node(level - 1), int(random.integers(2)))
            return at
        node(depth)
        for row in rows:
            for name, value in zip(names, row):
                lists[f"nodes_{name}"].append(value)
    return lists, leaves


def trees():
    m = Model("trees")
    x = (random.integers(-4, 5, (19, 5)) / 2).astype(np.float32)
    x[random.random(x.shape) < 0.1] = np.nan
    for count, depth, targets, aggregate in ((9, 3, 1, "SUM"), (5, 4, 3, "AVERAGE"), (6, 10, 2, "MIN"), (8, 2, 4, "MAX")):
        nodes, leaves = grow(count, depth, 5, MODES)
        m.add("TreeEnsembleRegressor", [x], **nodes, target_treeids=[t for t, _ in leaves], target_nodeids=[n for _, n in leaves],
              target_ids=[t % targets for t, _ in leaves], target_weights=numbers(normal(len(leaves))), n_targets=targets, aggregate_function=aggregate)
    for classes, votes, transform in ((2, 1, "LOGISTIC"), (2, 1, "NONE"), (3, 3, "SOFTMAX"), (4, 2, "NONE")):
        nodes, leaves = grow(7, 3, 5, MODES[:1])
        voters = [(t, n, (t + i) % classes if classes > 2 else 0) for t, n in leaves for i in range(votes)]
        m.add("TreeEnsembleClassifier", [x], 2, **nodes, class_treeids=[t for t, _, _ in voters], class_nodeids=[n for _, n, _ in voters],
              class_ids=[c for _, _, c in voters], class_weights=numbers(abs(normal(len(voters))) / 7 if transform == "NONE" else normal(len(voters))),
              classlabels_int64s=[7, 2, 5, 9][:classes], post_transform=transform)
    return m


def tree_labels():
    """Two classes, of which a row may have votes for one alone: the largest score decides, with 0 or a base value for the
    other. Formulas, as ONNX Runtime asks for a positive score of the second class, and loses votes beside two base values."""
    m, x = Model("tree_labels"), np.array([[0], [1], [2], [3]], np.float32)
    m.results = []

    def add(votes, labels, base=None):
        """A tree of one question, x <= 1; votes as (leaf, class, weight)."""
        leaf, kind, weight = zip(*votes)
        names = {"classlabels_int64s" if isinstance(labels[0], int) else "classlabels_strings": labels}
        m.add("TreeEnsembleClassifier", [x], 2, nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2], nodes_featureids=[0] * 3, nodes_values=[1.0, 0.0, 0.0],
              nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], class_treeids=[0] * len(votes),
              class_nodeids=list(leaf), class_ids=list(kind), class_weights=list(weight), **names, **({"base_values": base} if base else {}))
        sums = np.array([[sum(w for at, c, w in votes if at == 1 + (row > 1) and c == i) for i in (0, 1)] for row, in x], np.float32)
        scores = sums + np.array(base if base and len(base) == 2 else [0, 0], np.float32)
        best = np.argmax(scores, axis=1)
        if len(set(kind)) == 1 and not (base and kind[0] == 1 and len(base) == 2):  # one score, of the second class
            score = sums[:, kind[0]] + np.float32(base[0] if base and kind[0] == 0 else 0)
            positive = min(weight) >= 0
            best = (score > (0.5 if positive else 0)).astype(int)
            scores = np.stack([np.zeros_like(score) if kind[0] == 1 else 1 - score if positive else -score, score], axis=1)
        m.results.extend([np.array(labels)[best] if isinstance(labels[0], int) else np.array([labels[i] for i in best], object), scores])
    for votes in ([(1, 1, -1.25), (2, 0, 0.5)], [(1, 1, 1.25), (2, 0, -0.5)], [(1, 0, -0.25), (2, 1, -0.5)], [(1, 1, -0.25)],
                  [(1, 0, 0.25), (1, 1, 0.5), (2, 0, 0.75)]):
        add(votes, [0, 1])
        add(votes, [7, 3], [-0.5, 0.125])
        add(votes, ["no", "yes"], [1.0, -1.0])
    for kind in (0, 1):
        for weights in ((0.25, 0.75), (-0.25, 0.75)):
            votes = [(1, kind, weights[0]), (2, kind, weights[1])]
            for base in (None, [0.375], [0.375, 0.125], [-0.5, 0.5]):
                add(votes, [4, 9], base)
    return m


def fused():
    m, x = Model("fused", ), normal(2, 3, 16)
    row, skip = normal(16), normal(3, 16)

    def add(op, inputs, count=1, **attributes):
        m.add(op, inputs, count, CONTRIB, **attributes)
    add("Gelu", [x])
    add("QuickGelu", [x])
    add("BiasGelu", [x, row])
    add("FastGelu", [x, row])
    a, b = normal(4, 5), normal(6, 5)
    add("FusedMatMul", [a, b], transB=1, alpha=0.25)
    for activation in ("Relu", "LeakyRelu", "Sigmoid"):
        add("FusedGemm", [a, b, normal(6)], transB=1, alpha=0.5, beta=2.0, activation=activation, **({"activation_alpha": 0.3} if activation == "LeakyRelu" else {}))
    image, filters = normal(1, 4, 6, 7), normal(6, 4, 3, 3)
    add("FusedConv", [image, filters, normal(6), normal(1, 6, 6, 7)], pads=[1, 1, 1, 1], activation="Relu")
    add("FusedConv", [image, filters], activation="Clip", activation_params=[-0.5, 0.75])
    add("SkipLayerNormalization", [x, skip, row, row, row], epsilon=1e-5)
    add("SkipSimplifiedLayerNormalization", [x, x, row])
    m.add("SimplifiedLayerNormalization", [x, row], 2, "", epsilon=1e-6)
    words = random.integers(0, 9, (2, 3)).astype(np.int32)
    add("EmbedLayerNormalization", [words, words % 2, normal(9, 16), skip, normal(2, 16), row, row, words % 2], 2)
    add("GridSample", [image, random.uniform(-1.2, 1.2, (1, 3, 2, 2)).astype(np.float32)], mode="bilinear", padding_mode="border")
    m.add("MaxRoiPool", [image, np.array([[0, -1, 1, 4, 9], [0, 2, 2, 2, 2]], np.float32)], 1, "", pooled_shape=[2, 3])
    return m


def attention():
    m = Model("contrib_attention")
    x, weights, bias = normal(2, 5, 12), normal(12, 48), normal(48)
    lengths, keys = np.array([5, 2], np.int32), np.array([[1, 1, 0, 1, 0], [1, 0, 0, 0, 1]], np.int32)

    def add(op, inputs, count=1, **attributes):
        m.add(op, inputs, count, CONTRIB, **attributes)
    add("Attention", [x, weights, bias, lengths], num_heads=2)
    add("Attention", [x, weights, bias, keys], num_heads=4, scale=0.3)
    add("Attention", [x, weights, bias, None, normal(2, 2, 2, 3, 8)], 2, num_heads=2, unidirectional=1)
    q, k, v, past = normal(2, 5, 16), normal(2, 5, 16), normal(2, 5, 16), normal(2, 2, 3, 8)
    add("MultiHeadAttention", [q, k, v, normal(48), keys], num_heads=2)
    add("MultiHeadAttention", [q, k, v, None, None, normal(1, 2, 5, 8), past, past], 3, num_heads=2)
    add("MultiHeadAttention", [q, normal(2, 2, 7, 8), normal(2, 2, 7, 8)], num_heads=2)
    positions = random.integers(0, 9, (2, 5))
    add("RotaryEmbedding", [q, positions, normal(9, 4), normal(9, 4)])
    add("RotaryEmbedding", [past, np.array([2]), normal(9, 2), normal(9, 2)], interleaved=1, rotary_embedding_dim=4, num_heads=2)
    return m


def quantized():
    """Scales are powers of two, so that what is halfway between two integers is so in any order of arithmetic."""
    m = Model("quantized")

    def add(op, inputs, count=1, **attributes):
        m.add(op, inputs, count, CONTRIB, **attributes)

    def scale(exponent):
        return np.array(2.0 ** exponent, np.float32)

    def u8(*dims):
        return random.integers(0, 256, dims).astype(np.uint8)

    def i8(*dims):
        return random.integers(-128, 128, dims).astype(np.int8)
    zero, signed = np.array(131, np.uint8), np.array(-7, np.int8)
    a, b, s = u8(2, 3, 4, 5), u8(3, 1, 5), i8(3, 17)
    add("QLinearAdd", [a, scale(-4), zero, b, scale(-5), np.array(9, np.uint8), scale(-3), zero])
    add("QLinearAdd", [s, scale(-4), signed, i8(17), scale(-6), signed, scale(-4), signed])
    add("QLinearMul", [a, scale(-4), zero, b, scale(-5), zero, scale(-3), np.array(100, np.uint8)])
    add("QLinearLeakyRelu", [s, scale(-4), signed, scale(-5), signed], alpha=0.25)
    add("QLinearSigmoid", [a, scale(-5), zero, scale(-8), np.array(0, np.uint8)])
    add("QLinearSoftmax", [a, scale(-6), zero, scale(-8), np.array(0, np.uint8)], axis=-1, opset=13)
    add("QLinearSoftmax", [a, scale(-6), zero, scale(-8), np.array(0, np.uint8)], axis=1, opset=12)
    add("QLinearGlobalAveragePool", [u8(2, 3, 4, 4), scale(-4), zero, scale(-5), zero])
    add("QLinearGlobalAveragePool", [u8(2, 4, 4, 3), scale(-4), zero, scale(-4), zero], channels_last=1)
    add("QLinearConcat", [scale(-4), zero, a, scale(-3), zero, a, scale(-5), np.array(7, np.uint8)], axis=1)
    x, w, columns = u8(4, 9), i8(9, 6), (2.0 ** random.integers(-8, -4, 6)).astype(np.float32)
    add("QGemm", [x, scale(-5), zero, w, scale(-6), signed, random.integers(-99, 99, 6).astype(np.int32), scale(-2), zero])
    add("QGemm", [x, scale(-5), zero, i8(6, 9), columns, np.zeros(6, np.int8)], transB=1, alpha=0.5)
    m.add("MatMulIntegerToFloat", [x, w, scale(-5), columns, zero, np.zeros(6, np.int8), normal(6)], domain=CONTRIB)
    m.add("DynamicQuantizeMatMul", [normal(2, 4, 9), w, scale(-6), signed, normal(6)], domain=CONTRIB)
    for bits, block, k in ((4, 16, 40), (4, 32, 64), (8, 16, 48)):
        blocks = -(-k // block)
        weights, scales = u8(7, blocks, block * bits // 8), np.abs(normal(7 * blocks)) + 0.1
        attributes = dict(K=k, N=7, bits=bits, block_size=block)
        add("MatMulNBits", [normal(3, k), weights, scales], **attributes)
        add("MatMulNBits", [normal(3, k), weights, scales, u8(7 * (-(-blocks * bits // 8)))], **attributes)
    add("DequantizeLinear", [s, scale(-4), signed])
    add("QuantizeLinear", [normal(3, 17), scale(-4), signed])
    return m


def quantized_layers():
    m = Model("quantized_layers", **{"": 21})

    def add(op, inputs, count=1, **attributes):
        m.add(op, inputs, count, CONTRIB, **attributes)

    def scale(exponent):
        return np.array(2.0 ** exponent, np.float32)

    def integers(dtype, *dims):
        return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, dims).astype(dtype)

    def scales(*dims):
        return (2.0 ** random.integers(-8, -4, dims)).astype(np.float32)
    zero, signed = np.array(131, np.uint8), np.array(-7, np.int8)
    image, rows = integers(np.uint8, 2, 3, 7, 6), integers(np.int8, 1, 5, 4, 6)
    for include in (0, 1):
        add("QLinearAveragePool", [image, scale(-4), zero, scale(-5), np.array(9, np.uint8)], kernel_shape=[2, 3], strides=[2, 1],
            pads=[0, 1, 1, 1], count_include_pad=include)
    add("QLinearAveragePool", [rows, scale(-4), signed, scale(-4), signed], kernel_shape=[2, 2], channels_last=1)
    add("QLinearAveragePool", [image, scale(-4), zero, scale(-4), zero], kernel_shape=[3, 2], strides=[3, 2], ceil_mode=1)
    add("NhwcMaxPool", [integers(np.uint8, 2, 7, 6, 3)], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
    add("NhwcMaxPool", [rows], kernel_shape=[2, 2], dilations=[2, 1], auto_pad="VALID")
    x, weights, bias = integers(np.uint8, 2, 5, 12), integers(np.int8, 12, 48), normal(48)
    lengths = np.array([5, 2], np.int32)
    add("QAttention", [x, weights, bias, scale(-8), scale(-7), lengths, zero, signed], num_heads=2)
    add("QAttention", [x, weights, bias, scale(-8), scales(48), None, zero, np.zeros(48, np.int8), normal(2, 2, 2, 3, 8)], 2,
        num_heads=2, unidirectional=1)
    for directions, direction, batch, dtype in ((1, "forward", 1, np.int8), (1, "reverse", 3, np.uint8), (2, "bidirectional", 1, np.int8)):
        steps, width, hidden = 6, 7, 5
        w, r = integers(dtype, directions, width, 4 * hidden), integers(dtype, directions, hidden, 4 * hidden)
        columns = scales(directions, 4 * hidden)
        states = [normal(directions, batch, hidden), normal(directions, batch, hidden), normal(directions, 3 * hidden)]
        add("DynamicQuantizeLSTM", [normal(steps, batch, width), w, r, normal(directions, 8 * hidden), None, *states,
                                    columns, np.zeros((directions, 4 * hidden), dtype), scales(directions),
                                    np.full(directions, 120, dtype)], 3, hidden_size=hidden, direction=direction)
    cube = integers(np.uint8, 4, 6, 10)
    for axis, block, dims in ((0, 2, (2, 6, 10)), (1, 3, (4, 2, 10)), (2, 4, (4, 6, 3)), (-3, 4, (1, 6, 10))):
        by, points = scales(*dims), integers(np.uint8, *dims)
        for zeros in ([], [points]):
            m.add("DequantizeLinear", [cube, by, *zeros], domain="", axis=axis, block_size=block)
        m.add("QuantizeLinear", [normal(4, 6, 10), by, points], domain="", axis=axis, block_size=block)
    for directions, direction in ((1, "forward"), (1, "reverse"), (2, "bidirectional")):
        steps, batch, width, hidden = 6, 3, 7, 5
        x, lengths = normal(steps, batch, width), np.array([2, 5, 3], np.int32)
        x[5:] = 50
        add("DynamicQuantizeLSTM", [x, integers(np.uint8, directions, width, 4 * hidden), integers(np.uint8, directions, hidden, 4 * hidden),
                                    normal(directions, 8 * hidden), lengths, 3 * normal(directions, batch, hidden),
                                    normal(directions, batch, hidden), None, scales(directions), np.full(directions, 120, np.uint8),
                                    scales(directions), np.full(directions, 130, np.uint8)], 3, hidden_size=hidden, direction=direction)
    return m


def quantized_tables():
    """Tables of few bits, products of vectors, and zero points that are left out. Scales are powers of two."""
    m, kind = Model("quantized_tables", **{"": 21}), onnx.TensorProto

    def scales(*dims):
        return (2.0 ** random.integers(-8, -4, dims)).astype(np.float32)

    def constant(tensor):  # no output of the model: numpy has no integers of 4 bits
        name = f"c{len(m.nodes)}"
        m.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        return name

    def stored_in(dtype, dims, low, high):
        return constant(helper.make_tensor("", dtype, dims, random.integers(low, high, dims).ravel()))

    def floats(*dims):
        return constant(numpy_helper.from_array(scales(*dims)))

    rows, first = np.array([[3, 0], [-1, 2]]), np.array([1, -2], np.int32)
    for bits, width in ((2, 9), (4, 18), (8, 36)):  # of u8: 36 elements in blocks of 16
        for zeros in ([], [stored_in(kind.UINT8, [4, -(-3 * bits // 8)], 0, 256)]):
            m.add("GatherBlockQuantized", [stored_in(kind.UINT8, [4, width], 0, 256), rows, floats(4, 3), *zeros], domain=CONTRIB,
                  gather_axis=0, quantize_axis=1, block_size=16, bits=bits)
    for dtype, low, high in ((kind.INT4, -8, 8), (kind.UINT4, 0, 16)):
        for gather_axis, quantize_axis, dims, blocks in ((0, 1, [3, 20, 2], [3, 2, 2]), (2, 1, [3, 16, 4], [3, 1, 4]), (1, 0, [33, 2], [3, 2]),
                                                         (0, 0, [40, 2], [3, 2])):
            for zeros in ([], [stored_in(dtype, blocks, low, high)]):
                m.add("GatherBlockQuantized", [stored_in(dtype, dims, low, high), first, floats(*blocks), *zeros], domain=CONTRIB,
                      gather_axis=gather_axis, quantize_axis=quantize_axis, block_size=16)
    m.add("MatMulNBits", [normal(3, 32), random.integers(0, 256, (5, 2, 8)).astype(np.uint8), scales(5, 2), None,
                          random.integers(0, 2, 32).astype(np.int32)], domain=CONTRIB, K=32, N=5, bits=4, block_size=16)

    def u8(*dims):
        return random.integers(0, 256, dims).astype(np.uint8)
    one, zero = np.array([0.25], np.float32), np.array([131], np.uint8)
    vector, matrix, column = u8(6), u8(6, 5), u8(6)
    square = u8(4, 6)
    for a, b in ((vector, matrix), (square, column), (vector, column), (vector, u8(2, 6, 3))):
        m.add("MatMulInteger", [a, b, zero, zero], domain="")
        m.add("QLinearMatMul", [a, one, zero, b, one, zero, np.array([8], np.float32), zero], domain="")
        m.add("MatMulIntegerToFloat", [a, b, one, one, zero, zero], domain=CONTRIB)
    m.add("DynamicQuantizeMatMul", [normal(6), matrix, one, zero], domain=CONTRIB)
    for op in ("QLinearLeakyRelu", "QLinearSigmoid"):
        m.add(op, [matrix, np.array(2.0 ** -5, np.float32), None, np.array(2.0 ** -6, np.float32), np.array(3, np.uint8)], domain=CONTRIB)
    m.add("QLinearSoftmax", [matrix, np.array(2.0 ** -5, np.float32), None, np.array(2.0 ** -8, np.float32), np.array(0, np.uint8)],
          domain=CONTRIB, axis=-1, opset=13)
    m.add("QLinearWhere", [matrix > 99, matrix, one, zero, u8(5), np.array([0.5], np.float32), np.array([9], np.uint8), one,
                           np.array([30], np.uint8)], domain=CONTRIB)
    return m


def decoder(layers, heads, size, vocabulary, positions):
    """A transformer over tokens with caches, as GreedySearch wants its subgraph."""
    width, kind = heads * size, onnx.TensorProto
    weights = {"words": normal(vocabulary, width), "places": normal(positions, width), "gain": np.ones(width, np.float32)}
    nodes = [helper.make_node("Gather", ["words", "input_ids"], ["word"]), helper.make_node("Gather", ["places", "position_ids"], ["place"]),
             helper.make_node("Add", ["word", "place"], ["x0"])]
    inputs = [helper.make_tensor_value_info(name, kind.INT32, ["batch", dim])
              for name, dim in (("input_ids", "seq"), ("position_ids", "seq"), ("attention_mask", "total"))]
    outputs = [helper.make_tensor_value_info("logits", kind.FLOAT, ["batch", "seq", vocabulary])]
    for i in range(layers):
        weights[f"w{i}"], weights[f"b{i}"] = normal(width, 3 * width), normal(3 * width)
        nodes += [helper.make_node("LayerNormalization", [f"x{i}", "gain"], [f"n{i}"]),
                  helper.make_node("Attention", [f"n{i}", f"w{i}", f"b{i}", "attention_mask", f"past_{i}"], [f"a{i}", f"present_{i}"],
                                   domain=CONTRIB, num_heads=heads, unidirectional=1),
                  helper.make_node("Add", [f"x{i}", f"a{i}"], [f"x{i + 1}"])]
        for name, dim, to in (("past", "past", inputs), ("present", "total", outputs)):
            to.append(helper.make_tensor_value_info(f"{name}_{i}", kind.FLOAT, [2, "batch", heads, dim, size]))
    nodes += [helper.make_node("Transpose", ["words"], ["rows"], perm=[1, 0]), helper.make_node("MatMul", [f"x{layers}", "rows"], ["logits"])]
    return helper.make_graph(nodes, "decoder", inputs, outputs, [numpy_helper.from_array(a, n) for n, a in weights.items()])


def greedy_search():
    m, vocabulary = Model("greedy_search"), 23
    eos, pad = 5, 0
    prompt = np.array([[3, 9, 11, 4], [pad, pad, 7, 2], [8, 1, 1, 8]], np.int32)
    allowed = (random.uniform(size=vocabulary) < 0.6).astype(np.int32)
    first = (random.uniform(size=(3, vocabulary)) < 0.5).astype(np.int32)

    def add(layers, longest, *inputs, **attributes):
        lengths = [m.add("Constant", [], domain="", value=numpy_helper.from_array(np.array([n], np.int32)))[0] for n in longest]
        m.add("GreedySearch", [prompt, *lengths, *inputs], 1, CONTRIB, decoder=decoder(layers, 2, 4, vocabulary, 20), eos_token_id=eos,
              pad_token_id=pad, model_type=0, **attributes)
    penalty = np.array([1.4], np.float32)
    add(2, [16])
    add(1, [5])
    add(2, [11, 9], penalty, no_repeat_ngram_size=2)  # behind the end of all texts ONNX Runtime leaves anything
    add(1, [10, 1], np.array([1.0], np.float32), allowed, first)
    add(2, [12, 1], penalty, None, None, np.array([[1, 1, 1, 1], [0, 0, 1, 1], [0, 1, 1, 1]], np.int32), no_repeat_ngram_size=3)
    return m


def split_gelu():
    m, x, bias = Model("split_gelu"), normal(2, 3, 10), normal(10)
    m.add("BiasSplitGelu", [x, bias], domain=CONTRIB)
    left, right = np.split((x + bias).astype(np.float64), 2, axis=-1)
    erf = np.vectorize(math.erf)
    m.results = [(left * right * 0.5 * (1 + erf(right / math.sqrt(2)))).astype(np.float32)]
    return m


def texts(*rows):
    return np.array(rows, dtype=object)


def text():
    m = Model("text", **{"": 21, ML: 4})
    x = texts("the Quick brown", "", "fox  jumps", "über den Zaun ", "a,b,,c", "user@mail.com")
    y = texts(" end", "x", "", "!", "é", "the Quick brown")
    words = texts(*"the quick fox the lazy dog Fox the quick the".split()).reshape(2, 5)

    def add(op, inputs, count=1, **attributes):
        return m.add(op, inputs, count, domain="", **attributes)
    joined, = add("StringConcat", [x, y])
    add("StringConcat", [words, texts("-")])
    add("Equal", [joined, x])
    add("StringSplit", [x], 2)
    add("StringSplit", [joined], 2, delimiter=",", maxsplit=2)
    add("StringSplit", [words], 2, delimiter="u")
    add("RegexFullMatch", [x], pattern=r"[\w.]+@\w+\.(com|org)|(?i)THE .*")
    add("StringNormalizer", [x], case_change_action="UPPER", is_case_sensitive=0, stopwords=["FOX  jumps", "none"], locale="C.UTF-8")
    add("StringNormalizer", [texts("a", "b")], locale="C.UTF-8", stopwords=["a", "b"], is_case_sensitive=1)
    m.add("LabelEncoder", [words], keys_strings=["the", "fox", "dog"], values_int64s=[5, -2, 7], default_int64=-9)
    m.add("LabelEncoder", [words], keys_strings=["the", "fox", "dog"], values_floats=[0.5, -2, 7])
    m.add("LabelEncoder", [words], keys_strings=["the", "fox", "dog"], values_strings=["der", "Fuchs", ""], default_string="?")
    m.add("LabelEncoder", [np.array([[3, 1, 7]])], keys_int64s=[1, 3], values_strings=["one", "three"])
    m.add("CategoryMapper", [words], cats_strings=["fox", "the"], cats_int64s=[3, 8], default_int64=-4)
    m.add("CategoryMapper", [np.array([8, 2, 3])], cats_strings=["fox", "the"], cats_int64s=[3, 8], default_string="none")
    m.add("OneHotEncoder", [words], cats_strings=["the", "dog", "fox"], zeros=1)
    for mode, longest in (("TF", 2), ("TFIDF", 3)):
        add("TfIdfVectorizer", [words], mode=mode, min_gram_length=1, max_gram_length=longest, max_skip_count=1,
            pool_strings=["the", "fox", "the", "quick", "quick", "fox", "fox", "the", "lazy"], ngram_counts=[0, 2, 6],
            ngram_indexes=[1, 0, 2, 4, 3], weights=numbers(normal(5)))
    # Words of a sentence, as rows of a table, through a layer.
    lower, = add("StringNormalizer", [texts("The fox and THE dog")], case_change_action="LOWER", locale="C.UTF-8")
    tokens, _ = add("StringSplit", [lower], 2)
    ids, = m.add("LabelEncoder", [tokens], keys_strings=["the", "fox", "dog"], values_int64s=[1, 2, 3], default_int64=0)
    rows, = add("Gather", [normal(4, 6), ids])
    add("MatMul", [rows, normal(6, 3)])
    # Moved.
    table = texts(*"abcdefgh").reshape(2, 4)
    turned, = add("Transpose", [table])
    add("Concat", [turned, turned], axis=1)
    add("Where", [np.array([[True], [False]]), table, words[:, :4].copy()])
    add("Expand", [texts("same"), np.array([2, 3])])
    add("Tile", [turned, np.array([1, 2])])
    # To numbers, and from integers, as floats are written as numpy writes them, which ONNX Runtime does not.
    for to in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.INT64, onnx.TensorProto.BOOL):
        add("Cast", [texts("0", "-17", " 3", "2147483648")], to=to)
    add("Cast", [texts("-INF", "1.25e-3", "nan", "3.4e39", ".5")], to=onnx.TensorProto.FLOAT)
    for whole in (np.array([True, False]), np.array([-5, 2**62]), np.array([2**64 - 1], np.uint64), np.array([-7, 8], np.int8)):
        add("Cast", [whole], to=onnx.TensorProto.STRING)
    return m


def maps():
    m, x = Model("maps"), normal(4, 5)
    # As converters of scikit-learn end their classifiers.
    for names in (["no", "yes"], ["setosa", "versicolor", "virginica"]):
        count = len(names)
        coefficients, intercepts = normal(count, 5), normal(count)
        label, scores = m.add("LinearClassifier", [x], 2, coefficients=numbers(coefficients), intercepts=numbers(intercepts),
                              classlabels_strings=names, post_transform="SOFTMAX")
        m.add("ZipMap", [scores], classlabels_strings=names)
    nodes, leaves = grow(7, 3, 5, MODES[:1])
    voters = [(t, n, (t + i) % 3) for t, n in leaves for i in range(3)]
    _, scores = m.add("TreeEnsembleClassifier", [x], 2, **nodes, class_treeids=[t for t, _, _ in voters], class_nodeids=[n for _, n, _ in voters],
                      class_ids=[c for _, _, c in voters], class_weights=numbers(normal(len(voters))), classlabels_strings=["a", "", "ü"])
    m.add("ZipMap", [scores], classlabels_int64s=[9, -2, 4])
    m.add("SVMClassifier", [x], 2, kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0], coefficients=numbers(normal(2, 5)), rho=[0.2],
          classlabels_strings=["low", "high"])
    words = {"fox": 0.5, "the": 2.0, "zaun": -1.0}
    counts = {7: 3.0, -2: 1.0, 0: 5.0, 11: 4.0}
    m.add("DictVectorizer", [words], string_vocabulary=["the", "dog", "fox", "über"])
    m.add("DictVectorizer", [counts], int64_vocabulary=[1, 7, 0])
    ranks = {8: 1.75, 2: -0.5, 0: 4.0}
    for to in ("TO_FLOAT", "TO_INT64"):
        m.add("CastMap", [ranks], cast_to=to)
        m.add("CastMap", [ranks], cast_to=to, map_form="SPARSE", max_map=5)
    return m


def signal():
    m = Model("signal", **{"": 20})
    one = np.array(1)
    for length in (400, 509, 1024):
        m.add("DFT", [normal(2, length, 1), None, one], domain="", onesided=1)
    spectrum, = m.add("DFT", [normal(3, 2, 96, 2), None, np.array(2)], domain="")
    m.add("DFT", [spectrum, None, np.array(2)], domain="", inverse=1)
    m.add("STFT", [normal(2, 1600, 1), np.array(160), normal(400)], domain="")
    return m


def crops():
    m = Model("crops")
    image = normal(2, 3, 7, 9)
    edges = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.7, 1.3], [0.9, 0.8, 0.1, -0.2], [0.5, 0.5, 0.5, 0.5]], np.float32)
    numbers_of = np.array([0, 1, 1, 0], np.int32)
    for mode in ("bilinear", "nearest"):
        for size in ([4, 6], [1, 5], [3, 1]):
            sizes = np.array(size, np.int32)
            name, = m.add("Constant", [], domain="", value=numpy_helper.from_array(sizes))
            m.add("CropAndResize", [image, edges, numbers_of, name], domain=CONTRIB, mode=mode, extrapolation_value=-3.0)
    return m


def nested_gradients():
    """Six derivatives of derivatives: of higher order, mixed, in a loss, of a step of descent, at two points, of a product."""
    m = Model("nested_gradients", **{TRAINING: 1})
    x, y, w, r = (normal(7) for _ in range(4))
    a, b = normal(3, 5), normal(5, 4)

    def node(op, *inputs):
        return m.add(op, inputs, domain="")[0]

    def gradient(values, of, by):
        """By tensors `by`, at `values`."""
        return m.add("Gradient", values, len(values), domain=TRAINING, xs=[m.name_of(each) for each in by], y=of)

    square = node("Mul", x, x)
    first, = gradient([x], node("Mul", square, square), [x])
    second, = gradient([x], first, [x])
    gradient([x], second, [x])
    of_x, _ = gradient([x, y], node("Mul", square, node("Mul", node("Mul", y, y), y)), [x, y])
    gradient([x, y], of_x, [x, y])
    sine = node("Sin", x)
    slope, = gradient([x], sine, [x])
    gradient([x], node("Add", sine, node("Mul", slope, slope)), [x])
    downhill, = gradient([w], node("Mul", w, w), [w])
    moved = node("Sub", w, node("Mul", r, downhill))
    gradient([r, w], node("Mul", moved, moved), [r, w])
    at_twice, = gradient([node("Add", x, x)], node("Mul", square, x), [x])
    gradient([x], at_twice, [x])
    bent = node("Tanh", node("MatMul", a, b))
    of_a, _ = gradient([a, b], node("Mul", bent, bent), [a, b])
    gradient([a, b], of_a, [a, b])

    x, y, w, r, a, b = (each.astype(np.float64) for each in (x, y, w, r, a, b))
    t, after, width = np.tanh(a @ b), w - 2 * r * w, b.sum(0)
    d, dd = 2 * t * (1 - t * t), 2 * (1 - t * t) * (1 - 3 * t * t)
    values = [x**2, x**4, 4 * x**3, 12 * x**2, 24 * x,
              y**2, y**3, x**2 * y**3, 2 * x * y**3, 3 * x**2 * y**2, 2 * y**3, 6 * x * y**2,
              np.sin(x), np.cos(x), np.cos(x)**2, np.sin(x) + np.cos(x)**2, np.cos(x) * (1 - 2 * np.sin(x)),
              w**2, 2 * w, 2 * r * w, after, after**2, -4 * after * w, 2 * after * (1 - 2 * r),
              2 * x, x**3, 12 * x**2, 24 * x,
              a @ b, t, t * t, d @ b.T, a.T @ d, (dd * width) @ b.T, d.sum(0) + a.T @ (dd * width)]
    m.results = [each.astype(np.float32) for each in values]
    return m


for make in (features, linear_models, trees, tree_labels, fused, attention, quantized, quantized_layers, quantized_tables, split_gelu, greedy_search, text, maps, signal, crops,
             nested_gradients):
    if not sys.argv[2:] or make.__name__ in sys.argv[2:]:
        make().write(sys.argv[1])
