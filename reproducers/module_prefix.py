"""DDP508 module-prefix: a checkpoint of the DDP wrapper does not fit the bare model.

torchrun --nproc-per-node=4 reproducers/module_prefix.py broken
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present
from torch.nn.parallel import DistributedDataParallel

from ddpdoctor.reproducer import (
    backend,
    broken,
    documented,
    fix,
    main,
    measured,
    own_device,
    shared_folder,
)
from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.process_group import session, unwrap, wrap


def linear_head() -> nn.Module:
    return nn.Linear(8, 1)


def build(seed: int, head: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), head()).to(own_device())


def train(net: nn.Module) -> None:
    """Take a few steps, so that what was trained can be told from what was not."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(8, 8, device=own_device())).square().mean().backward()
        optimizer.step()


def check(trained: nn.Module, predictor: nn.Module) -> None:
    """Assert that the model which loaded the file has what was trained, to the bit."""
    loaded = predictor.state_dict()
    lost = [k for k, value in trained.state_dict().items() if not torch.equal(value, loaded[k])]
    assert not lost, f"{len(lost)} of {len(loaded)} tensors were not loaded, {lost[0]} first"


def save_of_the_wrapper(net: nn.Module, path: Path) -> None:
    """Save as the repaired code of 000 does."""
    torch.save(net.state_dict(), path)


def load_strictly(path: Path, predictor: nn.Module) -> None:
    """Load as its predict.py does."""
    predictor.load_state_dict(torch.load(path, map_location="cpu"))  # <-- DDP508


def train_and_predict(
    load: Callable[[Path, nn.Module], None],
    save: Callable[[nn.Module, Path], None] = save_of_the_wrapper,
    head: Callable[[], nn.Module] = linear_head,
) -> None:
    """Train on all ranks, save on rank 0, and load into a bare model as predict.py does."""
    dist.init_process_group(backend())
    path = shared_folder() / "best_model.pt"
    net = DistributedDataParallel(build(seed=0, head=head))
    train(net)
    if dist.get_rank() == 0:
        save(net, path)
    dist.barrier()
    predictor = build(seed=1, head=head)
    load(path, predictor)
    check(net.module, predictor)
    del net  # the wrapper must not outlive the group
    dist.destroy_process_group()


@broken()
def strict_load_into_the_bare_model() -> None:
    """Save net.state_dict() of the wrapper; the bare model loads it strictly."""
    train_and_predict(load_strictly)


@documented(source="000 summary: backward compatible")
def unchanged_single_gpu_code() -> None:
    """Train with the repaired code, predict on one GPU with the unchanged code."""
    train_and_predict(load_strictly)


def load_loosely(path: Path, predictor: nn.Module) -> None:
    result = predictor.load_state_dict(torch.load(path, map_location="cpu"), strict=False)
    measured(f"strict=False passed over {len(result.missing_keys)} missing keys")


@documented(source="nikhilbarhate99/PPO-PyTorch#32")
def strict_false() -> None:
    """Load with strict=False."""
    train_and_predict(load_loosely)


def load_without_the_word(path: Path, predictor: nn.Module) -> None:
    state = torch.load(path, map_location="cpu")
    predictor.load_state_dict({key.replace("module.", ""): state[key] for key in state})


@documented(source="Stack Overflow 61854165")
def replace_the_word() -> None:
    """Take "module." out of every key by replace()."""
    train_and_predict(load_without_the_word)


class Head(nn.Module):
    """A head that keeps its layer under the name of module, as wrappers of one's own do."""

    def __init__(self) -> None:
        super().__init__()
        self.module = nn.Linear(8, 1)

    def forward(self, features: Tensor) -> Tensor:
        """Return (n, 1)."""
        scores: Tensor = self.module(features)
        return scores


@documented(source="Stack Overflow 61854165")
def replace_the_word_in_the_model_too() -> None:
    """The same, with a part of the model that is itself called module."""
    train_and_predict(load_without_the_word, head=Head)


def load_from_the_eighth_letter(path: Path, predictor: nn.Module) -> None:
    state = torch.load(path, map_location="cpu")
    predictor.load_state_dict({key[7:]: state[key] for key in state})


@documented(source="PyTorch forum, topic 1686")
def cut_seven_letters() -> None:
    """Cut the first seven letters off every key."""
    train_and_predict(load_from_the_eighth_letter, head=Head)


@documented(source="PyTorch forum, topic 1686")
def cut_seven_letters_of_an_old_file() -> None:
    """The same, with a file that was saved from a bare model."""
    train_and_predict(
        load_from_the_eighth_letter,
        save=lambda net, path: torch.save(unwrap(net).state_dict(), path),
    )


def load_into_a_wrapper(path: Path, predictor: nn.Module) -> None:
    nn.DataParallel(predictor).load_state_dict(torch.load(path, map_location="cpu"))


@documented(source="PyTorch forum, topic 1686")
def wrap_to_load() -> None:
    """Wrap the bare model in DataParallel for the load."""
    train_and_predict(load_into_a_wrapper, head=Head)


def load_consuming_the_prefix(path: Path, predictor: nn.Module) -> None:
    state = torch.load(path, map_location="cpu")
    consume_prefix_in_state_dict_if_present(state, "module.")
    predictor.load_state_dict(state)


@documented(source="PyTorch, consume_prefix_in_state_dict_if_present")
def consume_the_prefix() -> None:
    """Let PyTorch take the prefix off, where there is one."""
    train_and_predict(load_consuming_the_prefix, head=Head)


@fix()
def save_the_bare_module() -> None:
    """Unwrap before saving; the file does not show how many ranks there were."""
    with session(backend=backend()) as world:
        net = wrap(build(seed=0, head=Head), world)
        train(net)
        path = shared_folder() / "best_model.pt"
        checkpoint.save({"model": unwrap(net).state_dict()}, path, world)
        predictor = build(seed=1, head=Head)
        predictor.load_state_dict(checkpoint.load(path, world)["model"])
        check(unwrap(net), predictor)
        del net  # the wrapper must not outlive the group


if __name__ == "__main__":
    main()
