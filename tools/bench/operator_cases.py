"""The single-operator models that operators.py times: for each operator a few forms that networks hold, each at sizes
from a thousand to ten million elements of its largest tensor."""
import numpy
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
SIZES = (10**3, 10**4, 10**5, 10**6, 10**7)
FORMS = {}  # operator -> {form: function(size) -> Case}

MATRIX = dict(zip(SIZES, ((25, 40), (100, 100), (250, 400), (1000, 1000), (2500, 4000))))
CUBE = dict(zip(SIZES, ((10, 10, 10), (25, 20, 20), (40, 50, 50), (100, 100, 100), (200, 200, 250))))
IMAGE = dict(zip(SIZES, ((1, 10, 10, 10), (1, 16, 25, 25), (1, 64, 40, 40), (1, 64, 125, 125), (1, 64, 395, 395))))


class Case:
    """One node over inputs, arrays; those in `constants` (name -> array) are initializers of the model."""

    def __init__(self, op, inputs, constants=None, outputs=1, order=None, **attributes):
        self.op, self.inputs, self.constants = op, inputs, constants or {}
        self.attributes = attributes
        self.outputs = [f"y{i}" for i in range(outputs)]
        self.order = order or [*inputs, *self.constants]

    def model(self):
        """Output shapes and types are left to inference; operators.py writes what a run finds."""
        node = helper.make_node(self.op, self.order, self.outputs, **self.attributes)
        infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
                 for name, value in self.inputs.items()]
        graph = helper.make_graph([node], self.op, infos,
                                  [helper.make_empty_tensor_value_info(name) for name in self.outputs],
                                  [numpy_helper.from_array(value, name) for name, value in self.constants.items()])
        return helper.make_model(graph, producer_name="operator_cases", ir_version=9,
                                 opset_imports=[helper.make_opsetid("", OPSET)])


def form(op, name):
    def register(function):
        FORMS.setdefault(op, {})[name] = function
        return function
    return register


def forms(op, table):
    """table: name -> function(size)."""
    for name, function in table.items():
        form(op, name)(function)


def floats(shape, low=-3.0, high=3.0):
    rng = numpy.random.default_rng(len(shape))
    return rng.uniform(low, high, shape).astype("f4")


def ints(values):
    return numpy.array(values, "i8")


def rows(size, width):
    return max(1, size // width), width


# ---------------------------------------------------------------- elementwise

def unary(op, **attributes):
    return lambda size: Case(op, {"x": floats((size,))}, **attributes)


forms("Add", {
    "NCHW + C11": lambda n: Case("Add", {"x": floats(IMAGE[n]), "b": floats((IMAGE[n][1], 1, 1))}),
    "NM + M": lambda n: Case("Add", {"x": floats(MATRIX[n]), "b": floats(MATRIX[n][1:])}),
    "N1 + 1M": lambda n: Case("Add", {"x": floats((MATRIX[n][0], 1)), "b": floats((1, MATRIX[n][1]))}),
})
forms("Sigmoid", {"flat": unary("Sigmoid")})
forms("Tanh", {"flat": unary("Tanh")})
forms("Gelu", {"erf": unary("Gelu"), "tanh": unary("Gelu", approximate="tanh")})


def power(exponent):
    return lambda n: Case("Pow", {"x": floats((n,), 0.01, 4.0)}, {"e": numpy.array(exponent, "f4")})


forms("Pow", {
    "x^2": power(2), "x^3": power(3), "x^0.5": power(0.5), "x^2.2": power(2.2),
    "x^y": lambda n: Case("Pow", {"x": floats((n,), 0.01, 4.0), "y": floats((n,), -2.0, 2.0)}),
})


def where_mask(n):
    heads, side = {10**3: (10, 10), 10**4: (4, 50), 10**5: (10, 100), 10**6: (12, 288), 10**7: (12, 912)}[n]
    mask = numpy.tril(numpy.ones((1, 1, side, side), bool))
    return Case("Where", {"m": mask, "x": floats((1, heads, side, side))},
                {"low": numpy.array(-1e9, "f4")})


forms("Where", {
    "flat": lambda n: Case("Where", {"c": floats((n,)) > 0, "x": floats((n,)), "y": floats((n,), 4, 5)}),
    "11SS mask, x, scalar": where_mask,
})


def cast(source, target):
    return lambda n: Case("Cast", {"x": floats((n,), 0, 200).astype(source)}, to=getattr(TensorProto, target))


forms("Cast", {
    "f32 to i64": cast("f4", "INT64"), "i64 to f32": cast("i8", "FLOAT"), "f32 to f16": cast("f4", "FLOAT16"),
    "f16 to f32": cast("f2", "FLOAT"), "u8 to f32": cast("u1", "FLOAT"),
})

# ---------------------------------------------------------------- reductions and scans


def layer_norm(width, bias=True):
    def case(n):
        constants = {"scale": floats((width,), 0.5, 1.5)}
        if bias:
            constants["bias"] = floats((width,))
        return Case("LayerNormalization", {"x": floats(rows(n, width))}, constants, axis=-1)
    return case


forms("Softmax", {
    "rows of 100": lambda n: Case("Softmax", {"x": floats(rows(n, 100))}, axis=-1),
    "rows of 1000": lambda n: Case("Softmax", {"x": floats(rows(n, 1000))}, axis=-1),
    "NCHW, axis 1": lambda n: Case("Softmax", {"x": floats(IMAGE[n])}, axis=1),
})
forms("LayerNormalization", {
    "rows of 64": layer_norm(64), "rows of 768": layer_norm(768), "rows of 768, no bias": layer_norm(768, False),
})


def mean(axes, table, keep=1):
    return lambda n: Case("ReduceMean", {"x": floats(table[n])}, {"axes": ints(axes)}, keepdims=keep)


forms("ReduceMean", {
    "ABC, last": mean([2], CUBE), "ABC, first": mean([0], CUBE), "ABC, middle": mean([1], CUBE),
    "NCHW, 2 and 3": mean([2, 3], IMAGE),
})


def cumsum(axis):
    return lambda n: Case("CumSum", {"x": floats(CUBE[n])}, {"axis": numpy.array(axis, "i8")})


forms("CumSum", {"ABC, last": cumsum(2), "ABC, middle": cumsum(1), "ABC, first": cumsum(0)})


def top_k(k, width=1000):
    def case(n):
        shape = rows(n, width or n)
        x = numpy.random.default_rng(k).permutation(shape[0] * shape[1]).astype("f4").reshape(shape)
        return Case("TopK", {"x": x}, {"k": ints([k])}, outputs=2)
    return case


forms("TopK", {"1 of 1000": top_k(1), "10 of 1000": top_k(10), "100 of 1000": top_k(100), "10 of all": top_k(10, None)})

# ---------------------------------------------------------------- movement


def transpose(order, shape_of):
    return lambda n: Case("Transpose", {"x": floats(shape_of(n))}, perm=order)


forms("Transpose", {
    "0213, 64 wide": transpose([0, 2, 1, 3], lambda n: (1, max(2, n // 768), 12, 64)),
    "021": transpose([0, 2, 1], CUBE.get),
    "10": transpose([1, 0], MATRIX.get),
    "NCHW to NHWC": transpose([0, 2, 3, 1], IMAGE.get),
    "NHWC to NCHW": transpose([0, 3, 1, 2], lambda n: tuple(IMAGE[n][i] for i in (0, 2, 3, 1))),
    "N3HW to NHW3": transpose([0, 2, 3, 1], lambda n: (1, 3, *[int((n / 3)**0.5)] * 2)),
})


def gather(axis, shape_of, count_of):
    def case(n):
        shape, count = shape_of(n), count_of(n)
        at = numpy.random.default_rng(axis).integers(0, shape[axis], count)
        return Case("Gather", {"x": floats(shape), "i": at.astype("i8")}, axis=axis)
    return case


forms("Gather", {
    "rows of 64": gather(0, lambda n: (1000, 64), lambda n: n // 64),
    "rows of 768": gather(0, lambda n: (1000, 768), lambda n: max(1, n // 768)),
    "ABC, axis 1": gather(1, CUBE.get, lambda n: CUBE[n][1]),
    "columns": gather(1, MATRIX.get, lambda n: MATRIX[n][1]),
})


def concat(axis, table):
    def case(n):
        shape = list(table[n])
        shape[axis] //= 2
        return Case("Concat", {"a": floats(shape), "b": floats(shape)}, axis=axis)
    return case


forms("Concat", {
    "NM, last": concat(1, MATRIX), "NM, first": concat(0, MATRIX), "NCHW, 1": concat(1, IMAGE),
    "ABC, last": concat(2, CUBE),
})


def slice_of(shape_of, starts, ends, axes, steps=None):
    """starts and ends: shares of the dim."""
    def case(n):
        shape = shape_of(n)
        constants = {"starts": ints([int(shape[a] * s) for a, s in zip(axes, starts)]),
                     "ends": ints([int(shape[a] * e) for a, e in zip(axes, ends)]), "axes": ints(axes)}
        if steps:
            constants["steps"] = ints(steps)
        return Case("Slice", {"x": floats(shape)}, constants)
    return case


forms("Slice", {
    "NM, half of last": slice_of(MATRIX.get, [0.25], [0.75], [1]),
    "NM, half of first": slice_of(MATRIX.get, [0.25], [0.75], [0]),
    "NM, step 2 of last": slice_of(MATRIX.get, [0], [1], [1], [2]),
    "NCHW, crop": slice_of(IMAGE.get, [0.1, 0.1], [0.9, 0.9], [2, 3]),
})

# ---------------------------------------------------------------- images


def resize(mode, scale, **attributes):
    def case(n):
        shape = IMAGE[n]
        if scale > 1:  # the size is that of the larger side
            shape = (*shape[:2], *[round(d / scale) for d in shape[2:]])
        return Case("Resize", {"x": floats(shape)}, {"scales": numpy.array([1, 1, scale, scale], "f4")},
                    order=["x", "", "scales"], mode=mode, **attributes)
    return case


forms("Resize", {
    "nearest x2": resize("nearest", 2, coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    "linear x2": resize("linear", 2, coordinate_transformation_mode="half_pixel"),
    "cubic x0.5": resize("cubic", 0.5, coordinate_transformation_mode="half_pixel"),
})


def pool(op, window, stride, pad, **attributes):
    return lambda n: Case(op, {"x": floats(IMAGE[n])}, kernel_shape=[window] * 2, strides=[stride] * 2,
                          pads=[pad] * 4, **attributes)


for _op in "MaxPool", "AveragePool":
    forms(_op, {
        "2x2, stride 2": pool(_op, 2, 2, 0), "3x3, stride 2, pad 1": pool(_op, 3, 2, 1),
        "3x3, stride 1, pad 1": pool(_op, 3, 1, 1), "5x5, stride 1, pad 2": pool(_op, 5, 1, 2),
    })

forms("GlobalAveragePool", {
    "NCHW": lambda n: Case("GlobalAveragePool", {"x": floats(IMAGE[n])}),
    "NC77": lambda n: Case("GlobalAveragePool", {"x": floats((1, n // 49, 7, 7))}),
})
