"""Containers of one machine are hosts of their own: their process numbers mean other processes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ddpdoctor.evidence import boot
from tests.network import can_make_networks

SAY = [sys.executable, "-c", "from ddpdoctor.evidence import boot; print(boot())"]


@pytest.mark.skipif(not can_make_networks(), reason="needs root: namespaces stand for containers")
@pytest.mark.parametrize(
    ("namespace", "same"),
    [((), True), (("--net", "--uts"), True), (("--pid", "--fork"), False)],
)
def test_containers_are_told_apart_and_hosts_are_one(
    namespace: tuple[str, ...], same: bool
) -> None:
    said = subprocess.run(
        ["unshare", "--mount", *namespace, *SAY], capture_output=True, text=True, check=True
    )
    assert (said.stdout.strip() == boot()) is same
