import json
import os
import random

import torch
import torch.distributed as dist
from torch.utils.data import TensorDataset

LABELS = ["O", "PER", "LOC"]


def _raw_examples(split, n):
    rng = random.Random(split)
    out = []
    for _ in range(n):
        words = [rng.choice(["alice", "paris", "walks", "sees", "bob", "rome", "the"]) for _ in range(8)]
        tags = ["PER" if w in ("alice", "bob") else "LOC" if w in ("paris", "rome") else "O" for w in words]
        out.append((words, tags))
    return out


def convert_examples_to_features(examples, vocab):
    feats = []
    for words, tags in examples:
        feats.append({
            "input_ids": [vocab.setdefault(w, len(vocab)) for w in words],
            "label_ids": [LABELS.index(t) for t in tags],
        })
    return feats


def load_and_cache_examples(args, evaluate=False):
    if args.rank != 0:
        # only the first process builds the features, the others read the cache
        dist.barrier()

    split = "dev" if evaluate else "train"
    cached = os.path.join(args.data_dir, f"cached_{split}.json")
    if os.path.exists(cached) and not args.overwrite_cache:
        with open(cached) as f:
            features = json.load(f)
    else:
        vocab = {"[PAD]": 0, "the": 1, "walks": 2, "sees": 3, "alice": 4, "bob": 5, "paris": 6, "rome": 7}
        features = convert_examples_to_features(_raw_examples(split, 64 if evaluate else 256), vocab)
        if args.rank == 0:
            with open(cached, "w") as f:
                json.dump(features, f)

    if args.rank == 0:
        dist.barrier()

    ids = torch.tensor([f["input_ids"] for f in features])
    labels = torch.tensor([f["label_ids"] for f in features])
    return TensorDataset(ids, labels)
