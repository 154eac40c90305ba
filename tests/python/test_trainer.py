"""Trainers: steps, parameters, states, files."""
import os
import tempfile
import unittest

import numpy as np

import firn_compiler as firn
from samples import path_of

PRODUCT = b"""
module @product {
  symbol n in [1, 8]
  func @main(%x: f32[n,3]) -> (f32[n,2]) inputs ["x"] outputs ["y"] {
    %w = constant [0.5, -0.5, 0.25, 0, 1, -1] : f32[3,2] loc("layer/w")
    %y = dot %x, %w {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : f32[n,2]
    return %y
  }
}
"""


def product(optimizer="sgd", **options):
    return firn.compile(PRODUCT, name="product.hlo").trainer("mse", optimizer, **options)


def batch(rows, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, 3)).astype(np.float32), rng.normal(size=(rows, 2)).astype(np.float32)


class Steps(unittest.TestCase):
    def test_a_step_is_that_of_numpy(self):
        trainer = product(learning_rate=0.25)
        x, labels = batch(5)
        w = trainer.parameters["layer/w"].copy()
        error = x @ w - labels
        step = trainer.step(x, labels)
        self.assertAlmostEqual(step.loss, float((error ** 2).mean()), 5)
        self.assertEqual((step.number, trainer.step_count, trainer.learning_rate), (1, 1, 0.25))
        np.testing.assert_allclose(trainer.parameters["layer/w"], w - 0.25 * 2 * x.T @ error / error.size, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(trainer.infer(x[:2]), x[:2] @ trainer.parameters["layer/w"], rtol=1e-5, atol=1e-6)

    def test_inputs_that_are_not_given_stay(self):
        trainer = product("adam", learning_rate=0.1)
        x, labels = batch(8)
        first = trainer.step(labels=labels, x=x).loss
        for _ in range(200):
            last = trainer.step().loss
        self.assertLess(last, first / 2)
        before = trainer.parameters["layer/w"].copy()
        self.assertAlmostEqual(trainer.evaluate().loss, trainer.evaluate(x, labels).loss, 7)
        np.testing.assert_array_equal(before, trainer.parameters["layer/w"])
        trainer.reset()
        self.assertAlmostEqual(trainer.evaluate().loss, first, 6)

    def test_labels_of_classes_are_integers_of_any_width(self):
        trainer = firn.compile(path_of("digits")).trainer("softmax_cross_entropy", "adamw", trainable=["dense.*"], learning_rate=1e-3,
                                                          weight_decay=0.01, class_weights=[1] * 10)
        self.assertEqual(sorted(trainer.parameters), ["dense.bias", "dense.weight"])
        image = np.full((1, 1, 28, 28), 0.5, np.float32)
        losses = [trainer.step(image, np.array([3], dtype)).loss for dtype in (np.int64, np.int32, np.uint8)]
        losses.append(trainer.step(image, [3]).loss)
        self.assertEqual(sorted(losses, reverse=True), losses)

    def test_a_loss_that_is_not_finite_changes_nothing(self):
        trainer = product("adam", learning_rate=0.1)
        x, labels = batch(3)
        trainer.step(x, labels)
        before = trainer.state_dict()
        x[1, 1] = np.nan
        with self.assertRaises(firn.UsageError):
            trainer.step(x, labels)
        for name, array in trainer.state_dict().items():
            np.testing.assert_array_equal(array, before[name])

    def test_what_does_not_fit(self):
        trainer = product()
        x, labels = batch(3)
        for arguments, pattern in (((x,), "wanted also labels"), ((x[:2], labels), "."), ((x.astype(np.float64), labels), "float64"),
                                   ((x[0], labels), "wanted 2 dims"), (batch(9), "1 to 8|1..8"), ((x, labels, x), "wanted 2 inputs, found 3"),
                                   ((x[:, :2], labels), "dim 1 is 2, wanted 3")):
            with self.assertRaisesRegex(firn.UsageError, pattern):
                trainer.step(*arguments)
        with self.assertRaisesRegex(firn.UsageError, "no 'z'"):
            trainer.step(z=x)
        self.assertEqual(trainer.step_count, 0)
        with self.assertRaisesRegex(firn.UsageError, "no loss 'zz'"):
            firn.compile(path_of("digits")).trainer("zz")
        with self.assertRaisesRegex(firn.UsageError, "names no tensor"):
            firn.compile(path_of("digits")).trainer("mse", trainable="zz.*")


class Parameters(unittest.TestCase):
    def test_they_can_be_seen_and_set(self):
        trainer = product()
        view = trainer.parameters["layer/w"]
        trainer.parameters["layer/w"] = np.ones((3, 2), np.float32)
        np.testing.assert_array_equal(view, np.ones((3, 2)))
        view[:] = 2
        x, _ = batch(4)
        np.testing.assert_allclose(trainer.infer(x), x @ np.full((3, 2), 2, np.float32), rtol=1e-5, atol=1e-6)
        with self.assertRaisesRegex(firn.UsageError, "wanted shape"):
            trainer.parameters["layer/w"] = np.ones((2, 3), np.float32)
        with self.assertRaises(KeyError):
            trainer.parameters["w"]

    def test_training_goes_on_from_a_state(self):
        def train(trainer, numbers):
            for i in numbers:
                trainer.step(*batch(i % 8 + 1, i))

        whole, first, second, third = (product("adam", learning_rate=0.01) for _ in range(4))
        train(whole, range(20))
        train(first, range(9))
        second.load_state_dict(first.state_dict())
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "w.npz")
            first.save(path)
            third.load(path)
            with np.load(path) as arrays:
                np.testing.assert_array_equal(arrays["layer/w"], first.parameters["layer/w"])
            with self.assertRaisesRegex(firn.UsageError, "another optimizer"):
                product("momentum").load(path)
            with self.assertRaisesRegex(firn.UsageError, "saved as"):
                first.save(os.path.join(folder, "w.txt"))
        for resumed in (second, third):
            self.assertEqual(resumed.step_count, 9)
            train(resumed, range(9, 20))
            for name, array in whole.state_dict().items():
                np.testing.assert_array_equal(array, resumed.state_dict()[name])
        with self.assertRaisesRegex(firn.UsageError, "there is no"):
            second.load_state_dict({})
        with self.assertRaisesRegex(firn.UsageError, "has no 'z'"):
            second.load_state_dict({**first.state_dict(), "z": 1})

    def test_views_outlive_their_trainer(self):
        trainer = product()
        view = trainer.parameters["layer/w"]
        del trainer
        view[:] = 3
        self.assertEqual(view.sum(), 18)


if __name__ == "__main__":
    unittest.main()
