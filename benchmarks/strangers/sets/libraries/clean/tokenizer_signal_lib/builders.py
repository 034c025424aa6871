"""Builders used by the train entry point."""
import json
import os
import time

import torch.distributed as dist

WORDS = "the a model learns to read small words from one file and then stops".split()


def local_rank():
    return int(os.environ.get("LOCAL_RANK", 0))


def download(folder):
    """Stands in for the hub: the vocabulary arrives after a moment."""
    time.sleep(0.5)
    tmp = os.path.join(folder, "vocab.json.part")
    with open(tmp, "w") as f:
        json.dump({w: i for i, w in enumerate(sorted(set(WORDS)))}, f)
    os.replace(tmp, os.path.join(folder, "vocab.json"))


def build_tokenizer(folder):
    signal_file = os.path.join(folder, f"._signal_file_node{os.environ.get('GROUP_RANK', 0)}")
    if local_rank() == 0:
        download(folder)
        with open(signal_file, "wb") as f:
            f.write(b"local_rank0_completed")
    else:
        while not os.path.exists(signal_file):
            time.sleep(0.05)
    with open(os.path.join(folder, "vocab.json")) as f:
        vocab = json.load(f)
    dist.barrier()
    if local_rank() == 0:
        os.remove(signal_file)
    return vocab
