"""Linguistic acceptability (synthetic word order), fine-tune then evaluate on the dev file."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Sentences(Dataset):
    """Odd positions must hold verbs (ids >= 20) in an acceptable sentence."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, 2, (n,), generator=g)
        ids = torch.randint(0, 20, (n, 10), generator=g)
        ids[:, 1::2] += 20
        shuffled = ids[:, torch.randperm(10, generator=g)].flip(1)
        self.ids = torch.where(self.labels.view(-1, 1).bool(), ids, shuffled)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "label": self.labels[i]}


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(40, 16)
        self.mlp = nn.Sequential(nn.Linear(160, 48), nn.ReLU(), nn.Linear(48, 2))

    def forward(self, input_ids):
        return self.mlp(self.emb(input_ids).flatten(1))


def merge_distributed(tensor):
    """Collects the tensors of all processes along the first dimension."""
    parts = [torch.zeros_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor.contiguous())
    return torch.cat(parts)


def evaluate(model, dataset, batch_size):
    sampler = DistributedSampler(dataset, shuffle=False)
    loader = DataLoader(dataset, batch_size=batch_size, sampler=sampler)
    model.eval()
    logits = []
    with torch.no_grad():
        for batch in loader:
            logits.append(model(batch["input_ids"]))
    logits = merge_distributed(torch.cat(logits))[:len(dataset)]
    predicted = logits.argmax(-1)
    return (predicted == dataset.labels).float().mean().item(), predicted


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--train-size", type=int, default=640)
    p.add_argument("--dev-size", type=int, default=200)
    p.add_argument("--eval-batch-size", type=int, default=16)
    p.add_argument("--epochs", type=int, default=4)
    a = p.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(2)
    model = DistributedDataParallel(Judge())
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3)
    train, dev = Sentences(a.train_size, 1), Sentences(a.dev_size, 2)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, batch_size=16, sampler=sampler)
    for epoch in range(a.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for batch in loader:
            loss = nn.functional.cross_entropy(model(batch["input_ids"]), batch["label"])
            opt.zero_grad()
            loss.backward()
            opt.step()
        accuracy, _ = evaluate(model, dev, a.eval_batch_size)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} train loss {loss.item():.3f} dev accuracy {accuracy:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
