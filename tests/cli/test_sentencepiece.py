"""A model of the Llama architecture with a SentencePiece vocabulary, as Llama 2, Mistral and TinyLlama have: converting, asking, chatting."""

import json
import shutil

from serving import Serve
from support import GOLDEN, ModelTest

MARK = "\u2581"
TEMPLATE = ("{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}{{ '[INST] ' + m['content'] | trim + ' [/INST]' }}"
            "{% else %}{{ ' ' + m['content'] | trim + ' ' + eos_token }}{% endif %}{% endfor %}")


def write_tokenizer(folder, n_vocab):
    """<unk>, <s>, </s>, all bytes, then letters and pairs of them until the vocabulary is full."""
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + [MARK] + [chr(c) for c in range(0x21, 0x7F)]
    merges = [(MARK, chr(c)) for c in range(ord("a"), ord("z") + 1)] + [(a, b) for a in "aeiou" for b in "mnrst"] + [("T", "o"), ("To", "m"), (MARK, "Tom")]
    tokens += [a + b for a, b in merges]
    tokens = tokens[:n_vocab]
    merges = [pair for pair in merges if "".join(pair) in tokens]
    special = [{"id": i, "content": tokens[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for i in range(3)]
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": special, "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": MARK}, replace]},
        "pre_tokenizer": None, "model": {"type": "BPE", "byte_fallback": True, "unk_token": "<unk>", "vocab": {t: i for i, t in enumerate(tokens)},
                                         "merges": [list(pair) for pair in merges]}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": True,
                                                              "chat_template": TEMPLATE}))


class SentencePieceTest(ModelTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = cls.model.path / "spm"
        shutil.copytree(GOLDEN / "last" / "model", folder)
        config = json.loads((folder / "config.json").read_text())
        config.update(bos_token_id=1, eos_token_id=2)
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "generation_config.json").write_text(json.dumps({"bos_token_id": 1, "eos_token_id": 2}))
        write_tokenizer(folder, config["vocab_size"])
        cls.base = cls.model.path / "spm.gguf"
        cls.model.convert(folder, cls.base)

    def answer(self, *args, base=None):
        return self.ok_json("run", "-m", base or self.base, "-ctk", "f32", "-n", 16, *args)

    def same(self, a, b):
        self.assertEqual((a["prompt_tokens"], a["tokens"]), (b["prompt_tokens"], b["tokens"]))

    def test_its_own_template(self):
        asked = self.answer("-p", "Tom is \u00e9")
        self.same(asked, self.answer("-p", "[INST] Tom is \u00e9 [/INST]", "--raw"))  # BOS comes from the tokenizer there
        self.same(asked, self.answer("-p", "Tom is \u00e9", "--chat-template", "mistral"))
        # <s>; " [INST]" by characters; " Tom"; " i", "s"; a space and the two bytes of the letter; " [/INST]"
        self.assertEqual(asked["prompt_tokens"], 1 + 7 + 1 + 2 + 3 + 8)

    def test_control_tokens_of_people_are_text(self):
        self.assertGreater(self.answer("-p", "</s>")["prompt_tokens"], self.answer("-p", "x")["prompt_tokens"] + 2)

    def test_talk(self):
        done = self.ok("chat", "-m", self.base, "-n", 8, "--json", "--temp", 0, stdin="Tom is\nAnd Max\n/stats\n")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([line["status"] for line in lines], ["ok"] * 3)
        self.assertGreater(lines[1]["prompt_tokens"], lines[0]["prompt_tokens"] + 8)
        server = Serve("-m", self.base, "-ctk", "f32")
        self.addCleanup(server.close)
        served = server.chat("Tom is", max_tokens=8, temperature=0)
        self.assertEqual(served["choices"][0]["tokens"], lines[0]["tokens"])
        self.assertEqual(served["choices"][0]["message"]["content"], lines[0]["text"])

    def test_to_hugging_face_and_back(self):
        self.ok("export", self.base, "--as", "hf", "-o", self.work / "hf")
        again = self.work / "again.gguf"
        self.model.convert(self.work / "hf", again)
        self.same(self.answer("-p", "Tom is an odd one"), self.answer("-p", "Tom is an odd one", base=again))


if __name__ == "__main__":
    import unittest
    unittest.main()
