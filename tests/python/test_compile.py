"""compile(): forms of models, options, errors, progress, Ctrl-C."""
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

import numpy as np

import firn_compiler as firn
from samples import ROOT, STATES, compiled, graph, path_of, slow_graph, twice

try:
    import onnx
except ImportError:
    onnx = None


class Models(unittest.TestCase):
    def test_path_and_bytes_are_the_same_model(self):
        path = path_of("digits")
        image = np.random.default_rng(0).random((1, 1, 28, 28), np.float32)
        expected = firn.compile(path)(image)
        for model in (pathlib.Path(path), pathlib.Path(path).read_bytes(), bytearray(pathlib.Path(path).read_bytes())):
            np.testing.assert_array_equal(firn.compile(model)(image), expected)

    @unittest.skipUnless(onnx, "onnx is not installed")
    def test_model_proto(self):
        model = firn.compile(onnx.load(path_of("digits")))
        self.assertEqual(model.inputs[0].name, "image")
        self.assertEqual(model(np.zeros((1, 1, 28, 28), np.float32)).shape, (1, 10))

    def test_what_is_no_model(self):
        for model in (42, None, ["a"]):
            with self.assertRaisesRegex(firn.UsageError, "wanted a path, bytes or an onnx.ModelProto"):
                firn.compile(model)

    def test_several_outputs_are_a_named_tuple(self):
        model = compiled("%a: f32[2], %b: f32[2]", "f32[2], f32[2]", "%s = add %a, %b : f32[2]", "%d = subtract %a, %b : f32[2]",
                         "return %s, %d")
        result = model([1, 2], b=[3, 4])
        self.assertEqual(result._fields, ("output_0", "output_1"))
        np.testing.assert_array_equal(result.output_0, np.array([4, 6], np.float32))
        np.testing.assert_array_equal(result[1], np.array([-2, -2], np.float32))

    def test_dims(self):
        for dims in ("1..8", (1, 8), range(1, 9)):
            dim = firn.compile(path_of("text_encoder"), dims={"batch": dims}).dims["batch"]
            self.assertEqual((dim.lower, dim.upper), (1, 8))
        self.assertEqual(firn.compile(path_of("text_encoder"), dims={"batch": [1, 4]}).dims["batch"].allowed, (1, 4))
        self.assertEqual(firn.compile(path_of("text_encoder"), dims={"batch": 2}).inputs[0].shape, (2, 128))

    def test_options_are_those_of_the_tool(self):
        model = firn.compile(path_of("digits"), cpu="x86-64-v2", options=["-O1", "--math=strict"], threads=2)
        self.assertEqual(model.manifest["target"]["cpu"], "x86-64-v2")
        with self.assertRaisesRegex(firn.UsageError, "no option '--foo'"):
            firn.compile(path_of("digits"), options=["--foo"])
        with self.assertRaisesRegex(firn.UsageError, "wanted a list of words"):
            firn.compile(path_of("digits"), options="-O1")

    def test_custom_operators(self):
        @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
        def answer(call):
            return 7

        model = firn.compile(path_of("median_filter"), dims={"channels": 2}, custom={"com.acme:MedianFilter": answer})
        with self.assertRaisesRegex(firn.UsageError, "failed; it returned 7"):
            model(np.zeros((2, 200), np.float32))
        with self.assertRaisesRegex(firn.UsageError, "wanted a function of ctypes or an address"):
            firn.compile(path_of("median_filter"), custom={"com.acme:MedianFilter": "median"})

    def test_equal_requests_share_a_model_that_lives(self):
        times, models = [time.perf_counter()], []
        for _ in range(2):
            models.append(firn.compile(slow_graph(4), name="slow.hlo"))
            times.append(time.perf_counter())
        self.assertLess(times[2] - times[1], (times[1] - times[0]) / 2)
        self.assertEqual(models[0].manifest["hash"], models[1].manifest["hash"])

    def test_cache(self):
        x = np.ones((2, 3), np.float32)
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):
                np.testing.assert_array_equal(twice(cache=folder)(x), 2 * x)


class Torch(unittest.TestCase):
    def test_the_exported_program_is_compiled(self):
        asked = {}

        def export(module, args, **named):
            asked.update(named, module=module, args=args)
            return types.SimpleNamespace(model_proto=types.SimpleNamespace(SerializeToString=pathlib.Path(path_of("digits")).read_bytes))

        fake = types.SimpleNamespace(onnx=types.SimpleNamespace(export=export))
        with unittest.mock.patch.dict(sys.modules, {"torch": fake}):
            model = firn.from_torch(self, (1,), dynamic_shapes=None, export={"verbose": False}, cpu="x86-64-v2")
        self.assertEqual((asked["dynamo"], asked["args"], asked["verbose"]), (True, (1,), False))
        self.assertEqual((model.name, model.manifest["target"]["cpu"]), ("Torch.onnx", "x86-64-v2"))

    def test_without_torch(self):
        with unittest.mock.patch.dict(sys.modules, {"torch": None}):
            with self.assertRaisesRegex(firn.UsageError, "PyTorch cannot be imported"):
                firn.from_torch(None, ())


class Errors(unittest.TestCase):
    def test_a_class_for_each_kind(self):
        for kind, model in ((firn.UsageError, "nowhere.onnx"), (firn.ModelError, b"junk"), (firn.UnsupportedError, path_of("median_filter"))):
            with self.assertRaises(kind) as caught:
                firn.compile(model, dims=None)
            self.assertIsInstance(caught.exception, firn.Error)
            self.assertTrue(caught.exception.diagnostics)
            self.assertEqual(caught.exception.diagnostics[0].kind, caught.exception.kind)
            self.assertIn(caught.exception.diagnostics[0].message, str(caught.exception))

    def test_usage_errors_are_value_errors(self):
        self.assertTrue(issubclass(firn.UsageError, ValueError))

    def test_the_node_is_named(self):
        with self.assertRaisesRegex(firn.UnsupportedError, "com.acme.MedianFilter"):
            firn.compile(path_of("median_filter"))

    def test_the_tool_raises_the_same(self):
        with self.assertRaisesRegex(firn.UsageError, "nowhere.onnx"):
            firn.bench("nowhere.onnx")
        with self.assertRaisesRegex(firn.ModelError, "not a readable ONNX file"):
            firn.explain(b"junk")


class Progress(unittest.TestCase):
    def test_phases_are_told(self):
        phases = []
        firn.compile(path_of("digits"), options=["-O1"], progress=phases.append)
        self.assertEqual(phases[0], "import")
        self.assertIn("lower", phases)

    def test_what_progress_raises_ends_the_compilation(self):
        def refuse(phase):
            raise KeyError(phase)

        with self.assertRaises(KeyError):
            firn.compile(slow_graph(3), name="slow.hlo", progress=refuse)

    def test_ctrl_c(self):
        script = ("import firn_compiler as firn, samples\n"
                  "print('ready', flush=True)\n"
                  "firn.compile(samples.slow_graph(), name='slow.hlo', progress=lambda phase: print(phase, flush=True))\n")
        child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in child.stdout:
            if line.strip() == "lower":
                break
        time.sleep(0.3)
        started = time.perf_counter()
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
        self.assertIn("KeyboardInterrupt", errors)
        self.assertLess(time.perf_counter() - started, 2 if os.getloadavg()[0] > os.cpu_count() else 1)


class Verbs(unittest.TestCase):
    def test_save(self):
        model = firn.compile(path_of("digits"), cpu="x86-64-v3")
        with tempfile.TemporaryDirectory() as folder:
            saved = model.save(os.path.join(folder, "new"), cls="vision::Digits")
            self.assertIn("class Digits", saved.header.read_text())
            self.assertTrue(saved.object.stat().st_size > 1000 and saved.manifest.exists())
        with tempfile.TemporaryDirectory() as folder:
            self.assertTrue(firn.compile(graph("%x: f32[2]", "f32[2]", "return %x"), name="same.hlo").save(folder).object.exists())

    def test_quantize_keeps_the_budget(self):
        rng = np.random.default_rng(1)
        images = [rng.random((1, 1, 28, 28), np.float32) for _ in range(4)]
        for samples in (images, [{"image": image} for image in images]):
            small = firn.quantize(path_of("digits"), samples, budget=0.1)
            self.assertIn("int8", small.summary)
            self.assertIn("<html", small.report)
            model, exact = firn.compile(small.onnx), firn.compile(path_of("digits"))
            self.assertLess(max(np.abs(model(each) - exact(each)).max() for each in images), 0.1)
        with self.assertRaisesRegex(firn.UsageError, "found none"):
            firn.quantize(path_of("digits"), [])

    def test_reports(self):
        digits = path_of("digits")
        self.assertTrue(firn.inspect(digits).compiles)
        self.assertFalse(firn.inspect(path_of("median_filter")).compiles)
        self.assertTrue(firn.verify(os.path.dirname(digits)).ok)
        self.assertEqual(firn.verify(os.path.dirname(digits), against="f32", options=["--weight-type=i8"])["passed"], 1)
        times = firn.bench(firn.compile(digits), seconds=0.1)
        self.assertTrue(0 < times.seconds < 1 and times.kernels)
        self.assertIn("Conv", [each.name for each in firn.ops("Conv")])
        self.assertIn("convolution", firn.explain(digits))

    def test_pages_have_no_scripts(self):
        model = firn.compile(path_of("denoiser"), states=STATES)
        for thing in (model, firn.inspect(path_of("digits")), firn.verify(os.path.join(ROOT, "models", "digits"))):
            page = thing._repr_html_()
            self.assertIn("<table>", page)
            self.assertNotIn("<script", page)


if __name__ == "__main__":
    unittest.main()
