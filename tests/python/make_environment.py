#!/usr/bin/env python3
"""Makes the wheel of a build and installs it in a virtual environment: make_environment.py ROOT BUILD FOLDER

Packages come from PyPI, or from where pip's settings say (PIP_FIND_LINKS, PIP_NO_INDEX). It is skipped if the build's
requirements cannot be had; the folder is missing then.
"""
import os
import shutil
import subprocess
import sys
import venv

REQUIRED = ["scikit-build-core", "nanobind", "numpy"]
OPTIONAL = ["onnx", "mypy", "nbclient", "ipykernel", "tqdm"]  # tests that want one are skipped without it


def skip(reason):
    shutil.rmtree(folder, ignore_errors=True)
    print("SKIPPED:", reason)
    sys.exit(0)


def pip(*words):
    command = [os.path.join(folder, "bin", "python"), "-m", "pip", "--disable-pip-version-check", "-q", *words]
    return subprocess.run(command, stdin=subprocess.DEVNULL, env=dict(os.environ, PIP_RETRIES="0", PIP_TIMEOUT="10"))


root, build, folder = sys.argv[1:]
if not os.path.exists(os.path.join(folder, "bin", "python")):
    try:
        venv.create(folder, clear=True, with_pip=True)
    except subprocess.CalledProcessError:
        skip("this Python makes no virtual environments (python3-venv)")
if pip("install", *REQUIRED).returncode != 0:
    skip("cannot install " + ", ".join(REQUIRED))
for package in OPTIONAL:
    pip("install", package)
wheels = os.path.join(folder, "wheels")
shutil.rmtree(wheels, ignore_errors=True)
settings = {"cmake.define.FIRN_PREBUILT": build, "build-dir": os.path.join(folder, "module")}
made = pip("wheel", "--no-build-isolation", "--no-deps", "-w", wheels, root,
           *(word for setting in settings.items() for word in ("-C", "=".join(setting))))
if made.returncode != 0:
    sys.exit("the wheel cannot be built")
wheel, = os.listdir(wheels)
size = os.path.getsize(os.path.join(wheels, wheel))
if pip("install", "--force-reinstall", "--no-deps", os.path.join(wheels, wheel)).returncode != 0:
    sys.exit("the wheel cannot be installed")
print(f"{wheel}: {size / 1e6:.1f} MB")
