"""python -m firn_compiler --cmake-dir | --include-dir | VERB OF THE TOOL..."""
import os
import sys

from . import cmake_dir, include_dir


def main() -> None:
    words = sys.argv[1:]
    if words == ["--cmake-dir"]:
        print(cmake_dir())
    elif words == ["--include-dir"]:
        print(include_dir())
    else:
        tool = os.path.join(cmake_dir(), "bin", "firn")
        os.execv(tool, [tool, *words])


main()
