#!/usr/bin/env python3
"""Runs one unittest module with the environment's Python: run_test.py PYTHON MODULE ROOT"""
import os
import subprocess
import sys

python, module, root = sys.argv[1:]
if not os.path.exists(python):
    print("SKIPPED: there is no environment with the package")
    sys.exit(0)
here = os.path.dirname(os.path.abspath(__file__))
sys.exit(subprocess.run([python, "-B", "-m", "unittest", "-v", module],
                        env=dict(os.environ, PYTHONPATH=here, FIRN_SOURCE=root)).returncode)
