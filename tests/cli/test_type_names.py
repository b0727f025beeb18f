#!/usr/bin/env python3
"""No two files define a type of the same name in the same namespace: their inline functions, destructors first of all, would
be taken for one another by the linker, which says nothing."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "convert", "examples", "mpi", "include")
NAMESPACE = re.compile(r"\s*(?:inline\s+)?namespace\s*([\w:]*)\s*\{")
TYPE = re.compile(r"\s*(?:struct|class|enum class|enum|union)\s+(?!class\b)(\w+)\s*(?:final\s*)?(?:\{|$|:(?!:))")


def types_of(text):
    """Names of the types at the level of a namespace, as namespace::name; those in an unnamed one are of the file alone."""
    text = re.sub(r'R"\(.*?\)"', '""', text, flags=re.S)
    text = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', "", text, flags=re.S)
    scopes = []  # of each open brace: the name of its namespace, None for anything else
    for line in text.splitlines():
        opens = NAMESPACE.match(line)
        found = None if opens or None in scopes or "" in scopes else TYPE.match(line)
        if found:
            yield "::".join([*scopes, found.group(1)])
        for brace in re.findall(r"[{}]", line):
            if brace == "}":
                scopes.pop()
            else:
                scopes.append(opens.group(1) if opens else None)
                opens = None


class TypeNames(unittest.TestCase):
    def test_are_given_once(self):
        places = {}
        for folder in FOLDERS:
            for path in sorted((ROOT / folder).rglob("*")):
                if path.suffix in (".h", ".cpp"):
                    for name in types_of(path.read_text()):
                        places.setdefault(name, set()).add(str(path.relative_to(ROOT)))
        self.assertGreater(len(places), 200)
        self.assertEqual({name: paths for name, paths in places.items() if len(paths) > 1}, {})

    def test_are_found(self):
        text = ("namespace a {\nnamespace {\nstruct B {\n};\n} // namespace\nstruct C {\n    struct D {};\n};\nclass E final : public C {\n};\n"
                "struct F;\nstruct C::H {\n};\nenum class I { j };\n}\nstruct G\n{};\n")
        self.assertEqual(list(types_of(text)), ["a::C", "a::E", "a::I", "G"])


if __name__ == "__main__":
    sys.exit(unittest.main())
