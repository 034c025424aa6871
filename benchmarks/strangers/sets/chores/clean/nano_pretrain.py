import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class RunConfig:
    steps: int = 20
    batch_size: int = 8
    seq_len: int = 16
    vocab: int = 64
    dim: int = 32
    lr: float = 3e-3
    eval_batches: int = 100
    base_dir: str = os.path.join(tempfile.gettempdir(), "nano_pretrain_s18")


class NextToken(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, idx, targets):
        h, _ = self.rnn(self.emb(idx))
        return F.cross_entropy(self.head(h).flatten(0, 1), targets.flatten())


def get_batch(cfg, gen):
    start = torch.randint(0, cfg.vocab, (cfg.batch_size, 1), generator=gen)
    seq = (start + 3 * torch.arange(cfg.seq_len + 1)) % cfg.vocab
    return seq[:, :-1], seq[:, 1:]


@torch.no_grad()
def estimate_loss(net, cfg):
    gen = torch.Generator().manual_seed(999)
    net.eval()
    losses = [net(*get_batch(cfg, gen)).item() for _ in range(cfg.eval_batches)]
    net.train()
    return sum(losses) / len(losses)


def save_checkpoint(ckpt_dir, step, model_state, optim_state, meta, rank):
    os.makedirs(ckpt_dir, exist_ok=True)
    if rank == 0:
        torch.save(model_state, os.path.join(ckpt_dir, f"model_{step:06d}.pt"))
        with open(os.path.join(ckpt_dir, f"meta_{step:06d}.json"), "w") as f:
            json.dump(meta, f)
    torch.save(optim_state, os.path.join(ckpt_dir, f"optim_{step:06d}_rank{rank}.pt"))


def main():
    cfg = RunConfig()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(42)
    if rank == 0:
        shutil.rmtree(cfg.base_dir, ignore_errors=True)
    dist.barrier()

    model = DDP(NextToken(cfg.vocab, cfg.dim))
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    gen = torch.Generator().manual_seed(rank)
    for step in range(cfg.steps):
        loss = model(*get_batch(cfg, gen))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 5 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)

    meta = {"config": asdict(cfg)}
    if rank == 0:
        meta["val_loss"] = estimate_loss(model.module, cfg)
        print(f"val loss {meta['val_loss']:.4f}", flush=True)
    ckpt_dir = os.path.join(cfg.base_dir, "checkpoints", "d2")
    save_checkpoint(ckpt_dir, cfg.steps, model.module.state_dict(), optimizer.state_dict(), meta, rank)

    dist.barrier()
    if rank == 0:
        print(sorted(os.listdir(ckpt_dir)), flush=True)
        shutil.rmtree(cfg.base_dir)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
