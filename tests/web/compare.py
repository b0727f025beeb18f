"""usage: compare.py NODE.jsonl WAY=NATIVE.jsonl...: answers of the page beside those of the program.

Fails unless those with latent steps are equal question by question, and unless a question with latent steps takes at most
five times as long in the page. Times are the fastest tenth of each: what else the machine does must not decide. Visible
steps are many tokens, and where two are nearly as likely rounding decides, which differs from processor to processor: they
are counted. Ways that guess (K = 0, the control) are not compared.
"""

import json
import sys

LIMIT = 5


def read(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def fastest(times):
    times = sorted(times)
    return sum(times[:max(1, len(times) // 10)]) / max(1, len(times) // 10)


page = {}
for one in read(sys.argv[1]):
    page.setdefault(one["way"], {})[one["id"]] = one
print(f"the page loads its models in {page['load']['']['ms']:.0f} ms under node")
failed = False
for argument in sys.argv[2:]:
    way, path = argument.split("=")
    native = read(path)
    wrong = [n for n in native if n["text"] != page[way][n["id"]]["text"]]
    for n in wrong[:5]:
        print(f"{way}, question {n['id']}: the program says {n['text']!r}, the page {page[way][n['id']]['text']!r}")
    print(f"{way}: {len(native) - len(wrong)} of {len(native)} answers are equal")
    failed |= bool(wrong) and way in ("latent", "watched")
    times = [n["latency_ms"] for n in native if n.get("latency_ms")]
    if times:
        here, there = fastest([one["ms"] for one in page[way].values()]), fastest(times)
        print(f"{way}: {here:.1f} ms a question in the page, {there:.1f} ms in the program, {here / there:.1f} times as long")
        failed |= way == "latent" and here > LIMIT * there
sys.exit(1 if failed else 0)
