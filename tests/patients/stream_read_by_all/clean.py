# style: IterableDataset, step-based loop
# nproc: 2
import itertools

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset


class TokenStream(IterableDataset):
    def __init__(self, documents, block):
        self.documents, self.block = documents, block

    def samples(self):
        buffer = []
        for document in self.documents:
            buffer.extend(document)
            while len(buffer) > self.block:
                yield torch.tensor(buffer[: self.block + 1])
                buffer = buffer[self.block :]

    def __iter__(self):
        return itertools.islice(self.samples(), dist.get_rank(), None, dist.get_world_size())


def documents(count):
    for i in range(count):
        yield [(i * 7 + j * j) % 50 for j in range(40 + i % 5)]


class Bigram(nn.Module):
    def __init__(self, vocabulary=50, width=16):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.embedding(tokens))


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    stream = TokenStream(list(documents(40)), block=16)
    loader = DataLoader(stream, batch_size=4)
    model = DDP(Bigram())
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    max_steps = 12
    for step, tokens in enumerate(itertools.islice(loader, max_steps)):
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0 and dist.get_rank() == 0:
            print(f"step {step}: {loss.item():.3f}")


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
