import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from config import GPTConfig, TrainConfig
from loader import get_loader
from gpt import GPT


def run(tc: TrainConfig, gc: GPTConfig):
    dist.init_process_group("gloo")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(tc.seed)
    model = DDP(GPT(gc))
    opt = torch.optim.AdamW(model.parameters(), lr=tc.lr, betas=(0.9, 0.95))
    tokens = 0
    for epoch in range(tc.epochs):
        loader = get_loader(tc, gc, epoch)
        for x, y in loader:
            _, loss = model(x, y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            tokens += x.numel() * world
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.3f}, {tokens} tokens", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    run(TrainConfig(), GPTConfig())
