from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def pdb() -> Path:
    """The folder with 13 real entries of the PDB, one of which is RNA."""
    folder = os.environ.get("DDPDOCTOR_DATA")
    if not folder:
        pytest.skip("DDPDOCTOR_DATA does not name the folder with the protein data")
    return Path(folder) / "pdb"


@pytest.fixture
def bodies() -> Path:
    return Path(__file__).with_name("bodies.py")
