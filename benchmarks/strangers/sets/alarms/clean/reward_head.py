"""Pairwise reward model on top of a pretrained causal backbone."""
from dataclasses import asdict, dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


@dataclass
class ModelConfig:
    vocab_size: int = 48
    n_embed: int = 24
    n_layer: int = 2


@dataclass
class RewardConfig:
    max_steps: int = 20
    batch_size: int = 8
    lr: float = 2e-3


class Context:
    """What a rank needs to know."""

    def __init__(self):
        dist.init_process_group("gloo")
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()

    @property
    def is_main(self):
        return self.rank == 0

    def wrap(self, model, **kw):
        return DistributedDataParallel(model, **kw) if self.world_size > 1 else model

    def close(self):
        dist.barrier()
        dist.destroy_process_group()


class Backbone(nn.Module):
    def __init__(self, vocab_size, n_embed, n_layer):
        super().__init__()
        self.tok = nn.Embedding(vocab_size, n_embed)
        self.blocks = nn.ModuleList(nn.GRU(n_embed, n_embed, batch_first=True) for _ in range(n_layer))
        self.ln_f = nn.LayerNorm(n_embed)
        self.lm_head = nn.Linear(n_embed, vocab_size)

    def forward_hidden(self, ids):
        h = self.tok(ids)
        for b in self.blocks:
            h = h + b(h)[0]
        return self.ln_f(h)

    def forward(self, ids):
        return self.lm_head(self.forward_hidden(ids))


class RewardModel(nn.Module):
    def __init__(self, backbone, n_embed):
        super().__init__()
        self.backbone, self.score = backbone, nn.Linear(n_embed, 1)

    def forward(self, ids):
        return self.score(self.backbone.forward_hidden(ids)[:, -1]).squeeze(-1)


def preference_pairs(rank, cfg, vocab):
    g = torch.Generator().manual_seed(17 + rank)
    while True:
        good = torch.randint(vocab // 2, vocab, (cfg.batch_size, 6), generator=g)
        bad = torch.randint(0, vocab // 2, (cfg.batch_size, 6), generator=g)
        yield torch.cat([good, bad])


def main(ctx):
    mc, rc = ModelConfig(), RewardConfig()
    torch.manual_seed(0)
    model = ctx.wrap(RewardModel(Backbone(**asdict(mc)), mc.n_embed), find_unused_parameters=True)
    opt = torch.optim.AdamW(model.parameters(), lr=rc.lr)
    pairs = preference_pairs(ctx.rank, rc, mc.vocab_size)
    for step in range(rc.max_steps):
        chosen, rejected = model(next(pairs)).chunk(2)
        loss = -F.logsigmoid(chosen - rejected).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    if ctx.is_main:
        print(f"loss {loss.item():.4f} margin {(chosen - rejected).mean().item():.3f}", flush=True)


if __name__ == "__main__":
    context = Context()
    main(context)
    context.close()
