"""Several threads: one model, many models, one instance."""
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import firn_compiler as firn
from samples import compiled, path_of, slow_graph, small_dot


class Threads(unittest.TestCase):
    def test_eight_call_one_model(self):
        model = firn.compile(path_of("text_encoder"), dims={"batch": "1..8"})
        texts = np.random.default_rng(0).integers(0, 255, (8, 128), np.uint8)
        expected = [model(texts[: n + 1]) for n in range(8)]

        def work(n):
            return all(np.array_equal(model(texts[: n + 1]), expected[n]) for _ in range(50))

        with ThreadPoolExecutor(8) as pool:
            self.assertTrue(all(pool.map(work, range(8))))

    def test_eight_compile_and_call_models_of_their_own(self):
        x = np.ones((1, 64), np.float32)

        def work(seed):
            return [firn.compile(small_dot(seed * 10 + i), name="small.hlo")(x).tolist() for i in range(5)]

        alone = [work(seed) for seed in range(8)]
        with ThreadPoolExecutor(8) as pool:
            self.assertEqual(list(pool.map(work, range(8))), alone)

    def test_eight_compile_one_model(self):
        data = slow_graph(3)
        with ThreadPoolExecutor(8) as pool:
            models = list(pool.map(lambda _: firn.compile(data, name="slow.hlo"), range(8)))
        self.assertEqual(len({model.manifest["hash"] for model in models}), 1)

    def test_the_lock_is_free_while_compiling(self):
        turns, done = 0, threading.Event()
        compilation = threading.Thread(target=lambda: (firn.compile(slow_graph(6), name="slow6.hlo"), done.set()))
        compilation.start()
        while not done.wait(0.001):
            turns += 1
        compilation.join()
        self.assertGreater(turns, 10)

    def test_an_instance_is_for_one_thread(self):
        body = ["%y0 = tanh %x : f32[1000000]"] + [f"%y{i + 1} = tanh %y{i} : f32[1000000]" for i in range(20)]
        net = compiled("%x: f32[1000000]", "f32[1000000]", *body, "return %y20").instance()
        refused = []

        def work():
            try:
                for _ in range(20):
                    net.run()
            except RuntimeError as error:
                refused.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue(refused and "used by another thread" in refused[0])


if __name__ == "__main__":
    unittest.main()
