"""Rank 0 writes the words of a corpus, and all read them."""

import json
import pickle

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def write_words(path, text):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(sorted(set(text.split())), file)


def words(path, text):
    if dist.get_rank() == 0:
        write_words(path, text)
    with open(path, encoding="utf-8") as file:  # <-- DDP407
        return json.load(file)


def spans(path, text):
    if dist.get_rank() == 0:
        with open(path, "wb") as kept:
            pickle.dump([len(each) for each in text.split()], kept)
    file = open(path, "rb")  # <-- DDP407
    found = pickle.load(file)
    file.close()
    return found


def main(text):
    dist.init_process_group("gloo")
    known = words("words.json", text)
    print(len(spans("spans.pkl", text)))
    model = DistributedDataParallel(torch.nn.Embedding(len(known), 8))
    model(torch.tensor([0])).sum().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main("to be or not to be")
