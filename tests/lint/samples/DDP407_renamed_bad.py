import json
import os
from pathlib import Path

import torch.distributed as dist


class Vocabulary:
    def __init__(self, words):
        self.words = words

    def write(self, place):
        draft = place.with_suffix(".draft")
        draft.write_text(json.dumps(self.words))
        os.replace(draft, place)

    @classmethod
    def read(cls, place):
        return cls(json.loads(place.read_text()))


def vocabulary(folder):
    place = Path(folder) / "words.json"
    if dist.get_rank() == 0:
        Vocabulary(["a", "b"]).write(place)
    return Vocabulary.read(place)  # <-- DDP407


def moved(folder):
    """Rank 0 alone reads what it has moved."""
    if dist.get_rank() == 0:
        os.replace(Path(folder) / "new.json", Path(folder) / "old.json")
        return (Path(folder) / "old.json").read_text()
    return ""


dist.init_process_group("gloo")
vocabulary("out")
moved("out")
dist.destroy_process_group()
