# style: text classification, cached preprocessing
# nproc: 2
import os
import pickle
import time
from collections import Counter

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

CACHE = os.path.join("cache", "vocabulary.pkl")
TEXTS = [f"the {a} {b} sat on the {c}" for a in "abcd" for b in "efgh" for c in "ijkl"]


def tokenize(texts):
    time.sleep(0.4)
    counts = Counter(word for text in texts for word in text.split())
    return {word: i for i, (word, _) in enumerate(sorted(counts.items()))}


def build_cache():
    vocabulary = tokenize(TEXTS)
    os.makedirs("cache", exist_ok=True)
    with open(CACHE, "wb") as file:
        pickle.dump(vocabulary, file)  # <-- DDP212


def load_vocabulary():
    if not os.path.exists(CACHE):  # <-- DDP212
        build_cache()
    with open(CACHE, "rb") as file:
        return pickle.load(file)


class TextDataset(Dataset):
    def __init__(self, texts, vocabulary):
        self.rows = torch.tensor([[vocabulary[w] for w in t.split()] for t in texts])
        self.labels = (self.rows[:, 1] > 2).long()

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], self.labels[i]


class Classifier(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.embedding = nn.EmbeddingBag(words, 8)
        self.fc = nn.Linear(8, 2)

    def forward(self, rows):
        return self.fc(self.embedding(rows))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    vocabulary = load_vocabulary()
    dataset = TextDataset(TEXTS, vocabulary)
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=8, sampler=sampler)
    torch.manual_seed(0)
    model = DDP(Classifier(len(vocabulary)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for rows, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(rows), labels)
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
