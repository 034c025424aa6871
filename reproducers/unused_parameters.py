"""DDP301 unused-parameters: DDP waits for gradients of parameters that no forward ever uses.

torchrun --nproc-per-node=4 reproducers/unused_parameters.py broken
"""

from __future__ import annotations

from typing import NamedTuple

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
from ddpdoctor.stack.process_group import session, wrap

WIDTH = 8


class Crystal(NamedTuple):
    """A structure of n atoms and e edges, and the property to be learnt."""

    atoms: Tensor  # (n, WIDTH)
    ends: Tensor  # (2, e): which atoms an edge joins
    edges: Tensor  # (e, WIDTH)
    lattice: Tensor  # (e, 3, WIDTH): the edge seen from the three lattice vectors
    label: Tensor  # ()


def mixer() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3 * WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))


class ComformerConv(nn.Module):
    """Attention of each atom over its edges: 22 parameter tensors, all of them used."""

    def __init__(self) -> None:
        super().__init__()
        self.lin_key, self.lin_query, self.lin_value, self.lin_edge, self.lin_concate = (
            nn.Linear(WIDTH, WIDTH) for _ in range(5)
        )
        self.lin_msg_update, self.key_update = mixer(), mixer()
        self.norm, self.norm_att = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, atoms: Tensor, ends: Tensor, edges: Tensor) -> Tensor:
        """Return the updated atoms, (n, WIDTH)."""
        here, there = ends
        edges = self.lin_edge(edges)
        query, key, value = self.lin_query(atoms), self.lin_key(atoms), self.lin_value(atoms)
        key = self.key_update(torch.cat([key[here], key[there], edges], dim=-1))
        message = self.lin_msg_update(torch.cat([value[here], value[there], edges], dim=-1))
        message = message * self.norm_att(query[here] * key).sigmoid()
        received = torch.zeros_like(atoms).index_add_(0, here, message)
        return nn.functional.softplus(atoms + self.norm(self.lin_concate(received)))


class ComformerConv_edge(nn.Module):
    """Attention of each edge over the lattice vectors; two of its modules are never used."""

    def __init__(self) -> None:
        super().__init__()
        self.lemb = nn.Embedding(3, WIDTH)  # <-- DDP301
        self.lin_key, self.lin_query, self.lin_value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.lin_key_e = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.lin_value_e = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.lin_edge = nn.Linear(WIDTH, WIDTH, bias=False)
        self.lin_edge_len = nn.Linear(2 * WIDTH, WIDTH)  # <-- DDP301
        self.lin_concate = nn.Linear(WIDTH, WIDTH)
        self.lin_msg_update, self.key_update = mixer(), mixer()
        self.norm, self.norm_att = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, edges: Tensor, lattice: Tensor, angles: Tensor) -> Tensor:
        """Return the updated edges, (e, WIDTH)."""
        update = torch.zeros_like(edges)
        query, key, value = self.lin_query(edges), self.lin_key(edges), self.lin_value(edges)
        for side, (lin_key, lin_value) in enumerate(
            zip(self.lin_key_e, self.lin_value_e, strict=True)
        ):
            length, angle = lattice[:, side], self.lin_edge(angles[:, side])
            attention = self.key_update(torch.cat([key, lin_key(length), angle], dim=-1))
            message = self.lin_msg_update(torch.cat([value, lin_value(length), angle], dim=-1))
            update += self.lin_concate(message * self.norm_att(query * attention).sigmoid())
        return nn.functional.softplus(edges + self.norm(update))


class ComFormer(nn.Module):
    """A crystal transformer in miniature, with the parameter indices of the real one.

    It has LayerNorm where the original has BatchNorm, whose statistics would differ by rank.
    """

    def __init__(self) -> None:
        super().__init__()
        self.atom_embedding, self.rbf, self.rbf_angle = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.att_layers = nn.ModuleList(ComformerConv() for _ in range(4))
        self.edge_update_layer = ComformerConv_edge()
        self.fc, self.fc_out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, crystal: Crystal) -> Tensor:
        """Return the predicted property, a scalar."""
        atoms, edges = self.atom_embedding(crystal.atoms), self.rbf(crystal.edges)
        lattice, angles = self.rbf(crystal.lattice), self.rbf_angle(crystal.lattice)
        for number, layer in enumerate(self.att_layers):
            atoms = layer(atoms, crystal.ends, edges)
            if number == 0:
                edges = self.edge_update_layer(edges, lattice, angles)
        return self.fc_out(nn.functional.silu(self.fc(atoms.mean(dim=0)))).squeeze()


class Branching(nn.Module):
    """Reads metals and insulators with different heads: a branch that the data decides."""

    def __init__(self) -> None:
        super().__init__()
        self.atom_embedding = nn.Linear(WIDTH, WIDTH)
        self.metal, self.insulator = nn.Linear(WIDTH, 1), nn.Linear(WIDTH, 1)

    def forward(self, crystal: Crystal) -> Tensor:
        """Return the predicted property, a scalar."""
        features = self.atom_embedding(crystal.atoms).mean(dim=0)
        head = self.metal if crystal.label > 0 else self.insulator
        return head(features).squeeze()


def crystal_of(rank: int) -> Crystal:
    """Make the crystal that this rank trains on; odd ranks have metals."""
    torch.manual_seed(100 + rank)
    atoms, edges, lattice = (
        torch.randn(shape, dtype=torch.float64)
        for shape in [(4, WIDTH), (12, WIDTH), (12, 3, WIDTH)]
    )
    ends = torch.tensor([(i, j) for i in range(4) for j in range(4) if i != j]).T
    label = torch.tensor(1.0 if rank % 2 else -1.0).double()
    return Crystal(*(part.to(own_device()) for part in (atoms, ends, edges, lattice, label)))


def build(kind: type[nn.Module] = ComFormer) -> nn.Module:
    """Build the same model on every rank."""
    torch.manual_seed(0)
    return kind().double().to(own_device())


def train(model: nn.Module, crystals: list[Crystal]) -> None:
    """Take two steps on the mean loss of these crystals."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        optimizer.zero_grad()
        loss = torch.stack([(model(crystal) - crystal.label) ** 2 for crystal in crystals]).mean()
        loss.backward()
        optimizer.step()


def check(trained: nn.Module) -> None:
    """Assert that the ranks agree to the bit, and with one process that sees all their crystals."""
    assert same_on_all_ranks(trained.parameters()), "parameters differ between the ranks"
    if dist.get_rank() > 0:
        return
    alone = build(type(trained))
    train(alone, [crystal_of(rank) for rank in range(dist.get_world_size())])
    expected = dict(alone.named_parameters())
    for name, parameter in trained.named_parameters():
        off = (parameter - expected[name]).abs().max().item()
        assert off < 1e-12, f"{name} is off by {off} from a single process"


@broken()
def wrapped_as_it_is() -> None:
    """Wrap the model as it is; the second forward fails."""
    dist.init_process_group(backend())
    net = build()
    train(DistributedDataParallel(net), [crystal_of(dist.get_rank())])  # <-- DDP301
    check(net)
    dist.destroy_process_group()


@documented(source="000 error 3")
def find_unused_parameters() -> None:
    """Pass find_unused_parameters=True."""
    dist.init_process_group(backend())
    net = build()
    train(DistributedDataParallel(net, find_unused_parameters=True), [crystal_of(dist.get_rank())])
    check(net)
    dist.destroy_process_group()


@documented(source="000 expected output")
def find_unused_for_a_true_branch() -> None:
    """Pass find_unused_parameters=True where the data picks a branch."""
    dist.init_process_group(backend())
    net = build(Branching)
    train(DistributedDataParallel(net, find_unused_parameters=True), [crystal_of(dist.get_rank())])
    check(net)
    dist.destroy_process_group()


@documented(source="PyTorch documentation of DistributedDataParallel")
def static_graph() -> None:
    """Pass static_graph=True."""
    dist.init_process_group(backend())
    net = build()
    train(DistributedDataParallel(net, static_graph=True), [crystal_of(dist.get_rank())])
    check(net)
    dist.destroy_process_group()


@fix()
def delete_the_dead_modules() -> None:
    """Remove the two modules that no forward uses, then wrap."""
    with session(backend=backend()) as world:
        net = build()
        del net.edge_update_layer.lemb, net.edge_update_layer.lin_edge_len
        train(wrap(net, world), [crystal_of(world.rank)])
        check(net)


@fix()
def freeze_the_dead_modules() -> None:
    """Keep them for old checkpoints, but frozen; then wrap."""
    with session(backend=backend()) as world:
        net = build()
        net.edge_update_layer.lemb.requires_grad_(False)
        net.edge_update_layer.lin_edge_len.requires_grad_(False)
        train(wrap(net, world), [crystal_of(world.rank)])
        check(net)


if __name__ == "__main__":
    main()
