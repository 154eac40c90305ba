#!/usr/bin/env python3
"""ONNX's conformance cases through compiled objects, against what is written down of them.

  conformance.py FIRN CASES SOURCE [--update] [--jobs N]

CASES holds the folders node, simple, pytorch-converted and pytorch-operator. Written down are the refusals, with their reasons
(refused.txt: every other case has to pass), how many cases pass for each operator (cases_passed.def, which `firn ops` prints), and the
totals (tools/README.md). Whatever differs is an error; --update writes all three anew.
"""
import collections
import json
import os
import re
import subprocess
import sys

from onnx_messages import fields

FOLDERS = ("node", "simple", "pytorch-converted", "pytorch-operator")
BEGIN, END = "<!-- totals of tests/conformance -->\n", "<!-- end of totals -->\n"


def operators(graph):
    """Names of the operators of a GraphProto and of the graphs in its nodes, as `firn ops` has them."""
    for field, node in fields(graph):
        if field != 1:
            continue
        parts = list(fields(node))
        name = next(body.decode() for number, body in parts if number == 4)
        domain = next((body.decode() for number, body in parts if number == 7), "")
        yield name if domain in ("", "ai.onnx") else f"{domain}.{name}"
        for attribute in (body for number, body in parts if number == 5):
            for inner in (body for number, body in fields(attribute) if number in (6, 11)):
                yield from operators(inner)


def operators_of(path):
    with open(path, "rb") as file:
        return {name for number, graph in fields(file.read()) if number == 7 for name in operators(graph)}


def reason_of(message):
    """One line: of operators that are not supported their names."""
    lines = message.split("\n")
    if re.match(r"\d+ operators? (is|are) not supported", lines[0]):
        return "no " + ", ".join(line.split()[0] for line in lines[1:] if line.startswith("  "))
    return lines[0]


def run(firn, folder, jobs):
    done = subprocess.run([firn, "verify", folder, "--json", "--jobs", jobs], stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"firn verify {folder} ended with exit code {done.returncode}")
    return json.loads(done.stdout)["cases"]


def totals_table(counts):
    lines = ["| cases | pass | of these drawn | refused | wrong |", "|---|---|---|---|---|"]
    for name, count in counts.items():
        lines.append(f"| `{name}` | {count['pass']} | {count['drawn']} | {count['refused']} | {count['WRONG']} |")
    return "\n".join(lines) + "\n"


def measure(firn, cases, jobs):
    """The refusals, the number of cases passed by operator, the table of totals, and what is wrong."""
    refused, passed, counts, wrong = {}, collections.Counter(), {}, []
    for folder in FOLDERS:
        counts[folder] = collections.Counter()
        for case in run(firn, os.path.join(cases, folder), jobs):
            name = f"{folder}/{case['name']}"
            counts[folder][case["verdict"]] += 1
            counts[folder]["drawn"] += case["drawn"] and case["verdict"] == "pass"
            if case["verdict"] == "pass":
                passed.update(operators_of(os.path.join(cases, name, "model.onnx")))
            elif case["verdict"] == "refused":
                refused[name] = reason_of(case["message"])
            else:
                wrong.append(f"{name} is wrong: {case['message']}")
    return refused, passed, totals_table(counts), wrong


def read(path):
    with open(path) as file:
        return file.read()


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def refusal_differences(listed, refused):
    for name in sorted({**listed, **refused}):
        if name not in refused:
            yield f"{name} passes but is listed as refused: {listed[name]}"
        elif name not in listed:
            yield f"{name} is refused but not listed: {refused[name]}"
        elif listed[name] != refused[name]:
            yield f"{name} is refused for another reason than listed: {refused[name]}"


def main():
    firn, cases, source = sys.argv[1:4]
    jobs = sys.argv[sys.argv.index("--jobs") + 1] if "--jobs" in sys.argv else "2"
    list_path = os.path.join(source, "tests", "conformance", "refused.txt")
    passed_path = os.path.join(source, "compiler", "driver", "cases_passed.def")
    readme_path = os.path.join(source, "tools", "README.md")
    refused, passed, table, wrong = measure(firn, cases, jobs)
    passed_text = "// Written by tests/conformance/conformance.py --update: how many of ONNX's conformance cases hold an operator and\n" \
                  "// pass. Whoever includes this file defines FIRN_CASES_PASSED(operator, number).\n" + \
                  "".join(f'FIRN_CASES_PASSED("{name}", {count})\n' for name, count in sorted(passed.items()))
    readme = read(readme_path)
    before, rest = readme.split(BEGIN)
    readme_now = before + BEGIN + table + END + rest.split(END)[1]
    if "--update" in sys.argv:
        head = "".join(line + "\n" for line in read(list_path).split("\n") if line.startswith("#"))
        write(list_path, head + "".join(f"{name}: {reason}\n" for name, reason in sorted(refused.items())))
        write(passed_path, passed_text)
        write(readme_path, readme_now)
    listed = dict(line.split(": ", 1) for line in read(list_path).splitlines() if line and line[0] != "#")
    errors = wrong + list(refusal_differences(listed, refused))
    again = "; conformance.py --update writes it anew"
    if read(passed_path) != passed_text:
        errors.append(f"{passed_path} has other numbers{again}")
    if read(readme_path) != readme_now:
        errors.append(f"{readme_path} has other totals{again}")
    print(table + ("\n".join(errors) or "all as listed"))
    return 1 if errors else 0


sys.exit(main())
