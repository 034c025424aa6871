"""Supervised fine-tuning recipe: the loss is averaged over all unmasked tokens of the step."""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

IGNORE = -100


class LM(nn.Module):
    def __init__(self, vocab=50, dim=32):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.mix = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, tokens):
        return self.head(self.mix(self.tok(tokens))[0])


class Conversations:
    """Prompts are masked out; answers differ a lot in length."""

    def __init__(self, rank, seed=0):
        self.g = torch.Generator().manual_seed(seed * 1000 + rank)

    def batch(self, size=6, length=20):
        tokens = torch.randint(0, 50, (size, 1), generator=self.g) + torch.arange(length)
        tokens = tokens % 50
        labels = tokens.roll(-1, 1)
        prompt = torch.randint(2, length - 2, (size, 1), generator=self.g)
        labels[torch.arange(length) < prompt] = IGNORE
        labels[:, -1] = IGNORE
        return tokens, labels


class FinetuneRecipe:
    def __init__(self, cfg):
        self.cfg = cfg
        self.rank = int(os.environ["RANK"])
        self.world_size = int(os.environ["WORLD_SIZE"])
        torch.manual_seed(cfg.seed)
        self.model = DDP(LM())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=cfg.lr, momentum=0.9)
        self.loss_fn = nn.CrossEntropyLoss(ignore_index=IGNORE, reduction="sum")
        self.data = Conversations(self.rank)

    def train(self):
        for step in range(self.cfg.steps):
            tokens, labels = self.data.batch()
            num_tokens = (labels != IGNORE).sum()
            logits = self.model(tokens)
            running_loss = self.loss_fn(logits.flatten(0, 1), labels.flatten())
            dist.all_reduce(num_tokens)
            loss = running_loss / num_tokens
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            if step % 10 == 9:
                log = running_loss.detach().clone()
                dist.all_reduce(log)
                if self.rank == 0:
                    print(f"step {step + 1} loss {(log / num_tokens).item():.4f} ({int(num_tokens)} tokens)", flush=True)


def recipe_main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--lr", type=float, default=0.5)
    p.add_argument("--seed", type=int, default=0)
    cfg = p.parse_args()
    dist.init_process_group("gloo")
    FinetuneRecipe(cfg).train()
    dist.destroy_process_group()


if __name__ == "__main__":
    recipe_main()
