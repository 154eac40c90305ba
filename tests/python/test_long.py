"""Models that are made and dropped leave nothing behind."""
import gc
import resource
import unittest

import numpy as np

import firn_compiler as firn
from samples import small_dot

CYCLES = 10000


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


class Growth(unittest.TestCase):
    def test_models_that_are_dropped(self):
        x = np.ones((1, 64), np.float32)

        def cycle(seed):
            with firn.compile(small_dot(seed % 7), name="small.hlo", options=["-O1"]).instance() as net:
                net.run(x)

        for seed in range(CYCLES // 10):
            cycle(seed)
        gc.collect()
        before = resident()
        for seed in range(CYCLES):
            cycle(seed)
        gc.collect()
        grown = resident() - before
        print(f"{grown / CYCLES:.1f} bytes of growth per cycle")
        self.assertLess(grown, 8e6)

    def test_calls_leave_nothing(self):
        model, x = firn.compile(small_dot(), name="small.hlo"), np.ones((1, 64), np.float32)
        for _ in range(10000):
            model(x)
        before = resident()
        for _ in range(100000):
            model(x)
        self.assertLess(resident() - before, 2e6)


if __name__ == "__main__":
    unittest.main()
