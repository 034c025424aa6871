"""Saving."""

import comm


def save(model, path):
    if comm.leads():
        model.write(path)
    comm.synchronize()
