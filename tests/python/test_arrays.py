"""Arrays: which are read and written in place, and what is said of those that do not fit."""
import ctypes
import gc
import unittest

import numpy as np

import dlpack_producer as dl
import firn_compiler as firn
from samples import copy, path_of, twice

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None
try:
    import onnx
except ImportError:
    onnx = None
try:
    import torch
except ImportError:
    torch = None


def address(array):
    return array.__array_interface__["data"][0]


class Seen:
    """A model whose operator notes the addresses that it reads and writes, which are those of inputs and outputs."""

    def __init__(self):
        self.read = self.written = 0

        # Words of firn_custom_call: size, info, data, ...
        @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_uint64))
        def note(call):
            data = ctypes.cast(call[2], ctypes.POINTER(ctypes.c_uint64))
            self.read, self.written = data[0], data[1]
            return 0

        self.model = firn.compile(path_of("median_filter"), dims={"channels": 2}, custom={"com.acme:MedianFilter": note})


class InPlace(unittest.TestCase):
    def test_contiguous_arrays_are_read_where_they_lie(self):
        seen, signal = Seen(), np.zeros((2, 200), np.float32)
        result = seen.model(signal)
        self.assertEqual(seen.read, address(signal))
        self.assertEqual(seen.written, address(result.clean))
        signal.flags.writeable = False
        seen.model(signal)
        self.assertEqual(seen.read, address(signal))

    def test_other_strides_are_copied_once(self):
        seen, wide = Seen(), np.random.default_rng(0).random((2, 400), np.float32)
        seen.model(wide[:, ::2])
        self.assertNotEqual(seen.read, address(wide))
        np.testing.assert_array_equal(twice("f32[3,2]")(np.arange(6, dtype=np.float32).reshape(2, 3).T),
                                      2 * np.arange(6, dtype=np.float32).reshape(2, 3).T)
        unaligned = np.frombuffer(b"\0" + np.arange(6, dtype=np.float32).tobytes(), np.uint8)[1:].view(np.float32)
        np.testing.assert_array_equal(twice()(unaligned.reshape(2, 3)).reshape(-1), 2 * np.arange(6))

    def test_out_is_written_where_it_lies(self):
        seen, signal, out = Seen(), np.zeros((2, 200), np.float32), np.empty((2, 200), np.float32)
        with seen.model.instance() as net:
            result = net.run(signal, out={"clean": out})
            self.assertIs(result.clean, out)
            self.assertEqual((seen.read, seen.written), (address(signal), address(out)))
            net.run(signal)
            self.assertNotEqual(seen.written, address(out))

    def test_bound_arrays_stay_bound(self):
        seen, signal, out = Seen(), np.zeros((2, 200), np.float32), np.empty((2, 200), np.float32)
        net = seen.model.instance()
        net.bind("signal", signal)
        net.bind("clean", out)
        for _ in range(2):
            net.run()
            self.assertEqual((seen.read, seen.written), (address(signal), address(out)))
        other = np.ones((2, 200), np.float32)
        net.run(other)
        self.assertEqual(seen.read, address(other))
        net.run()
        self.assertEqual(seen.read, address(signal))
        net.bind("signal", None)
        net.inputs["signal"][:] = 1
        net.run()
        self.assertEqual(seen.read, address(net.inputs["signal"]))
        self.assertTrue((signal == 0).all())

    def test_a_dlpack_producer_is_read_and_written_in_place(self):
        seen, signal, out = Seen(), dl.Tensor((2, 200)), dl.Tensor((2, 200))
        with seen.model.instance() as net:
            result = net.run(signal, out={"clean": out})
            self.assertIs(result.clean, out)
        self.assertEqual((seen.read, seen.written), (signal.address, out.address))
        gc.collect()
        self.assertEqual(dl.held(), 0)

    def test_a_dlpack_producer_with_strides_is_copied(self):
        tensor = dl.Tensor((2, 3), strides=(1, 2))
        for i in range(6):
            ctypes.c_float.from_buffer(tensor.memory, 4 * i).value = i
        np.testing.assert_array_equal(twice()(tensor), 2 * np.arange(6).reshape(3, 2).T)

    def test_results_are_given_by_dlpack(self):
        result = twice()(np.ones((2, 3), np.float32))
        self.assertEqual(address(np.from_dlpack(result)), address(result))

    def test_bfloats_of_others(self):
        tensor = dl.Tensor((4,), dl.BFLOAT, 16)
        ctypes.c_uint16.from_buffer(tensor.memory, 0).value = 0x3F80
        result = twice("bf16[4]")(tensor)
        self.assertEqual(result.view(np.uint16).tolist(), [0x4000, 0, 0, 0])

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_torch(self):
        seen, signal, out = Seen(), torch.zeros(2, 200), torch.empty(2, 200)
        with seen.model.instance() as net:
            net.run(signal, out={"clean": out})
        self.assertEqual((seen.read, seen.written), (signal.data_ptr(), out.data_ptr()))
        result = seen.model(signal).clean
        self.assertEqual(torch.from_dlpack(result).data_ptr(), address(result))

    def test_views_keep_the_memory(self):
        net = twice().instance()
        view = net.inputs["x"]
        view[:] = 3
        del net
        gc.collect()
        self.assertEqual(view.tolist(), [[3, 3, 3], [3, 3, 3]])

    def test_an_output_may_be_the_next_input(self):
        net = twice().instance()
        value = net.run(np.ones((2, 3), np.float32))
        for expected in (4, 8, 16):
            value = net.run(value)
            self.assertTrue((value == expected).all())


class Types(unittest.TestCase):
    def test_every_type_of_numpy(self):
        for name, dtype in (("f16", "f2"), ("f32", "f4"), ("f64", "f8"), ("i8", "i1"), ("i16", "i2"), ("i32", "i4"), ("i64", "i8"),
                            ("u8", "u1"), ("u16", "u2"), ("u32", "u4"), ("u64", "u8"), ("bool", "?")):
            array = np.array([1, 0, 1, 1, 0], dtype)
            result = copy(f"{name}[5]")(array)
            self.assertEqual(result.dtype, array.dtype)
            np.testing.assert_array_equal(result, array)

    def test_elements_below_a_byte(self):
        for name, values in (("i4", [1, -8, 7, 0, -1]), ("u4", [1, 15, 0, 8, 3]), ("u2", [1, 3, 0, 2, 3]), ("i2", [1, -2, 0, -1, 1])):
            self.assertEqual(copy(f"{name}[5]")(values).tolist(), values)

    def test_strings(self):
        words = ["a", "", "nine letters", "Größe"]
        self.assertEqual(copy("string[2,2]")([words[:2], words[2:]]).tolist(), [words[:2], words[2:]])
        self.assertEqual(copy("string[2,2]")(np.array(words).reshape(2, 2)).reshape(-1).tolist(), words)
        with self.assertRaisesRegex(firn.UsageError, "wanted strings"):
            copy("string[2]")([1, 2])

    @unittest.skipUnless(ml_dtypes, "ml_dtypes is not installed")
    def test_types_of_ml_dtypes(self):
        for name, dtype in (("bf16", ml_dtypes.bfloat16), ("f8e4m3fn", ml_dtypes.float8_e4m3fn)):
            array = np.array([1, -2, 0.5], dtype)
            result = copy(f"{name}[3]")(array)
            self.assertEqual(result.dtype, array.dtype)
            np.testing.assert_array_equal(result.astype(np.float32), array.astype(np.float32))
        for name, dtype in (("i4", ml_dtypes.int4), ("u4", ml_dtypes.uint4)):
            self.assertEqual(copy(f"{name}[3]")(np.array([1, 3, 7], dtype)).tolist(), [1, 3, 7])

    def test_scalars_and_empty_arrays(self):
        self.assertEqual(twice("f32[]")(3).shape, ())
        self.assertEqual(twice("f32[0,3]")(np.empty((0, 3), np.float32)).shape, (0, 3))


class Refused(unittest.TestCase):
    def refused(self, pattern, function, *arguments, **named):
        with self.assertRaisesRegex(firn.UsageError, pattern):
            function(*arguments, **named)

    def test_inputs(self):
        model = twice()
        fitting = np.zeros((2, 3), np.float32)
        self.refused(r"x: wanted float32, found float64; x.astype\('float32'\)", model, np.zeros((2, 3)))
        self.refused("x: wanted float32, found float32|>f4", model, np.zeros((2, 3), ">f4"))
        self.refused(r"x: wanted shape \[2, 3\] \(2,3\), found \[3, 2\]", model, np.zeros((3, 2), np.float32))
        self.refused(r"x: wanted shape \[2, 3\] \(2,3\), found \[\]", model, 1.0)
        self.refused("there is no 'z'; wanted: x", model, z=fitting)
        self.refused("wanted also x: f32", model)
        self.refused("given twice", model, fitting, x=fitting)
        self.refused("wanted 1 inputs, found 2", model, fitting, fitting)
        self.refused("x: wanted an array of float32, found a str", model, "seven")
        self.refused("wanted float32, found bfloat16", model, dl.Tensor((2, 3), dl.BFLOAT, 16))
        self.refused("wanted an array in the memory of the CPU", model, dl.Tensor((2, 3), device=dl.CUDA))

    def test_outputs(self):
        net, x = twice().instance(), np.zeros((2, 3), np.float32)
        fixed = np.zeros((2, 3), np.float32)
        fixed.flags.writeable = False
        for pattern, out in (("can be written to, found a read-only one", fixed), ("wanted a C-contiguous array", np.zeros((3, 2), np.float32).T),
                             ("wanted float32, found int32", np.zeros((2, 3), np.int32)), ("wanted shape", np.zeros((2, 4), np.float32)),
                             ("wanted an array to write to, found a list", [1]), ("shares no memory", x),
                             ("shares no memory", net.outputs["output_0"])):
            self.refused(pattern, net.run, x, out={"output_0": out})
        self.refused("there is no 'y'; wanted: output_0", net.run, x, out={"y": x})
        self.refused("wanted 1 or more, found 0", net.model.instance, 0)

    def test_dims(self):
        model = firn.compile(path_of("text_encoder"), dims={"batch": [1, 4, 8]})
        self.refused("batch may be 1 or 4 or 8, found 3", model, np.zeros((3, 128), np.uint8))
        self.refused(r"text: wanted shape \[4, 128\] \(batch,128\), found \[4, 127\]", model, np.zeros((4, 127), np.uint8))
        self.refused(r"text: wanted 2 dims \(batch,128\)", model, np.zeros(128, np.uint8))

    @unittest.skipUnless(onnx, "onnx is not installed")
    def test_dims_that_inputs_share(self):
        value = onnx.helper.make_tensor_value_info
        graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["a", "b"], ["y"])], "sum", [value("a", 1, ["n"]), value("b", 1, ["n"])],
                                       [value("y", 1, ["n"])])
        model = firn.compile(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)]), dims={"n": "1..8"})
        self.assertEqual(model(np.ones(5, np.float32), np.ones(5, np.float32)).tolist(), [2] * 5)
        self.refused("b: wanted 2 for n, as other inputs have it", model, np.zeros(2, np.float32), np.zeros(3, np.float32))


if __name__ == "__main__":
    unittest.main()
