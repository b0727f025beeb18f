#!/usr/bin/env python3
"""Write expected.txt: what Jinja makes of cases.json with every chat template that llama.cpp ships.

    make_expected.py TEMPLATES    the folder models/templates of a llama.cpp tree; needs the package jinja2

Templates are run as transformers runs them. A line of expected.txt is the name of a template and the cases in order, conversation by
conversation and each in the variants of cases.json: the first 10 digits of the SHA-256 of the text; ! and those of the message where
the template refuses the conversation; ? where Jinja fails in another way, for which we are free.
"""

import hashlib
import json
import sys
from datetime import datetime, timezone
from pathlib import Path

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = Path(__file__).parent


class Generation(jinja2.ext.Extension):
    """{% generation %} marks what a model wrote, for training; the text inside stays."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_text"), [], [], body).set_lineno(line)

    def _text(self, caller):
        return caller()


def environment(now):
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: datetime.fromtimestamp(now, timezone.utc).strftime(form)
    return env


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def run(template, cases, conversation, variant):
    variables = dict(cases["variables"])
    variables.update(variant.get("variables", {}))
    try:
        return digest(template.render(messages=conversation, documents=None, tools=cases["tools"] if variant.get("tools") else None,
                                      add_generation_prompt=variant["add_generation_prompt"], **variables))
    except jinja2.exceptions.TemplateError as error:
        if type(error) is jinja2.exceptions.TemplateError:
            return "!" + digest(error.message)
        return "?"
    except (TypeError, KeyError, ValueError, AttributeError, IndexError):
        return "?"


def main():
    cases = json.loads((HERE / "cases.json").read_text())
    env = environment(cases["now"])
    lines = []
    for path in sorted(Path(sys.argv[1]).glob("*.jinja")):
        template = env.from_string(path.read_text())
        found = [run(template, cases, conversation, variant) for conversation in cases["conversations"] for variant in cases["variants"]]
        lines.append(path.name + " " + " ".join(found) + "\n")
    (HERE / "expected.txt").write_text("".join(lines))
    print(f"jinja2 {jinja2.__version__}: {len(lines)} templates, {len(found)} cases each")


if __name__ == "__main__":
    main()
