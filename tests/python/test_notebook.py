"""Executes the notebook, and reads what its cells show."""
import os
import unittest

from samples import ROOT

try:
    import nbformat
    from nbclient import NotebookClient
except ImportError:
    nbformat = None

NOTEBOOK = os.path.join(ROOT, "tools", "python", "example.ipynb")


@unittest.skipUnless(nbformat, "nbformat and nbclient are not installed")
class Notebook(unittest.TestCase):
    def test_it_runs(self):
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": os.path.dirname(NOTEBOOK)}}).execute()
        # FIRN_NOTEBOOK: where to keep the notebook with what it shows.
        if "FIRN_NOTEBOOK" in os.environ:
            nbformat.write(notebook, os.environ["FIRN_NOTEBOOK"])
        texts, pages = [], []
        for cell in notebook.cells:
            for output in cell.get("outputs", ()):
                self.assertNotEqual(output.output_type, "error")
                self.assertNotEqual(output.get("name"), "stderr", output.get("text"))
                texts.append(output.get("text", ""))
                pages.append(output.get("data", {}).get("text/html", ""))
        text, page = "".join(texts), "".join(pages)
        self.assertIn("a 7, with", text)
        self.assertRegex(text, r"dB before, 1[3-9]\.\d dB after|dB before, 2\d\.\d dB after")
        self.assertRegex(text, r"largest difference 0\.0[0-4]")
        self.assertGreaterEqual(page.count("<table>"), 3)
        self.assertNotIn("<script", page)


if __name__ == "__main__":
    unittest.main()
