"""Fails if libfirn.so exports anything but Firn's own functions: exports.py LIBRARY."""
import re
import subprocess
import sys

listing = subprocess.run(["nm", "-D", "--defined-only", sys.argv[1]], check=True, capture_output=True, text=True).stdout
names = [line.split()[-1] for line in listing.splitlines()]
strange = [name for name in names if not re.fullmatch(r"firn_jit_\w+|firn_main", name)]
print("\n".join(strange) or f"{len(names)} functions, all of them Firn's")
sys.exit(1 if strange or len(names) < 20 else 0)
