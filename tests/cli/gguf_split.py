"""Splits a GGUF file as llama-gguf-split does, for tests: all keys in the first part, the tensors in order."""

import struct
from pathlib import Path

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY, ALIGNMENT = 8, 9, 32


class Header:
    """The keys of a GGUF file as bytes, and its tensors as (description, data)."""

    def __init__(self, path):
        self.data = Path(path).read_bytes()
        self.pos = 4
        self.version, n_tensors, n_keys = self.take("IQQ")
        self.n_keys, begin = n_keys, self.pos
        for _ in range(n_keys):
            self.string()
            self.value(self.take("I")[0])
        self.keys = self.data[begin:self.pos]
        infos = []
        for _ in range(n_tensors):
            start = self.pos
            self.string()
            self.take(f"{self.take('I')[0]}Q")
            self.take("I")
            infos.append((self.data[start:self.pos], self.take("Q")[0]))
        base = -(-self.pos // ALIGNMENT) * ALIGNMENT
        ends = [offset for _, offset in infos[1:]] + [len(self.data) - base]
        self.tensors = [(info, self.data[base + offset:base + end]) for (info, offset), end in zip(infos, ends)]

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.pos)
        self.pos += struct.calcsize("<" + form)
        return values

    def string(self):
        length = self.take("Q")[0]
        self.pos += length

    def value(self, kind):
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            kind, n = self.take("IQ")
            for _ in range(n):
                self.value(kind)
        else:
            self.take(SCALARS[kind])


def key(name, kind, form, value):
    return struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I" + form, kind, value)


def split(path, prefix, tensors_per_part, no_tensor_first=False):
    """Writes PREFIX-00001-of-0000N.gguf, ... and returns their paths."""
    whole = Header(path)
    groups = [whole.tensors[i:i + tensors_per_part] for i in range(0, len(whole.tensors), tensors_per_part)]
    if no_tensor_first:
        groups.insert(0, [])
    paths = []
    for i, group in enumerate(groups):
        keys = key("split.no", 2, "H", i) + key("split.count", 2, "H", len(groups))
        keys += key("split.tensors.count", 5, "i", len(whole.tensors))
        header = b"GGUF" + struct.pack("<IQQ", whole.version, len(group), 3 + (whole.n_keys if i == 0 else 0))
        header += (whole.keys if i == 0 else b"") + keys
        offset = 0
        for info, data in group:
            header += info + struct.pack("<Q", offset)
            offset += len(data)
        header += b"\0" * (-len(header) % ALIGNMENT)
        paths.append(Path(f"{prefix}-{i + 1:05}-of-{len(groups):05}.gguf"))
        paths[-1].write_bytes(header + b"".join(data for _, data in group))
    return paths
