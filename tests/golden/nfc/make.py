"""Makes expected.json: ids of Hugging Face's Qwen tokenizers for text that is not in NFC.

Needs the packages transformers, tokenizers and gguf. The vocabularies are llama.cpp's fixtures; normalizer and pattern
are those of transformers' own classes.
    make.py FOLDER_OF_GGML_VOCAB_FILES > expected.json
"""

import json
import sys
import unicodedata

from gguf import GGUFReader
from tokenizers import AddedToken
from transformers.models.qwen2.tokenization_qwen2 import Qwen2Tokenizer
from transformers.models.qwen3_5.tokenization_qwen3_5 import Qwen3_5Tokenizer

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4  # tokenizer.ggml.token_type


def decomposed(text):
    return unicodedata.normalize("NFD", text)


TEXTS = {
    "Latin": decomposed("Café, naïve résumé: Ångström und Übermut."),
    "Vietnamese": decomposed("Tiếng Việt là ngôn ngữ của người Việt."),
    "Hangul as jamo": decomposed("한국어를 배우고 있습니다. 각"),
    "Devanagari with nukta": decomposed("क़ लड़का पढ़ता है ऩ ऱ") + "\u0958\u095c",
    "Greek, polytonic": decomposed("Ἐν ἀρχῇ ἦν ὁ λόγος, ᾧ"),
    "Cyrillic": decomposed("Ёлка, йод и Київ"),
    "Japanese with voicing marks": decomposed("ガギグゲゴ ぱぴぷぺぽ がっこう"),
    "Hebrew, marks out of order": "\u05e9\u05bc\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd \ufb2a\ufb4b",
    "Arabic": decomposed("آداب مؤمن") + " \u0634\u064e\u0651 \u0634\u0651\u064e",
    "marks in both orders": "a\u0323\u0307 a\u0307\u0323 q\u0307\u0323 q\u0323\u0307",
    "singletons": "\u212b \u2126 \u212a \u1f71 \u0340 \uf900\uf91d \u2329",
    "composition exclusions": "\U0001d15e \u0f43 \u0915\u093c \u2adc",
    "marks at the start": "\u0301e\u0301 \u0301",
    "a mark after a control token": "e<|im_start|>\u0301e\u0301<|im_end|>\u0301",
    "composed already": "Café Tiếng Việt 한국어 λόγος",
    "nothing to compose": "plain text, 123 + 456\n",
}


def vocabulary(path):
    fields = GGUFReader(path).fields
    tokens, merges = fields["tokenizer.ggml.tokens"].contents(), fields["tokenizer.ggml.merges"].contents()
    return tokens, fields["tokenizer.ggml.token_type"].contents(), merges


def load(make, path):
    tokens, types, merges = vocabulary(path)
    vocab = {token: i for i, (token, kind) in enumerate(zip(tokens, types)) if kind == NORMAL}
    tokenizer = make(vocab=vocab, merges=[tuple(merge.split(" ")) for merge in merges])
    for token, kind in zip(tokens, types):
        if kind in (CONTROL, USER_DEFINED):
            tokenizer.add_tokens([AddedToken(token, special=kind == CONTROL, normalized=False)])
            assert tokenizer.convert_tokens_to_ids(token) == tokens.index(token), token
    return tokenizer


def main():
    cases = []
    for name, make in (("qwen2", Qwen2Tokenizer), ("qwen35", Qwen3_5Tokenizer)):
        tokenizer = load(make, f"{sys.argv[1]}/ggml-vocab-{name}.gguf")
        for what, text in TEXTS.items():
            cases.append({"vocabulary": name, "what": what, "text": text, "ids": tokenizer.encode(text, add_special_tokens=False)})
    print("[\n " + ",\n ".join(json.dumps(case) for case in cases) + "\n]")


main()
