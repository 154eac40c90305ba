"""Instances: states, dims, views, threads, closing."""
import gc
import unittest
import weakref

import numpy as np

import firn_compiler as firn
from samples import STATES, path_of, twice


class States(unittest.TestCase):
    def setUp(self):
        self.model = firn.compile(path_of("denoiser"), states=STATES)
        self.sound = np.random.default_rng(0).random((3, 1, 64), np.float32)

    def test_they_go_on_until_reset(self):
        with self.model.instance() as net:
            first = [net.run(block).copy() for block in self.sound]
            self.assertFalse(np.array_equal(first[0], net.run(self.sound[0])))
            net.reset()
            again = [net.run(block).copy() for block in self.sound]
        np.testing.assert_array_equal(first, again)

    def test_calls_of_the_model_have_none(self):
        expected = self.model(self.sound[0])
        self.model(self.sound[1])
        np.testing.assert_array_equal(self.model(self.sound[0]), expected)

    def test_they_can_be_seen_and_set(self):
        net = self.model.instance()
        self.assertEqual(sorted(net.states), sorted(STATES))
        net.run(self.sound[0])
        kept = {name: array.copy() for name, array in net.states.items()}
        expected = net.run(self.sound[1]).copy()
        for name, array in kept.items():
            net.states[name][:] = array
        np.testing.assert_array_equal(net.run(self.sound[1]), expected)


class Dims(unittest.TestCase):
    def test_set_by_shapes_and_by_name(self):
        model = firn.compile(path_of("text_encoder"), dims={"batch": "1..8"})
        texts = np.random.default_rng(0).integers(0, 255, (8, 128), np.uint8)
        every = model(texts)
        with model.instance() as net:
            self.assertEqual(net.dims, {"batch": 8})
            np.testing.assert_array_equal(net.run(texts[:3]), every[:3])
            self.assertEqual((net.dims, net.outputs["embedding"].shape), ({"batch": 3}, (3, 256)))
            net.set_dims(batch=2)
            net.inputs["text"] = texts[:2]
            np.testing.assert_array_equal(net.run(), every[:2])
            for wrong, pattern in (({"batch": 9}, "may be 1 to 8, found 9"), ({"length": 1}, "no dim 'length'")):
                with self.assertRaisesRegex(firn.UsageError, pattern):
                    net.set_dims(wrong)
            self.assertEqual(net.dims, {"batch": 2})


class Lives(unittest.TestCase):
    def test_closed(self):
        with twice().instance() as net:
            view = net.run(np.ones((2, 3), np.float32))
        with self.assertRaisesRegex(firn.UsageError, "the instance is closed"):
            net.run(np.ones((2, 3), np.float32))
        self.assertTrue((view == 2).all())

    def test_they_are_free_when_nobody_uses_them(self):
        model = twice()
        net = model.instance()
        net.inputs["x"][:] = 1
        net.run()
        model(np.ones((2, 3), np.float32))
        ends = [weakref.ref(model), weakref.ref(net)]
        gc.disable()
        try:
            del model, net
            self.assertEqual([end() for end in ends], [None, None])
        finally:
            gc.enable()

    def test_names(self):
        net = twice().instance()
        self.assertEqual(list(net.inputs), ["x"])
        with self.assertRaises(KeyError):
            net.inputs["y"]
        with self.assertRaisesRegex(firn.UsageError, "wanted: x, output_0"):
            net.bind("z", None)

    def test_external_tensors_want_memory(self):
        model = firn.compile(path_of("digits"), options=["--external=image"])
        image = np.zeros((1, 1, 28, 28), np.float32)
        self.assertEqual(model(image).shape, (1, 10))
        with model.instance() as net:
            with self.assertRaises(firn.UsageError):
                net.run()
            with self.assertRaisesRegex(firn.UsageError, "no memory is bound"):
                net.inputs["image"]
            self.assertEqual(net.run(image).shape, (1, 10))

    def test_threads_do_not_change_the_result(self):
        image = np.random.default_rng(0).random((1, 1, 28, 28), np.float32)
        expected = firn.compile(path_of("digits"))(image)
        model = firn.compile(path_of("digits"), threads=4)
        for threads in (None, 1, 2, 4):
            with model.instance(threads) as net:
                for _ in range(3):
                    np.testing.assert_array_equal(net.run(image), expected)


if __name__ == "__main__":
    unittest.main()
