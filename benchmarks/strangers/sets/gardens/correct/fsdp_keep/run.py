import os
import shutil
import tempfile

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from nets import Tagger
from vault import keep


def sentences(rank, step, n=16):
    g = torch.Generator().manual_seed(step * 11 + rank)
    ids = torch.randint(0, 50, (n, 8), generator=g)
    return ids, ids % 5


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(4)
    model = Tagger()
    for layer in model.body:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    folder = [tempfile.mkdtemp(prefix="tag_") if rank == 0 else None]
    dist.broadcast_object_list(folder, src=0)
    path = os.path.join(folder[0], "weights.pt")
    best = float("inf")
    for step in range(1, 31):
        ids, y = sentences(rank, step)
        loss = torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            now = loss.detach().clone()
            dist.all_reduce(now)
            if now.item() < best:
                best = now.item()
                keep(model, path)
                if rank == 0:
                    print(f"step {step} loss {best / world:.4f} kept", flush=True)
    if rank == 0:
        plain = Tagger()
        plain.load_state_dict(torch.load(path))
        ids, y = sentences(99, 0, 200)
        with torch.no_grad():
            print("reloaded acc", (plain(ids).argmax(-1) == y).float().mean().item(), flush=True)
        shutil.rmtree(folder[0])
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
