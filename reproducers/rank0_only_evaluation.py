"""DDP406 rank0-only-evaluation: rank 0 alone runs the wrapper's forward.

torchrun --nproc-per-node=4 reproducers/rank0_only_evaluation.py broken
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ddpdoctor.reproducer import (
    backend,
    broken,
    documented,
    fix,
    main,
    own_device,
    same_on_all_ranks,
)
from ddpdoctor.stack.evaluation import predict
from ddpdoctor.stack.process_group import World, session

Validate = Callable[[DistributedDataParallel], None]

EPOCHS = 2
VALIDATION = torch.linspace(-1, 1, 44).reshape(11, 4)  # 11 samples: no number of ranks divides it


def train(validate: Validate, *, broadcast_buffers: bool = True, buffers: bool = True) -> None:
    """Train and validate; assert that the ranks end with equal weights and statistics."""
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(4) if buffers else nn.LayerNorm(4)
    net = nn.Sequential(norm, nn.Linear(4, 1), nn.Flatten(0)).to(own_device())
    model = DistributedDataParallel(net, broadcast_buffers=broadcast_buffers)
    features = torch.randn(8, 4, generator=torch.Generator().manual_seed(dist.get_rank()))
    for _ in range(EPOCHS):
        model.train()  # type: ignore[no-untyped-call]
        model(features.to(own_device())).square().mean().backward()
        with torch.no_grad():
            for weight in model.parameters():
                assert weight.grad is not None
                weight.sub_(weight.grad, alpha=0.1)
                weight.grad = None
        model.eval()
        validate(model)
    model.train()  # type: ignore[no-untyped-call]
    model(features.to(own_device()))  # the next step's forward, before which buffers are sent
    assert same_on_all_ranks(model.parameters()), "parameters differ between the ranks"


def predictions(model: Callable[[Tensor], Tensor]) -> Tensor:
    return torch.cat([model(batch.to(own_device())) for batch in VALIDATION.chunk(3)])  # <-- DDP406


def validate_on_rank_0(model: DistributedDataParallel) -> None:
    if dist.get_rank() == 0:
        predictions(model)
    dist.barrier()


@broken(ranks=(0,))
def forward_through_the_wrapper() -> None:
    """Rank 0 validates with the wrapper, in eval(); the others wait in a barrier."""
    dist.init_process_group(backend())
    train(validate_on_rank_0)
    dist.destroy_process_group()


def validate_without_gradients(model: DistributedDataParallel) -> None:
    if dist.get_rank() == 0:
        with torch.no_grad():
            predictions(model)
    dist.barrier()


@documented(source="pytorch/pytorch#53979, option 2")
def eval_and_no_grad() -> None:
    """eval() and torch.no_grad(); the model has buffers."""
    dist.init_process_group(backend())
    train(validate_without_gradients)
    dist.destroy_process_group()


@documented(source="pytorch/pytorch#59666")
def no_buffers() -> None:
    """eval() and torch.no_grad(); the model has none."""
    dist.init_process_group(backend())
    train(validate_without_gradients, buffers=False)
    dist.destroy_process_group()


def validate_without_barrier(model: DistributedDataParallel) -> None:
    if dist.get_rank() == 0:
        with torch.no_grad():
            predictions(model)


@documented(source="pytorch/pytorch#54059, a comment")
def without_the_barrier() -> None:
    """Remove the barrier, which is where it hangs."""
    dist.init_process_group(backend())
    train(validate_without_barrier)
    dist.destroy_process_group()


@documented(source="facebookresearch/maskrcnn-benchmark#692")
def keep_buffers_at_home() -> None:
    """broadcast_buffers=False."""
    dist.init_process_group(backend())
    train(validate_without_gradients, broadcast_buffers=False)
    dist.destroy_process_group()


def validate_bare_module(model: DistributedDataParallel) -> None:
    if dist.get_rank() == 0:
        with torch.no_grad():
            predictions(model.module)
    dist.barrier()


@documented(source="pytorch/pytorch#54059")
def bare_module_on_rank_0() -> None:
    """model.module(x): the forward of the module itself."""
    dist.init_process_group(backend())
    train(validate_bare_module)
    dist.destroy_process_group()


def stacked(samples: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(samples))


def validate_together(model: DistributedDataParallel, world: World) -> None:
    for buffer in model.module.buffers():  # each rank's batch norm has seen its own batches
        dist.broadcast(buffer, src=0)
    with torch.no_grad():
        alone = predictions(model.module).cpu().double()
    for length in (1, len(VALIDATION)):  # one sample: all ranks but one have nothing to do
        samples = list(VALIDATION[:length])
        shared = predict(model, samples, stacked, batch_size=2, world=world)
        assert torch.allclose(shared, alone[:length], atol=1e-6), "not what one process predicts"
        assert same_on_all_ranks([shared]), "the ranks hold different predictions"


@fix()
def stack_predict_on_every_rank() -> None:
    """Every rank predicts its share, with the bare module and rank 0's buffers."""
    with session(backend=backend()) as world:
        train(lambda model: validate_together(model, world))


if __name__ == "__main__":
    main()
