def late(model, batch, loss_of):
    loss = loss_of(model(batch))
    with model.no_sync():  # <-- DDP314
        loss.backward()


def early(model, batch, loss_of):
    with model.no_sync():  # <-- DDP314
        loss = loss_of(model(batch))
    loss.backward()
