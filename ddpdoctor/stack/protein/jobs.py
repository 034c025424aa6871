"""The command `train protein`: all its options, and what it does."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Annotated

from pydantic import Field, PositiveInt

from ddpdoctor.stack.config import Flags, LaunchOptions
from ddpdoctor.stack.protein.synthetic import synthetic_backbones
from ddpdoctor.stack.protein.train import ProteinConfig, train_from_backbones, train_from_pdb

log = logging.getLogger(__name__)


class TrainProtein(ProteinConfig, LaunchOptions):
    """Train a model that predicts masked residues of proteins from their backbones.

    Alone, or on four ranks: torchrun --nproc-per-node=4 -m ddpdoctor train protein
    """

    pdb_path: Path | None = None
    """A PDB or mmCIF file, or a folder of such. Left out: made-up chains of ideal helices and
    strands, which are no proteins."""
    cache_dir: Path | None = None
    """Folder to keep what was read, for the other ranks of the node and for later trainings."""
    n_synthetic: PositiveInt = 400
    """How many chains to make up where there is no pdb_path."""
    distributed: Annotated[bool | None, Flags(("ddp",))] = None
    """Insist on a launcher such as torchrun, or on a lone process. Left out, the launcher
    decides."""
    master_port: int | None = Field(default=None, ge=1, le=65535)
    """Port of rank 0, where a launcher has set RANK and WORLD_SIZE, but no MASTER_PORT. torchrun
    sets it: give it the port by its own --master-port."""

    def run(self) -> str:
        """Train, and return one line about it."""
        if self.master_port is not None:
            _choose_port(self.master_port)
        own = {"pdb_path", "cache_dir", "n_synthetic", "master_port"}
        options = self.model_dump(exclude=own)
        if self.pdb_path is None:
            chains = synthetic_backbones(self.n_synthetic, self.random_seed)
            return train_from_backbones(chains, **options).sentence
        return train_from_pdb(self.pdb_path, cache_dir=self.cache_dir, **options).sentence


def _choose_port(port: int) -> None:
    given = os.environ.setdefault("MASTER_PORT", str(port))
    if given != str(port) and os.environ.get("RANK") == "0":
        log.warning(
            "--master-port %d has no effect: the launcher has set MASTER_PORT=%s; with torchrun "
            "say `torchrun --master-port=%d`",
            port,
            given,
            port,
        )
