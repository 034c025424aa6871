import itertools

import torch
import torch.distributed as dist


class CTCConverter:
    """Text <-> indices; index 0 is the CTC blank."""

    def __init__(self, characters):
        self.characters = ["<blank>"] + list(characters)
        self.index = {c: i for i, c in enumerate(self.characters)}

    @classmethod
    def from_lines(cls, store):
        alphabet = set()
        texts = [None] * dist.get_world_size()
        dist.all_gather_object(texts, store.texts())
        for text in itertools.chain.from_iterable(texts):
            alphabet.update(text)
        return cls(sorted(alphabet))

    @property
    def num_classes(self):
        return len(self.characters)

    def encode(self, texts):
        flat = torch.tensor([self.index[c] for t in texts for c in t])
        return flat, torch.tensor([len(t) for t in texts])

    def decode(self, best):
        out = []
        for row in best.tolist():
            kept = [k for i, k in enumerate(row) if k != 0 and (i == 0 or k != row[i - 1])]
            out.append("".join(self.characters[k] for k in kept))
        return out
