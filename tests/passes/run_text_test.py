#!/usr/bin/env python3
"""run_text_test.py FIRN FILECHECK: the runner of tests in text form. A stale expected text fails, and with FIRN_BLESS=1 it
is rewritten: whole texts line by line, others with their patterns and variables kept. What cannot be rewritten fails."""
import os
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
GRAPH = """module @m {
  func @main(%x: f32[4]) -> (f32[4]) inputs ["x"] outputs ["y"] {
    %a = abs %x : f32[4]
    %b = negate %a : f32[4]
    return %b
  }
}
"""
KERNELS = """program "m" arena 0 lower_bound 0 weights 0 {
}
"""
WHOLE = " %s | FileCheck --match-full-lines --check-prefix=WHOLE %s\n"
# Name, text before blessing, text after it (None: blessing fails and leaves the text).
CASES = [
    ("patterns.hlo",
     "// RUN: firn opt --verify-only %s | FileCheck %s\n" + GRAPH +
     "// CHECK: [[A:%[a-z]+]] = sign %x : f32[{{[0-9]+}}]\n// CHECK-NEXT: {{%[a-z]+}} = tanh [[A]] : f32[4]\n",
     "// RUN: firn opt --verify-only %s | FileCheck %s\n" + GRAPH +
     "// CHECK: [[A:%[a-z]+]] = abs %x : f32[{{[0-9]+}}]\n// CHECK-NEXT: {{%[a-z]+}} = negate [[A]] : f32[4]\n"),
    ("whole.hlo",
     "// RUN: firn opt --verify-only" + WHOLE + GRAPH + "// WHOLE: module @old {\n// WHOLE-NEXT: gone\n",
     "// RUN: firn opt --verify-only" + WHOLE + GRAPH +
     "".join("// WHOLE" + ("-NEXT: " if at else ": ") + line + "\n" for at, line in enumerate(GRAPH.splitlines()))),
    ("first.kir",
     "// RUN: firn opt --verify-only" + WHOLE + KERNELS,
     "// RUN: firn opt --verify-only" + WHOLE + KERNELS +
     '// WHOLE: program "m" arena 0 lower_bound 0 weights 0 {\n// WHOLE-NEXT: }\n'),
    ("forbidden.hlo", "// RUN: firn opt --verify-only %s | FileCheck %s\n// CHECK-NOT: negate\n" + GRAPH, None),
    ("unlike.hlo", "// RUN: firn opt --verify-only %s | FileCheck %s\n// CHECK: {{zzz}}\n" + GRAPH, None),
    ("no_output.hlo", "// RUN: firn opt --verify-only --passes=zz" + WHOLE + GRAPH + "// WHOLE: module @m {\n", None),
]


def run(path, bless):
    environment = {**os.environ, "FIRN_BLESS": "1" if bless else "0"}
    done = subprocess.run(["sh", os.path.join(FOLDER, "run_text.sh"), *sys.argv[1:3], path], env=environment,
                          capture_output=True, text=True, check=False)
    return done.returncode == 0


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def wrong_in(folder, name, stale, blessed):
    """What is wrong with a case, or None."""
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(stale)
    if run(path, bless=False):
        return "a stale text passes"
    if read(path) != stale:
        return "a run without FIRN_BLESS changes the text"
    if run(path, bless=True) != (blessed is not None):
        return "blessing fails" if blessed else "blessing passes what it cannot rewrite"
    if read(path) != (blessed or stale):
        return "blessing leaves\n" + read(path)
    if blessed and not run(path, bless=False):
        return "a blessed text fails"
    return None


def main():
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name, stale, blessed in CASES:
            wrong = wrong_in(folder, name, stale, blessed)
            if wrong:
                print(f"{name}: {wrong}")
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
