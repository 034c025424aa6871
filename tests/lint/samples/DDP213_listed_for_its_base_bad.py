from abc import ABC, abstractmethod
from functools import cache
from pathlib import Path

import ase.io
from torch.utils.data import Dataset, DistributedSampler


def sampler(data):
    return DistributedSampler(data)


class Base(Dataset, ABC):
    def __init__(self, config, transform=None):
        self.config = config
        self.transform = transform
        if self.config.get("keep_in_memory", False):
            self.__getitem__ = cache(self.__getitem__)
        self.ids = self._load(config)
        self.num_samples = len(self.ids)
        if len(self.ids) == 0:
            raise ValueError("none")

    def __len__(self):
        return self.num_samples

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return [self[i] for i in range(*idx.indices(len(self)))]
        atoms = self.get_atoms(self.ids[idx])
        return atoms

    @abstractmethod
    def get_atoms(self, idx):
        raise NotImplementedError

    @abstractmethod
    def _load(self, config):
        raise NotImplementedError


class Read(Base):
    def _load(self, config):
        self.path = Path(config["src"])
        if self.path.is_file():
            raise ValueError("not a directory")
        return list(self.path.glob(f"{config.get('pattern', '*')}"))  # <-- DDP213

    def get_atoms(self, idx):
        try:
            atoms = ase.io.read(idx)
        except Exception as err:
            raise err
        return atoms
