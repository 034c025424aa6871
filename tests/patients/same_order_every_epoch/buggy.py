# style: functions, LSTM language model
# nproc: 2
import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

VOCABULARY = 32


class Sequences(Dataset):
    def __init__(self, tokens, length):
        self.tokens, self.length = tokens, length

    def __len__(self):
        return (len(self.tokens) - 1) // self.length

    def __getitem__(self, i):
        chunk = self.tokens[i * self.length : (i + 1) * self.length + 1]
        return chunk[:-1], chunk[1:]


class LanguageModel(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, hidden)
        self.lstm = nn.LSTM(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.lstm(self.embed(tokens))[0])


def train_epoch(model, loader, optimizer):
    model.train()
    losses = []
    for inputs, targets in loader:
        optimizer.zero_grad(set_to_none=True)
        logits = model(inputs)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=4)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    tokens = torch.randint(VOCABULARY, (8 * 32 + 1,))
    dataset = Sequences(tokens, 8)
    sampler = DistributedSampler(dataset, shuffle=True)  # <-- DDP203
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler)
    model = DDP(LanguageModel())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(args.epochs):
        loss = train_epoch(model, loader, optimizer)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: perplexity {torch.tensor(loss).exp():.1f}")


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
