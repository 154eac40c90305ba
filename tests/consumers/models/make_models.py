"""Makes the models of the consumer tests: python make_models.py, with onnx and numpy.

affine.onnx: scores = relu(features * W + b), with W in the external file affine.weights, and a data set for it.
negate.onnx: y = -x, with a symbolic batch dimension, and data sets of two batches for it.
sums.onnx: y = the sum of x over axes, which are an input; sums_axes.pb has a value for them.
doubler.onnx: y = x + x, with names that are no identifiers.
drift.onnx: h_next = scale(x * W) * gain + h by an operator of the program, of a batch of some rows, and a data set for it that
has x and y = h_next * V alone.
gru_sequence.onnx, gru_step.onnx: one GRU over six steps, and over one with its state as input and output; lstm_* alike.
smooth.onnx: a 3x3 convolution large enough for Winograd's algorithm.
elements.onnx: y_T = x for elements of each type T that headers have a word for, and where a flag is set.
words.onnx: words in lower case, their numbers and sums of the rows for these, a label with a mark, words of a sentence.
caches.onnx: a window of the last four rows, caches that are written at a position, and a sum with a first value.
"""
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = os.path.dirname(os.path.abspath(__file__))


def save(model, name):
    onnx.checker.check_model(model)
    with open(os.path.join(FOLDER, name), "wb") as file:
        file.write(model.SerializeToString())


def save_tensor(array, name, path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(numpy_helper.from_array(array, name).SerializeToString())


def make_model(graph):
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def affine():
    weight = (np.arange(12, dtype=np.float32).reshape(4, 3) - 5) / 4
    bias = np.array([0.5, -1, 2], dtype=np.float32)
    with open(os.path.join(FOLDER, "affine.weights"), "wb") as file:
        file.write(weight.tobytes())
    external = TensorProto(name="W", data_type=TensorProto.FLOAT, dims=[4, 3], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "affine.weights"), ("offset", "0"), ("length", str(weight.nbytes))):
        entry = external.external_data.add()
        entry.key, entry.value = key, value
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["features", "W"], ["product"]),
         helper.make_node("Add", ["product", "b"], ["sum"]),
         helper.make_node("Relu", ["sum"], ["scores"])],
        "affine",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, [2, 4])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [2, 3])],
        [external, numpy_helper.from_array(bias, "b")])
    with open(os.path.join(FOLDER, "affine.onnx"), "wb") as file:
        file.write(make_model(graph).SerializeToString())
    features = np.array([[1, 2, 3, 4], [-1, 0.5, 0, 2]], dtype=np.float32)
    data = os.path.join(FOLDER, "affine_data", "test_data_set_0")
    save_tensor(features, "features", os.path.join(data, "input_0.pb"))
    save_tensor(np.maximum(features @ weight + bias, 0), "scores", os.path.join(data, "output_0.pb"))


def sums():
    graph = helper.make_graph(
        [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)], "sums",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 3]),
         helper.make_tensor_value_info("axes", TensorProto.INT64, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])])
    save(make_model(graph), "sums.onnx")
    save_tensor(np.array([0], np.int64), "axes", os.path.join(FOLDER, "sums_axes.pb"))


def drift():
    generator = np.random.default_rng(3)
    w, v = (generator.uniform(-1, 1, dims).astype(np.float32) for dims in ((4, 6), (6, 3)))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "W"], ["m"]),
         helper.make_node("Scale", ["m"], ["s"], domain="com.acme"),
         helper.make_node("Mul", ["s", "gain"], ["g"]),
         helper.make_node("Add", ["g", "h"], ["h_next"]),
         helper.make_node("MatMul", ["h_next", "V"], ["y"])],
        "drift",
        [tensor_info("x", ["batch", 4]), tensor_info("gain", [6]), tensor_info("h", ["batch", 6])],
        [tensor_info("y", ["batch", 3]), tensor_info("h_next", ["batch", 6])],
        [numpy_helper.from_array(w, "W"), numpy_helper.from_array(v, "V")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 1)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=8), "drift.onnx")
    gain = np.array([1, 2, 3, .5, -1, 1], np.float32)
    save_tensor(gain, "gain", os.path.join(FOLDER, "drift_gain.pb"))
    x = generator.uniform(-1, 1, (2, 4)).astype(np.float32)
    data = os.path.join(FOLDER, "drift_data", "test_data_set_0")
    save_tensor(x, "x", os.path.join(data, "input_0.pb"))
    save_tensor(2 * x @ w * gain @ v, "y", os.path.join(data, "output_0.pb"))


def doubler():
    graph = helper.make_graph(
        [helper.make_node("Add", ["serving_default_x:0", "serving_default_x:0"], ["class"])],
        "doubler",
        [helper.make_tensor_value_info("serving_default_x:0", TensorProto.FLOAT, [5])],
        [helper.make_tensor_value_info("class", TensorProto.FLOAT, [5])])
    save(make_model(graph), "doubler.onnx")


def negate():
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["y"])],
        "negate",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])])
    save(make_model(graph), "negate.onnx")
    for k, batch in enumerate((1, 4)):
        x = np.arange(3 * batch, dtype=np.float32).reshape(batch, 3)
        data = os.path.join(FOLDER, "negate_data", f"test_data_set_{k}")
        save_tensor(x, "x", os.path.join(data, "input_0.pb"))
        save_tensor(-x, "y", os.path.join(data, "output_0.pb"))


def smooth():
    weight = np.random.default_rng(2).uniform(-0.1, 0.1, [16, 16, 3, 3]).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "W"], ["y"], pads=[1, 1, 1, 1])], "smooth",
        [tensor_info("x", [1, 16, 32, 32])], [tensor_info("y", [1, 16, 32, 32])], [numpy_helper.from_array(weight, "W")])
    save(make_model(graph), "smooth.onnx")


def tensor_info(name, dims, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


def recurrent(kind, gates, steps, name):
    inputs, hidden = 5, 19
    generator = np.random.default_rng(1)
    weights = [numpy_helper.from_array((generator.standard_normal(dims) / 2).astype(np.float32), tensor)
               for tensor, dims in (("W", (1, gates * hidden, inputs)), ("R", (1, gates * hidden, hidden)),
                                    ("B", (1, 2 * gates * hidden)))]
    states = ["h", "c"] if kind == "LSTM" else ["h"]
    graph = helper.make_graph(
        [helper.make_node(kind, ["x", "W", "R", "B", ""] + states, ["y"] + [state + "_next" for state in states],
                          hidden_size=hidden)],
        name,
        [tensor_info("x", [steps, 1, inputs])] + [tensor_info(state, [1, 1, hidden]) for state in states],
        [tensor_info("y", [steps, 1, 1, hidden])] + [tensor_info(state + "_next", [1, 1, hidden]) for state in states],
        weights)
    save(make_model(graph), name + ".onnx")


def caches():
    def constant(name, values):
        return numpy_helper.from_array(np.array(values, dtype=np.int64), name)
    graph = helper.make_graph(
        [helper.make_node("Slice", ["window", "one", "end", "rows"], ["kept"]),
         helper.make_node("Concat", ["kept", "row"], ["window_next"], axis=1),
         helper.make_node("ReduceSum", ["window_next", "rows"], ["window_sum"], keepdims=0),
         helper.make_node("Reshape", ["row", "flat"], ["flat_row"]),
         helper.make_node("ScatterND", ["cache", "position", "flat_row"], ["cache_next"]),
         helper.make_node("ReduceMax", ["cache_next"], ["cache_max"], axes=[0], keepdims=0),
         helper.make_node("Equal", ["counts", "position"], ["here"]),
         helper.make_node("Where", ["here", "row", "masked"], ["masked_next"]),
         helper.make_node("Add", ["total", "row"], ["total_next"])],
        "caches",
        [tensor_info("row", [2, 1, 3]), tensor_info("position", [1, 1], TensorProto.INT64),
         tensor_info("window", [2, 4, 3]), tensor_info("cache", [5, 6]), tensor_info("masked", [2, 5, 3]),
         tensor_info("total", [2, 1, 3])],
        [tensor_info("window_sum", [2, 3]), tensor_info("cache_max", [6]), tensor_info("window_next", [2, 4, 3]),
         tensor_info("cache_next", [5, 6]), tensor_info("masked_next", [2, 5, 3]), tensor_info("total_next", [2, 1, 3])],
        [constant("one", [1]), constant("end", [4]), constant("rows", [1]), constant("flat", [1, 6]),
         constant("counts", [[0], [1], [2], [3], [4]]),
         numpy_helper.from_array(np.full((2, 1, 3), 10, dtype=np.float32), "total")])
    save(make_model(graph), "caches.onnx")


def words():
    table = np.array([[0, 0], [1, 2], [10, 20], [100, 200]], dtype=np.float32)
    graph = helper.make_graph(
        [helper.make_node("StringNormalizer", ["sentence"], ["lower"], case_change_action="LOWER"),
         helper.make_node("StringSplit", ["lower"], ["words", "counts"]),
         helper.make_node("LabelEncoder", ["words"], ["ids"], domain="ai.onnx.ml", keys_strings=["the", "fox", "dog"],
                          values_int64s=[1, 2, 3], default_int64=0),
         helper.make_node("Gather", ["table", "ids"], ["rows"]),
         helper.make_node("ReduceSum", ["rows", "axis"], ["sums"], keepdims=0),
         helper.make_node("StringConcat", ["lower", "mark"], ["marked"]),
         helper.make_node("RegexFullMatch", ["sentence"], ["greets"], pattern="(?i)hello\\b.*")],
        "words",
        [helper.make_tensor_value_info("sentence", TensorProto.STRING, [2])],
        [helper.make_tensor_value_info("words", TensorProto.STRING, [2, None]),
         helper.make_tensor_value_info("counts", TensorProto.INT64, [2]),
         helper.make_tensor_value_info("sums", TensorProto.FLOAT, [2, 2]),
         helper.make_tensor_value_info("marked", TensorProto.STRING, [2]),
         helper.make_tensor_value_info("greets", TensorProto.BOOL, [2])],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array([1]), "axis"),
         numpy_helper.from_array(np.array(["!"], dtype=object), "mark")])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 4)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=9), "words.onnx")


def elements():
    types = {"f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16,
             "f8e4m3fn": TensorProto.FLOAT8E4M3FN, "f8e5m2": TensorProto.FLOAT8E5M2, "i64": TensorProto.INT64,
             "i8": TensorProto.INT8, "u16": TensorProto.UINT16, "flag": TensorProto.BOOL, "i4": TensorProto.INT4,
             "u4": TensorProto.UINT4}
    graph = helper.make_graph(
        [helper.make_node("Identity", [name], ["y_" + name]) for name in types] + [helper.make_node("NonZero", ["flag"], ["where"])],
        "elements",
        [tensor_info(name, ["n", 3], dtype) for name, dtype in types.items()],
        [tensor_info("y_" + name, ["n", 3], dtype) for name, dtype in types.items()] +
        [tensor_info("where", [2, None], TensorProto.INT64)])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), "elements.onnx")


affine()
drift()
doubler()
negate()
sums()
recurrent("GRU", 3, 6, "gru_sequence")
recurrent("GRU", 3, 1, "gru_step")
recurrent("LSTM", 4, 6, "lstm_sequence")
recurrent("LSTM", 4, 1, "lstm_step")
caches()
smooth()
elements()
words()
