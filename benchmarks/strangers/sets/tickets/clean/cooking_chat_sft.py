# Supervised fine-tuning of a toy chat model on recipes. Learning rate decays with the number of tokens.
import math
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

TOTAL_TOKENS = 40_000
LOG_EVERY = 5
PEAK, FLOOR = 4e-3, 1e-5
IGNORE = -100


def sample(g):
    n = int(torch.randint(12, 60, (1,), generator=g))
    ids = (torch.randint(0, 64, (1,), generator=g) + 5 * torch.arange(n)) % 64
    labels = ids.clone()
    labels[: n // 4] = IGNORE          # the user's turn
    return ids, labels


def collate(rows):
    width = max(len(i) for i, _ in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    labels = torch.full((len(rows), width), IGNORE)
    for r, (i, l) in enumerate(rows):
        ids[r, : len(i)], labels[r, : len(l)] = i, l
    return ids, labels


class ChatModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(64, 32)
        self.rnn = nn.GRU(32, 32, batch_first=True)
        self.head = nn.Linear(32, 64)

    def forward(self, ids):
        return self.head(self.rnn(self.emb(ids))[0])


def lr_at(tokens):
    progress = min(1.0, tokens / TOTAL_TOKENS)
    return FLOOR + 0.5 * (PEAK - FLOOR) * (1 + math.cos(math.pi * progress))


class Recipe:
    def __init__(self):
        self.rank = dist.get_rank()
        torch.manual_seed(0)
        self.model = DDP(ChatModel())
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=PEAK)
        self.num_tokens = torch.zeros(1)
        self.g = torch.Generator().manual_seed(77 + self.rank)
        self.global_step = 0

    def step(self):
        ids, labels = collate([sample(self.g) for _ in range(8)])
        logits = self.model(ids[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORE)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.num_tokens += (labels[:, 1:] != IGNORE).sum()
        self.global_step += 1
        return loss.detach()

    def train(self):
        seen = 0.0
        while seen < TOTAL_TOKENS:
            loss = self.step()
            if self.global_step % LOG_EVERY == 0:
                dist.all_reduce(loss)
                tokens = self.num_tokens.clone()
                dist.all_reduce(tokens)
                seen = tokens.item()
                for group in self.opt.param_groups:
                    group["lr"] = lr_at(seen)
                if self.rank == 0:
                    mean = loss.item() / dist.get_world_size()
                    print(f"step {self.global_step} loss {mean:.3f} tokens {seen:.0f} lr {lr_at(seen):.2e}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    recipe = Recipe()
    recipe.train()
    dist.destroy_process_group()
