"""Choice of the positions from which a draft block is predicted."""
import torch


class NoValidAnchors(ValueError):
    """No sequence of the batch is long enough to hold one block after the prompt."""


def pick_anchors(prompt_len, total_len, block, generator):
    """One anchor per usable sequence: (row index, position)."""
    room = total_len - prompt_len - block
    rows = torch.nonzero(room > 0).flatten()
    if rows.numel() == 0:
        raise NoValidAnchors(f"{len(total_len)} sequences, none with {block} answer tokens")
    offset = (torch.rand(rows.numel(), generator=generator) * room[rows]).long()
    return rows, prompt_len[rows] + offset


def take_blocks(tokens, rows, anchors, block):
    cols = anchors[:, None] + torch.arange(block + 1)
    return tokens[rows[:, None], cols]
