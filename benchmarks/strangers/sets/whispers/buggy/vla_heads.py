"""Fine-tune a backbone with an L1 action head; every trainable module is wrapped on its own."""
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class FinetuneConfig:
    hidden: int = 48
    chunk: int = 4
    action_dim: int = 3
    lr: float = 2e-3
    max_steps: int = 60
    batch_size: int = 16


class Backbone(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.proj = nn.Linear(20, cfg.hidden)
        self.layer = nn.TransformerEncoderLayer(cfg.hidden, 4, 64, dropout=0.0, batch_first=True)

    def forward(self, obs):
        return self.layer(self.proj(obs))


class L1ActionHead(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.net = nn.Sequential(nn.Linear(cfg.hidden, 64), nn.ReLU(), nn.Linear(64, cfg.chunk * cfg.action_dim))

    def predict_action(self, hidden_states):
        out = self.net(hidden_states.mean(1))
        return out.view(-1, self.cfg.chunk, self.cfg.action_dim)

    def forward(self, hidden_states):
        return self.predict_action(hidden_states)


def init_module(cls, cfg):
    module = cls(cfg)
    n = sum(p.numel() for p in module.parameters())
    if dist.get_rank() == 0:
        print(f"{cls.__name__}: {n} trainable parameters", flush=True)
    return DDP(module)


def demo_batch(cfg, g):
    obs = torch.randn(cfg.batch_size, 6, 20, generator=g)
    target = obs.mean(1)[:, :cfg.chunk * cfg.action_dim].tanh() * 2
    return obs, target.view(-1, cfg.chunk, cfg.action_dim)


def run_forward_pass(vla, action_head, batch):
    obs, target = batch
    actions_hidden_states = vla(obs)
    predicted_actions = action_head.module.predict_action(actions_hidden_states)
    return nn.functional.l1_loss(predicted_actions, target)


def finetune(cfg):
    dist.init_process_group("gloo")
    torch.manual_seed(7)
    vla, action_head = init_module(Backbone, cfg), init_module(L1ActionHead, cfg)
    params = list(vla.parameters()) + list(action_head.parameters())
    optimizer = torch.optim.AdamW(params, lr=cfg.lr)
    g = torch.Generator().manual_seed(7 + dist.get_rank())
    for step in range(cfg.max_steps):
        loss = run_forward_pass(vla, action_head, demo_batch(cfg, g))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and step % 20 == 19:
            print(f"step {step + 1} l1 {loss.item():.4f}", flush=True)
    if dist.get_rank() == 0:
        torch.save({"vla": vla.module.state_dict(), "action_head": action_head.module.state_dict()}, "policy.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    finetune(FinetuneConfig())
