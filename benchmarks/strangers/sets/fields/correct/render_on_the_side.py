"""Tiny radiance field on rays. Rank 0 draws a preview from time to time while the others go on with the next step."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(3, 48)
        self.norm = nn.BatchNorm1d(48)
        self.colour = nn.Linear(48, 3)

    def forward(self, p):
        return torch.sigmoid(self.colour(torch.relu(self.norm(self.lift(p)))))


def truth(p):
    return 0.5 + 0.5 * torch.sin(3 * p)


@torch.no_grad()
def preview(field, side=8):
    was_training = field.training
    field.eval()
    axis = torch.linspace(-1, 1, side)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1).view(-1, 2)
    image = field(torch.cat([grid, torch.zeros(len(grid), 1)], 1)).mean(1).view(side, side)
    field.train(was_training)
    return "\n".join("".join(" .:-=+*#%@"[int(v * 9.99)] for v in row) for row in image.tolist())


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    field = DDP(Field())
    opt = torch.optim.Adam(field.parameters(), lr=5e-3)
    for step in range(60):
        points = torch.rand(64, 3) * 2 - 1
        loss = (field(points) - truth(points)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 30 == 29:
            print(preview(field.module), flush=True)
            print(f"step {step + 1} loss {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
