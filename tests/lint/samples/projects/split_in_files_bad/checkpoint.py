"""Saving."""

import comm


def save(model, path):
    model.write(path)
    comm.synchronize()
