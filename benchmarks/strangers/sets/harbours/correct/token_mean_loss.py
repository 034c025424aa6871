"""Language model on texts of different length: every token of the global batch counts the same."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

PAD = 0


class TinyLM(nn.Module):
    def __init__(self, vocab=30, dim=24):
        super().__init__()
        self.emb, self.rnn = nn.Embedding(vocab, dim, padding_idx=PAD), nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, x):
        return self.head(self.rnn(self.emb(x))[0])


def global_token_mean(logits, target):
    total = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD, reduction="sum")
    tokens = (target != PAD).sum().float()
    dist.all_reduce(tokens)
    return total * dist.get_world_size() / tokens


def texts(rank, n=96, length=20):
    g = torch.Generator().manual_seed(rank)
    size = torch.randint(4, 9, (n,), generator=g) if rank % 2 else torch.randint(12, length + 1, (n,), generator=g)
    t = (torch.randint(0, 29, (n, 1), generator=g) + torch.arange(length)) % 29 + 1
    return t.masked_fill(torch.arange(length) >= size.unsqueeze(1), PAD)


def main():
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(TinyLM())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    data = texts(rank)
    for epoch in range(3):
        shown = 0.0
        for batch in data.split(12):
            loss = global_token_mean(model(batch[:, :-1]), batch[:, 1:])
            opt.zero_grad()
            loss.backward()
            opt.step()
            part = loss.detach() / dist.get_world_size()
            dist.all_reduce(part)
            shown = part.item()
        if rank == 0:
            print(f"epoch {epoch} loss per token {shown:.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
