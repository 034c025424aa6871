from __future__ import annotations

from ddpdoctor.launch.warm_up import use_huge_pages


def test_memory_that_was_moved_to_huge_pages_reads_the_same() -> None:
    pieces = [bytes([n % 251]) * 4096 for n in range(4096)]
    use_huge_pages()
    assert all(piece == bytes([n % 251]) * 4096 for n, piece in enumerate(pieces))
