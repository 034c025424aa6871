import torch


def molecules(count, atoms=9, seed=0):
    """Random undirected graphs with two targets; the second is known for some only."""
    g = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, 4, (count, atoms), generator=g)
    link = (torch.rand(count, atoms, atoms, generator=g) < 0.25).float()
    link = ((link + link.transpose(1, 2)) > 0).float()
    mass = (kind.float() * 0.5).sum(1)
    degree = link.sum((1, 2)) / atoms
    return kind, link, mass / atoms, degree
