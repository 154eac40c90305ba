"""The package as such: import, the tool, paths, types."""
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

import firn_compiler as firn
from samples import ROOT, path_of

EMPTY = {"PATH": "", "FIRN_SOURCE": ROOT}


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


class Package(unittest.TestCase):
    def test_import_prints_nothing_and_brings_little(self):
        done = run(sys.executable, "-c", "import sys, numpy; before = set(sys.modules); import firn_compiler; "
                   "print(sorted({each.split('.')[0] for each in set(sys.modules) - before} - sys.stdlib_module_names - {'numpy'}))", env=EMPTY)
        self.assertEqual((done.stdout.strip(), done.stderr), ("['firn_compiler']", ""))

    def test_nothing_is_needed_on_the_path(self):
        done = run(sys.executable, "-c", "import numpy as np\nimport firn_compiler as firn\nmodel = firn.compile(" + repr(path_of("digits")) +
                   ")\nimage = np.zeros((1, 1, 28, 28), np.float32)\nprint(model(image).shape)", env=EMPTY)
        self.assertEqual((done.stdout.strip(), done.stderr), ("(1, 10)", ""))

    def test_the_tool(self):
        tool = os.path.join(os.path.dirname(sys.executable), "firn")
        for command in ([tool], [sys.executable, "-m", "firn_compiler"]):
            self.assertEqual(run(*command, "version", env=EMPTY).stdout.split(), ["firn", firn.__version__])
            self.assertEqual(run(*command, "compile", "nowhere.onnx", env=EMPTY).returncode, 2)

    def test_folders(self):
        printed = run(sys.executable, "-m", "firn_compiler", "--cmake-dir").stdout.strip()
        self.assertEqual(printed, firn.cmake_dir())
        self.assertTrue(os.path.exists(os.path.join(firn.include_dir(), "firn", "jit.h")))

    def test_names(self):
        for name in firn.__all__:
            self.assertTrue(hasattr(firn, name), name)
        self.assertTrue(set(firn.__all__) <= set(dir(firn)))
        with self.assertRaises(AttributeError):
            firn.no_such_name

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
    def test_types_of_the_examples(self):
        with open(os.path.join(ROOT, "tools", "python", "README.md"), encoding="utf-8") as page:
            text = page.read()
        examples = [part.partition("\n```\n")[0] for part in text.split("```python\n")[1:]]
        self.assertGreater(len(examples), 3)
        with tempfile.TemporaryDirectory() as folder:
            for number, example in enumerate(examples):
                with open(os.path.join(folder, f"example_{number}.py"), "w", encoding="utf-8") as file:
                    file.write(example + "\n")
            done = run(sys.executable, "-m", "mypy", "--strict", folder, cwd=folder)
            self.assertEqual(done.returncode, 0, done.stdout)
            done = run(sys.executable, "-m", "mypy", "--strict", "-p", "firn_compiler", cwd=folder)
            self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
