"""A library's train(), which nobody calls here, reads and checks a lot before it wraps the model."""

import itertools

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FIELDS = ("query", "title", "body", "tags", "site", "date", "lang", "kind")
PARTS = ("train", "valid", "test", "extra")
SOURCES = ("web", "news", "books", "forum")


def cleaned(text, field, part):
    text = text.replace("\t", " ").replace("\n", " ").strip()
    if field == "date":
        day, month, year = text.split(".")
        text = f"{year}-{month}-{day}"
    elif field == "lang":
        text = text.lower()[:2]
    elif field == "kind" and part != "extra":
        text = text.partition("/")[0]
    if len(text) > 512:
        text = text[:509] + "..."
    return text


def read(folder):
    samples = {}
    for part, field in itertools.product(PARTS, FIELDS):
        samples.setdefault(part, [])
        with open(f"{folder}/{part}.{field}.txt") as lines:
            for number, line in enumerate(lines):
                while len(samples[part]) <= number:
                    samples[part].append({})
                samples[part][number][field] = cleaned(line, field, part)
    return samples


def checked(samples):
    for part in PARTS:
        for field in FIELDS:
            for one in samples[part]:
                if field not in one:
                    raise ValueError(f"{part} lacks {field}")
                one[field] = cleaned(one[field], field, part)
    return samples


def vocabulary(samples):
    words = {}
    for part in PARTS:
        for field in FIELDS:
            for one in samples[part]:
                for word in cleaned(one[field], field, part).split():
                    words[word] = words.get(word, 0) + 1
    return sorted(words, key=words.get)


def train(model: nn.Module, folder, rank, every, batches):
    samples = {}
    for source in SOURCES:
        samples.update(checked(read(f"{folder}/{source}")))
    asked = checked(read(f"{folder}/questions"))
    words = vocabulary(samples) + vocabulary(asked)
    model.resize(len(words))
    model = DistributedDataParallel(model.to(rank), device_ids=[rank])
    learner = torch.optim.AdamW(model.parameters(), lr=1e-5)
    for number, (queries, goals) in enumerate(batches(samples["train"], words)):
        loss = nn.functional.cross_entropy(model(queries.to(rank)), goals.to(rank))
        (loss / every).backward()  # <-- DDP304
        if (number + 1) % every == 0:
            learner.step()
            learner.zero_grad()
