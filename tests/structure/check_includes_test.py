#!/usr/bin/env python3
"""check_includes.py on trees made for it: what it must find, and what it must let pass."""
import os
import tempfile
import unittest

from check_includes import violations


class CheckIncludes(unittest.TestCase):
    def found(self, files):
        """The violations of a tree with one #include per file."""
        with tempfile.TemporaryDirectory() as root:
            for folder in ("compiler", "tools/firn", "runtime"):
                os.makedirs(os.path.join(root, folder))
            for path, included in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(f"// A file.\n#include {included}\n")
            return list(violations(root))

    def test_allowed_edges_pass(self):
        self.assertEqual(self.found({
            "compiler/lower/convolution/winograd.cpp": '"compiler/plan/winograd.h"',
            "compiler/lower/lower.cpp": '"compiler/support/diagnostic.h"',
            "compiler/passes/fusion/form_fusions.cpp": '"compiler/plan/cost.h"',
            "compiler/plan/plan.h": '"compiler/graph/module.h"',
            "compiler/frontend/onnx/import.cpp": '"compiler/graph/module.h"',
            "compiler/codegen/codegen.cpp": "<llvm/IR/Module.h>",
            "tools/firn/main.cpp": '"compiler/driver/compile.h"',
            "runtime/firn_runtime.cpp": '"firn/abi.h"',
        }), [])

    def test_wrong_edge(self):
        self.assertEqual(self.found({"compiler/graph/type.h": '"compiler/target/cpu_table.h"'}),
                         ["compiler/graph/type.h:2: graph may not include compiler/target/cpu_table.h"])

    def test_wrong_edge_in_a_subfolder(self):
        self.assertEqual(self.found({"compiler/kernel/passes/merge.cpp": '"compiler/graph/module.h"'}),
                         ["compiler/kernel/passes/merge.cpp:2: kernel may not include compiler/graph/module.h"])

    def test_wrong_edge_to_a_subfolder(self):
        self.assertEqual(self.found({"compiler/plan/plan.cpp": '"compiler/lower/convolution/winograd.h"'}),
                         ["compiler/plan/plan.cpp:2: plan may not include compiler/lower/convolution/winograd.h"])

    def test_plan_stands_below_passes(self):
        self.assertEqual(self.found({"compiler/plan/plan.cpp": '"compiler/passes/passes.h"'}),
                         ["compiler/plan/plan.cpp:2: plan may not include compiler/passes/passes.h"])

    def test_tools_see_the_driver_alone(self):
        self.assertEqual(self.found({"tools/firn/main.cpp": '"compiler/graph/module.h"'}),
                         ["tools/firn/main.cpp:2: tools/firn may not include compiler/graph/module.h"])

    def test_llvm_and_protobuf(self):
        self.assertEqual(self.found({"compiler/lower/row/row.cpp": "<llvm/IR/Module.h>",
                                     "compiler/driver/run.cpp": "<llvm/ExecutionEngine/JITLink/JITLink.h>",
                                     "compiler/graph/type.cpp": "<google/protobuf/message.h>"}),
                         ["compiler/graph/type.cpp:2: only frontend/onnx and quantize see protobuf",
                          "compiler/lower/row/row.cpp:2: only codegen sees LLVM",
                          "compiler/driver/run.cpp:2: only load sees LLVM's linker"])

    def test_circle_of_subfolders(self):
        tree = {"compiler/lower/a/x.h": '"compiler/lower/b/x.h"', "compiler/lower/b/x.h": '"compiler/lower/c/x.h"'}
        self.assertEqual(self.found(tree), [])
        tree["compiler/lower/c/x.h"] = '"compiler/lower/a/y.h"'
        self.assertEqual(self.found(tree),
                         ["compiler/lower: subfolders include each other in a circle: a -> b -> c -> a"])

    def test_folder_without_a_row(self):
        self.assertEqual(self.found({"compiler/utils/x.h": "<vector>"}),
                         ["compiler/utils: no row of EDGES says what it may include"])

    def test_runtime(self):
        self.assertEqual(self.found({"runtime/pool/pool.cpp": '"compiler/support/diagnostic.h"'}),
                         ["runtime/pool/pool.cpp:2: runtime includes only include/firn, found compiler/support/diagnostic.h"])


if __name__ == "__main__":
    unittest.main()
