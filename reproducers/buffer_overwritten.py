"""DDP321 buffer-overwritten: a queue that each rank fills with its own keys is that of rank 0.

torchrun --nproc-per-node=4 reproducers/buffer_overwritten.py broken
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ddpdoctor.reproducer import backend, broken, fix, main, own_device
from ddpdoctor.stack.process_group import session, wrap

STEPS, KEYS = 9, 4
Share = Callable[[Tensor], Tensor]


class Contrast(nn.Module):
    """An encoder and a queue of the keys that it has made."""

    def __init__(self, share: Share, room: int) -> None:
        super().__init__()
        self.encoder = nn.Linear(3, 2)
        self.share = share
        self.register_buffer("queue", torch.zeros(room, 2))
        self.queue: Tensor

    def forward(self, batch: Tensor) -> Tensor:
        """Return a loss that depends on earlier keys."""
        keys = self.encoder(batch)
        loss: Tensor = (keys @ self.queue.clone().t()).mean() + keys.square().mean()
        with torch.no_grad():
            new = self.share(keys.detach())
            self.queue.copy_(torch.cat([new, self.queue])[: len(self.queue)])  # <-- DDP321
        return loss


def train(share: Share) -> None:
    """Train; assert that keys of every rank are in the queue, and the same on all."""
    with session(backend=backend()) as world:
        torch.manual_seed(0)
        model = wrap(Contrast(share, KEYS * dist.get_world_size() * 2), world)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        generator = torch.Generator().manual_seed(dist.get_rank())
        for _ in range(STEPS):
            batch = torch.randn(KEYS, 3, generator=generator).to(own_device())
            model(batch).backward()
            optimizer.step()
            optimizer.zero_grad()
        queues = [torch.zeros_like(model.module.queue) for _ in range(dist.get_world_size())]
        dist.all_gather(queues, model.module.queue)
        alike = all(torch.equal(queue, queues[0]) for queue in queues)
        assert alike, "each rank has put keys into the queue that the others do not know"


@broken(ranks="all")
def keys_of_each_rank() -> None:
    """Put each rank's own keys into the queue: DDP overwrites all but those of rank 0."""
    train(lambda keys: keys)


def gathered(keys: Tensor) -> Tensor:
    every = [torch.zeros_like(keys) for _ in range(dist.get_world_size())]
    dist.all_gather(every, keys)
    return torch.cat(every)


@fix(source="facebookresearch/moco, moco/builder.py")
def keys_of_all_ranks() -> None:
    """Gather the keys of all ranks, and put them all into every queue."""
    train(gathered)


if __name__ == "__main__":
    main()
